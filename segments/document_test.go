package segments

import (
	"bytes"
	"encoding/hex"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/google/go-cmp/cmp"
	"github.com/leani-go/leani/chain"
	"github.com/leani-go/leani/codec"
	"github.com/leani-go/leani/internal/shareddata"
)

var update = flag.Bool("update", false, "rewrite the examples and tables in docs/formats, and testdata")

// document is a format document whose marked parts are compared with the code.
func document(t *testing.T, name string) string {
	return filepath.Join(shareddata.Root(t), "docs", "formats", name)
}

// checkPart compares the part of a document between <!-- name --> and <!-- end name --> with what the
// code says, or rewrites it.
func checkPart(t *testing.T, doc, name, want string) {
	t.Helper()
	path := document(t, doc)
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	from, to := fmt.Sprintf("<!-- %s -->\n", name), fmt.Sprintf("<!-- end %s -->", name)
	before, rest, ok := strings.Cut(string(text), from)
	got, after, ok2 := strings.Cut(rest, to)
	if !ok || !ok2 {
		t.Fatalf("%s has no part %q", doc, name)
	}
	if got == want {
		return
	}
	if !*update {
		t.Errorf("%s, part %q differs from the code; run the test with -update\n%s", doc, name, cmp.Diff(got, want))
		return
	}
	if err := os.WriteFile(path, []byte(before+from+want+to+after), 0o644); err != nil {
		t.Fatal(err)
	}
}

// exampleBytes parses the hex of an example out of a document.
func exampleBytes(t *testing.T, doc, name string) (raw []byte) {
	t.Helper()
	text, err := os.ReadFile(document(t, doc))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), fmt.Sprintf("<!-- %s -->", name))
	part, _, _ := strings.Cut(rest, fmt.Sprintf("<!-- end %s -->", name))
	for _, m := range regexp.MustCompile(`(?m)^([0-9a-f]{4})  ((?:[0-9a-f]{2} ?)+)`).FindAllStringSubmatch(part, -1) {
		if m[1] != fmt.Sprintf("%04x", len(raw)) {
			t.Fatalf("%s: line %s stands at %04x", doc, m[1], len(raw))
		}
		b, err := hex.DecodeString(strings.ReplaceAll(m[2], " ", ""))
		if err != nil {
			t.Fatal(err)
		}
		raw = append(raw, b...)
	}
	return raw
}

// exampleBlock makes a block of the examples. Its header is the shortest that names a parent; it hashes
// to the block hash, as all headers do.
func exampleBlock(number uint64, parent common.Hash, transactions ...[]byte) *chain.Block {
	b := &chain.Block{HasReceipts: true, Ommers: []byte{0xc0}}
	b.Header = append([]byte{0xf8, 0x38, 0xa0}, parent[:]...)
	b.Header = append(b.Header, 0x96)
	b.Header = append(b.Header, fmt.Sprintf("the rest of header %-3d", number)...)
	b.BlockRef = chain.BlockRef{Number: number, Hash: crypto.Keccak256Hash(b.Header), ParentHash: parent, Timestamp: 1700000000 + 12*number}
	for i, tx := range transactions {
		b.Transactions = append(b.Transactions, tx)
		b.TransactionHashes = append(b.TransactionHashes, crypto.Keccak256Hash(tx))
		b.Receipts = append(b.Receipts, chain.Receipt{Type: 2, Status: 1, CumulativeGasUsed: uint64(i+1) * 21000})
	}
	return b
}

func exampleLog(b *chain.Block, address byte, data []byte, topics ...common.Hash) {
	l := chain.Log{Address: &common.Address{address, address}, NumTopics: uint8(len(topics)), Data: data}
	for i := range topics {
		l.Topics[i] = &topics[i]
	}
	b.Logs = append(b.Logs, l)
	b.Receipts[len(b.Receipts)-1].LogsEnd = uint32(len(b.Logs))
}

var (
	transferEvent = crypto.Keccak256Hash([]byte("Transfer(address,address,uint256)"))
	alice, bob    = common.BytesToHash(bytes.Repeat([]byte{0xaa}, 20)), common.BytesToHash(bytes.Repeat([]byte{0xbb}, 20))
)

// dataExample are the blocks of the example in data.md: two transfers and a log without topics in the
// second transaction of the first block; an empty block.
func dataExample() []*chain.Block {
	a := exampleBlock(100, common.Hash{0x99}, []byte{2, 0xc0, 1}, []byte{2, 0xc0, 2})
	exampleLog(a, 0x11, common.BigToHash(common.Big257).Bytes(), transferEvent, alice, bob)
	exampleLog(a, 0x11, bytes.Repeat([]byte{0xff}, 32), transferEvent, bob, alice)
	exampleLog(a, 0x22, []byte("hello"))
	b := exampleBlock(101, a.Hash)
	b.Withdrawals = []byte{0xc0}
	return []*chain.Block{a, b}
}

// indexExample are the blocks under the example in index.md: one block with 130 transfers to Alice, all by
// one contract; two of them name Bob as well, and one names what nobody else does.
func indexExample() []*chain.Block {
	a := exampleBlock(100, common.Hash{0x99}, []byte{2, 0xc0, 1})
	for i := range 130 {
		topics := []common.Hash{transferEvent, alice}
		switch i {
		case 7, 99:
			topics = append(topics, bob)
		case 128:
			topics = append(topics, common.Hash{1})
		}
		exampleLog(a, 0x11, nil, topics...)
	}
	return []*chain.Block{a}
}

var exampleSenders = []common.Address{{0xaa}, {0xbb}}

