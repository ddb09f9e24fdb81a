package verify

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	gethrlp "github.com/ethereum/go-ethereum/rlp"
	"github.com/ethereum/go-ethereum/trie"

	"github.com/leani-go/leani/chain"
	"github.com/leani-go/leani/ingest/era"
	"github.com/leani-go/leani/internal/receipt"
	"github.com/leani-go/leani/internal/shareddata"
)

// walk reads and verifies every block of a file, in batches, and hands it to visit together
// with the block's position. The parent link is checked between all blocks.
func walk(t *testing.T, path string, visit func(b *chain.Block)) {
	t.Helper()
	f, err := era.OpenPath(path, era.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var (
		v      Verifier
		buf    era.Buffer
		dst    = make([]chain.Block, 32)
		parent common.Hash
	)
	for r := f.Range(); !r.Empty(); {
		n, err := f.ReadBlocks(r, chain.PartsAll, &buf, dst)
		if err != nil {
			t.Fatal(err)
		}
		for i := range n {
			b := &dst[i]
			if err := v.Block(b, Expected{Number: r.From + uint64(i), ParentHash: parent}); err != nil {
				t.Fatal(err)
			}
			if !b.HasReceipts {
				t.Fatalf("block %d without receipts", b.Number)
			}
			parent = b.Hash
			visit(b)
		}
		r.From += uint64(n)
	}
}

// files are all whole era files: the bundled ones, and the shared ones where they are.
func files(t *testing.T) []string {
	t.Helper()
	root := shareddata.Root(t)
	list, err := filepath.Glob(filepath.Join(root, "testdata", "era", "mainnet-mini", "*.ere"))
	if err != nil || len(list) != 3 {
		t.Fatal(list, err)
	}
	for _, pattern := range []string{"era/mainnet/*", "era/rpc-compat-chain/*", "era/sepolia/*-noproofs.ere", "chainlab-800/*.ere"} {
		more, err := filepath.Glob(filepath.Join(root, "..", "shared", "data", filepath.FromSlash(pattern)))
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, more...)
	}
	return list
}

// TestEveryFileIsByteIdentical verifies every block of every era file at hand, and compares
// header, transactions, receipts, hashes, roots and bloom with what go-ethereum makes of the
// same block: it decodes them and encodes them again.
//
// SRC-030
func TestEveryFileIsByteIdentical(t *testing.T) {
	for _, path := range files(t) {
		t.Run(filepath.Base(path), func(t *testing.T) {
			t.Parallel()
			blocks := 0
			walk(t, path, func(b *chain.Block) {
				blocks++
				// go-ethereum is slow enough that the largest file is sampled.
				if len(b.Transactions) < 150 || blocks%20 == 1 {
					compare(t, b)
				}
			})
			if blocks == 0 {
				t.Fatal("no blocks")
			}
		})
	}
}

// compare holds a verified block against go-ethereum's types.
func compare(t *testing.T, b *chain.Block) {
	t.Helper()
	var h types.Header
	if err := gethrlp.DecodeBytes(b.Header, &h); err != nil {
		t.Fatal(err)
	}
	encoded, err := gethrlp.EncodeToBytes(&h)
	if err != nil || !bytes.Equal(encoded, b.Header) {
		t.Fatalf("block %d: header is not what go-ethereum encodes: %v", b.Number, err)
	}
	if b.Hash != h.Hash() || b.Number != h.Number.Uint64() || b.ParentHash != h.ParentHash || b.Timestamp != h.Time {
		t.Fatalf("block %v: reference differs from its header", b.BlockRef)
	}

	transactions := make(types.Transactions, len(b.Transactions))
	for i, envelope := range b.Transactions {
		tx := new(types.Transaction)
		if err := tx.UnmarshalBinary(envelope); err != nil {
			t.Fatalf("block %d: transaction %d: %v", b.Number, i, err)
		}
		if again, err := tx.MarshalBinary(); err != nil || !bytes.Equal(again, envelope) {
			t.Fatalf("block %d: transaction %d is not what go-ethereum encodes: %v", b.Number, i, err)
		}
		if tx.Hash() != b.TransactionHashes[i] {
			t.Fatalf("block %d: transaction %d: got hash %x want %x", b.Number, i, b.TransactionHashes[i], tx.Hash())
		}
		transactions[i] = tx
	}
	if root := types.DeriveSha(transactions, trie.NewStackTrie(nil)); root != h.TxHash {
		t.Fatalf("block %d: transactions root of go-ethereum %x", b.Number, root)
	}

	receipts := make(types.Receipts, len(b.Receipts))
	for i := range b.Receipts {
		receipts[i] = gethReceipt(b, i)
		var want bytes.Buffer
		receipts.EncodeIndex(i, &want)
		got := receipt.AppendCanonical(nil, &b.Receipts[i], b.ReceiptLogs(i), &receipts[i].Bloom)
		if !bytes.Equal(got, want.Bytes()) {
			t.Fatalf("block %d: receipt %d: got %x want %x", b.Number, i, got, want.Bytes())
		}
	}
	if root := types.DeriveSha(receipts, trie.NewStackTrie(nil)); root != h.ReceiptHash {
		t.Fatalf("block %d: receipts root of go-ethereum %x", b.Number, root)
	}

	var ommers []*types.Header
	if err := gethrlp.DecodeBytes(b.Ommers, &ommers); err != nil || types.CalcUncleHash(ommers) != h.UncleHash {
		t.Fatalf("block %d: ommers: %v", b.Number, err)
	}
	if b.Withdrawals != nil {
		var withdrawals types.Withdrawals
		if err := gethrlp.DecodeBytes(b.Withdrawals, &withdrawals); err != nil || types.DeriveSha(withdrawals, trie.NewStackTrie(nil)) != *h.WithdrawalsHash {
			t.Fatalf("block %d: withdrawals: %v", b.Number, err)
		}
	}
}

