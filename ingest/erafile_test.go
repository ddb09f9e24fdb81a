package ingest

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/ethereum/go-ethereum/rlp"
	"github.com/golang/snappy"

	"github.com/leani-go/leani/chain"
	"github.com/leani-go/leani/ingest/era"
)

// eraFileOf writes blocks as an EraE file, without receipts if asked so.
func eraFileOf(blocks []chain.Block, receipts bool) []byte {
	out := []byte{0x65, 0x32, 0, 0, 0, 0, 0, 0}
	slots := 2
	if receipts {
		slots = 3
	}
	offsets := make([]int, slots*len(blocks))
	var framed bytes.Buffer
	w := snappy.NewBufferedWriter(&framed)
	for slot, record := range []func(*chain.Block) (byte, any){
		func(b *chain.Block) (byte, any) { return 0x03, rlp.RawValue(b.Header) },
		func(b *chain.Block) (byte, any) {
			transactions := make([]any, len(b.Transactions))
			for i, t := range b.Transactions {
				if transactions[i] = t; t[0] >= 0xc0 {
					transactions[i] = rlp.RawValue(t)
				}
			}
			return 0x04, []any{transactions, rlp.RawValue(b.Ommers)}
		},
		slimReceiptsOf,
	}[:slots] {
		for i := range blocks {
			tag, value := record(&blocks[i])
			framed.Reset()
			w.Reset(&framed)
			must(w.Write(must(rlp.EncodeToBytes(value))))
			if err := w.Close(); err != nil {
				panic(err)
			}
			offsets[slots*i+slot] = len(out)
			out = append(out, tag, 0)
			out = binary.LittleEndian.AppendUint32(out, uint32(framed.Len()))
			out = append(append(out, 0, 0), framed.Bytes()...)
		}
	}
	index := len(out)
	out = append(out, 0x67, 0x32)
	out = binary.LittleEndian.AppendUint32(out, uint32(24+8*len(offsets)))
	out = append(out, 0, 0)
	out = binary.LittleEndian.AppendUint64(out, blocks[0].Number)
	for _, offset := range offsets {
		out = binary.LittleEndian.AppendUint64(out, uint64(int64(offset-index)))
	}
	out = binary.LittleEndian.AppendUint64(out, uint64(slots))
	return binary.LittleEndian.AppendUint64(out, uint64(len(blocks)))
}

func slimReceiptsOf(b *chain.Block) (tag byte, value any) {
	receipts := make([]any, len(b.Receipts))
	for i, r := range b.Receipts {
		logs := []any{}
		for _, l := range b.ReceiptLogs(i) {
			logs = append(logs, []any{l.Address, l.Topics[:l.NumTopics], l.Data})
		}
		receipts[i] = []any{r.Type, r.Status, r.CumulativeGasUsed, logs}
	}
	return 0x0a, receipts
}

// eraFolderOf makes a folder of files, given by name and content, with a catalog whose digests are
// those of other contents where given, and opens it.
func eraFolderOf(tb testing.TB, files map[string][]byte, published map[string][]byte) *EraFolder {
	tb.Helper()
	folder := tb.TempDir()
	var catalog bytes.Buffer
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(folder, name), content, 0o600); err != nil {
			tb.Fatal(err)
		}
		if other, ok := published[name]; ok {
			content = other
		}
		fmt.Fprintf(&catalog, "%x  %s\n", sha256.Sum256(content), name)
	}
	return openEraFolder(tb, folder, catalog.Bytes())
}

// openEraFolder opens a folder of files of a chain called test.
func openEraFolder(tb testing.TB, folder string, catalog []byte) *EraFolder {
	tb.Helper()
	if err := os.WriteFile(filepath.Join(folder, era.CatalogName), catalog, 0o600); err != nil {
		tb.Fatal(err)
	}
	s, err := OpenEraFolder(folder, "test")
	if err != nil {
		tb.Fatal(err)
	}
	return s
}