// example builds the worked example of a document.
func example(t testing.TB, kind Kind) []byte {
	t.Helper()
	switch kind {
	case KindData:
		data, _ := buildPair(t, dataExample(), codec.None)
		return data
	case KindIndex:
		_, index := buildPair(t, indexExample(), codec.None)
		return index
	case KindFrames:
		return framesExample(t)
	default:
		data, _ := buildPair(t, dataExample(), codec.None)
		var out bytes.Buffer
		if _, _, err := WriteSenders(&out, openData(t, data, nil).Info(), exampleSenders); err != nil {
			t.Fatal(err)
		}
		return out.Bytes()
	}
}

var exampleDocuments = map[Kind]string{KindSenders: "segment.md", KindData: "data.md", KindIndex: "index.md", KindFrames: "frames.md"}

// The worked examples of the format documents are what the builders write, byte for byte, and the bytes in
// the documents read back as what went in. Building is deterministic: the seeds of the builders' hash
// tables do not reach the file.
func TestDocumentExamples(t *testing.T) {
	for kind, doc := range exampleDocuments {
		t.Run(doc, func(t *testing.T) {
			want := example(t, kind)
			if again := example(t, kind); !bytes.Equal(again, want) {
				t.Fatal("the same blocks give other bytes when they are built again")
			}
			checkPart(t, doc, "example", "```\n"+dumpHex(t, want, kind != KindSenders)+"```\n")
			raw := exampleBytes(t, doc, "example")
			if !bytes.Equal(raw, want) {
				t.Fatalf("the hex in %s is not the file", doc)
			}
			f, err := Open(doc, 1, memorySource(raw), nil)
			if err != nil {
				t.Fatal(err)
			}
			if r, err := CheckFile(t.Context(), f); err != nil || len(r.Problems) > 0 {
				t.Fatal(r.Problems, err)
			}
			switch kind {
			case KindData:
				readDataExample(t, raw)
			case KindFrames:
				checkFrames(t, raw, exampleFrames())
			case KindIndex:
				checkIndex(t, openIndex(t, raw, 1, nil), indexExample(), testRand(t))
			case KindSenders:
				s, err := NewSenders(f)
				if err != nil {
					t.Fatal(err)
				}
				if got, err := s.Append(nil, 0, 2, nil); err != nil || !slices.Equal(got, exampleSenders) {
					t.Fatalf("senders %v, %v", got, err)
				}
			}
		})
	}
}

func readDataExample(t *testing.T, raw []byte) {
	d := openData(t, raw, nil)
	for _, want := range dataExample() {
		var got chain.Block
		if err := d.Load(want.Number, chain.PartsAll, &got, nil); err != nil {
			t.Fatal(err)
		}
		if a, b := normal(want), normal(&got); !reflect.DeepEqual(a, b) {
			t.Fatalf("block %d:\n%s", want.Number, cmp.Diff(a, b))
		}
	}
}

// The tables of columns and limits in segment.md are those of the code.
func TestDocumentTables(t *testing.T) {
	var columns strings.Builder
	columns.WriteString("| id | name | file | form | row bytes | rows a page |\n|---|---|---|---|---|---|\n")
	for _, c := range []struct {
		id   columnID
		file string
		form string
		row  int
	}{
		{columnBlocks, "data", "fixed", blockRowSize},
		{columnHeaders, "data", "blobs", 0},
		{columnBodies, "data", "blobs", 0},
		{columnTransactions, "data", "blobs", 0},
		{columnReceipts, "data", "blobs", 0},
		{columnLogs, "data", "log pages", 0},
		{columnShapes, "data", "fixed", shapeSize},
		{columnShortWords, "data", "fixed", shortWordSize},
		{columnWords, "data", "fixed", common.HashLength},
		{columnTerms, "index", "hash table", 0},
		{columnPostings, "index", "posting pages", 0},
		{columnTxLocator, "index", "hash table", 0},
		{columnBlockLocator, "index", "hash table", 0},
		{columnSenders, "senders", "fixed", common.AddressLength},
		{columnDigests, "all", "fixed", digestSize},
		{columnFrameRows, "frames", "fixed", frameRowSize},
		{columnFrames, "frames", "blobs", 0},
		{columnProfile, "frames", "blobs", 0},
	} {
		row, perPage := "", ""
		if c.row > 0 {
			row, perPage = fmt.Sprint(c.row), fmt.Sprint(randomPageSize/c.row)
		}
		fmt.Fprintf(&columns, "| %d | %s | %s | %s | %s | %s |\n", c.id, c.id, c.file, c.form, row, perPage)
	}
	checkPart(t, "segment.md", "columns", columns.String())

	var limits strings.Builder
	limits.WriteString("| limit | value |\n|---|---|\n")
	for _, l := range []struct {
		name  string
		value uint64
	}{
		{"bytes of a file", maximumFileSize},
		{"bytes of a page, raw and stored", codec.MaximumPage},
		{"blocks, transactions, logs of a file, each", maximumRows},
		{"transactions, logs of a block, each", maximumBlockRows},
		{"bytes of data of a log", maximumLogData},
		{"topics of a log", chain.MaximumTopics},
		{"logs in a log page", maximumPageRows},
		{"transaction hashes in a log page", maximumPageTransactions},
		{"rows of a page of blobs", blobPageSize},
		{"entries in a page of a page table", tablePageRows},
		{"positions of a short list in a table with postings", inlinePositions - 1},
		{"positions in a block of postings", postingBlock},
		{"bytes of a frame", MaximumFrame},
		{"bytes of a profile", MaximumProfile},
	} {
		fmt.Fprintf(&limits, "| %s | %d |\n", l.name, l.value)
	}
	checkPart(t, "segment.md", "limits", limits.String())
}