// gethReceipt is receipt i of b as go-ethereum has it, with its own bloom.
func gethReceipt(b *chain.Block, i int) *types.Receipt {
	r := &b.Receipts[i]
	g := &types.Receipt{Type: r.Type, PostState: r.PostState, Status: uint64(r.Status), CumulativeGasUsed: r.CumulativeGasUsed}
	for _, l := range b.ReceiptLogs(i) {
		out := &types.Log{Address: *l.Address, Data: l.Data, Topics: []common.Hash{}}
		for _, topic := range l.Topics[:l.NumTopics] {
			out.Topics = append(out.Topics, *topic)
		}
		g.Logs = append(g.Logs, out)
	}
	g.Bloom = types.CreateBloom(g)
	return g
}

// TestSameChainSameBlocks reads chains that exist in several files and layouts and compares
// the blocks.
func TestSameChainSameBlocks(t *testing.T) {
	for _, c := range []struct {
		folder string
		names  []string
	}{
		{"mainnet", []string{"mainnet-00000-5ec1ffb8.era1", "mainnet-00000-a6860fef-noproofs.ere"}},
		{"rpc-compat-chain", []string{
			"blocks0-54--unknown-00000-d226371d-noproofs.ere",
			"blocks0-35--unknown-00000-7c27d1f9.era1",
			"blocks0-35--unknown-00000-953f35de-noproofs.ere",
			"blocks36-54--unknown-00000-d226371d-noproofs.ere",
		}},
	} {
		t.Run(c.folder, func(t *testing.T) {
			known := make(map[uint64]*chain.Block)
			for i, name := range c.names {
				walk(t, shareddata.Path(t, "era", c.folder, name), func(b *chain.Block) {
					if i == 0 {
						known[b.Number] = clone(t, b)
						return
					}
					want := known[b.Number]
					if want == nil || !reflect.DeepEqual(clone(t, b), want) {
						t.Fatalf("%s: block %d differs from the one of %s", name, b.Number, c.names[0])
					}
				})
			}
		})
	}
}

// clone copies a block out of its buffer.
func clone(t *testing.T, b *chain.Block) *chain.Block {
	t.Helper()
	text, err := json.Marshal(b)
	if err != nil {
		t.Fatal(err)
	}
	c := new(chain.Block)
	if err := json.Unmarshal(text, c); err != nil {
		t.Fatal(err)
	}
	return c
}

// TestMadeUpBodyIsRefused pins that a block whose body is not the one of its header does not
// pass: the shared data has a file made that way.
func TestMadeUpBodyIsRefused(t *testing.T) {
	f, err := era.OpenPath(shareddata.Path(t, "era", "sepolia", "sepolia-00000-deadbeef-noreceipts.ere"), era.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var b chain.Block
	if err := f.ReadBlock(0, chain.PartsAll, new(era.Buffer), &b); err != nil {
		t.Fatal(err)
	}
	if b.HasReceipts || f.HasReceipts() {
		t.Error("receipts out of a file that has none")
	}
	var failed *Error
	if err := new(Verifier).Block(&b, Expected{}); !errors.As(err, &failed) {
		t.Fatalf("got %v", err)
	}
}

// TestFlippedBitsAreDetected flips single bits all over the smallest bundled file. Each flip
// must give an error, from the reader or from verification, or leave every block as it was:
// some encodings of Snappy decompress to the same bytes.
func TestFlippedBitsAreDetected(t *testing.T) {
	content, err := os.ReadFile(filepath.Join(shareddata.Root(t), "testdata", "era", "mainnet-mini", "mainnet-22431083-22431084-noproofs.ere"))
	if err != nil {
		t.Fatal(err)
	}
	var (
		v      Verifier
		buf    era.Buffer
		blocks = make([]chain.Block, 2)
	)
	load := func() error {
		f, err := era.Open("flipped.ere", bytes.NewReader(content), int64(len(content)), era.Options{})
		if err != nil {
			return err
		}
		if f.Range() != (chain.Range{From: 22431083, To: 22431085}) {
			return errors.New("another range than the caller asked for")
		}
		n, err := f.ReadBlocks(f.Range(), chain.PartsAll, &buf, blocks)
		if err == nil && n != 2 {
			err = errors.New("not all blocks")
		}
		var parent common.Hash
		for i := range n {
			if err == nil {
				err = v.Block(&blocks[i], Expected{Number: 22431083 + uint64(i), ParentHash: parent})
				parent = blocks[i].Hash
			}
		}
		if err == nil && !(blocks[0].HasReceipts && blocks[1].HasReceipts) {
			err = errors.New("the receipts are gone")
		}
		return err
	}
	if err := load(); err != nil {
		t.Fatal(err)
	}
	want := []*chain.Block{clone(t, &blocks[0]), clone(t, &blocks[1])}

	bits := 8 * len(content)
	const stride = 599 // a prime, so that all bits of a byte get their turn
	harmless, flips := 0, 0
	for bit := 0; bit < bits; bit++ {
		// Near both ends lie the version record, the first record's header and the index.
		if bit > 8*64 && bit < bits-8*100 && bit%stride != 0 {
			continue
		}
		flips++
		content[bit/8] ^= 1 << (bit % 8)
		if load() == nil {
			harmless++
			for i := range want {
				if !reflect.DeepEqual(clone(t, &blocks[i]), want[i]) {
					t.Fatalf("bit %d of byte %d: a wrong block %d passed", bit%8, bit/8, i)
				}
			}
		}
		content[bit/8] ^= 1 << (bit % 8)
	}
	t.Logf("%d flips, %d without effect", flips, harmless)
}
