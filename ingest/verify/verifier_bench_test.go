package verify

import (
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	gethrlp "github.com/ethereum/go-ethereum/rlp"
	"github.com/ethereum/go-ethereum/trie"

	"github.com/leani-go/leani/chain"
	"github.com/leani-go/leani/ingest/era"
	"github.com/leani-go/leani/internal/shareddata"
)

// lab opens the history file of the synthetic Mainnet-like chain.
func lab(b *testing.B) *era.File {
	b.Helper()
	f, err := era.OpenPath(shareddata.Path(b, "chainlab-800", "chainlab-00000-3b8d3ead-noproofs.ere"), era.Options{})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { f.Close() })
	return f
}

// BenchmarkVerify asks what proving a block costs (all roots, transaction hashes, blooms) that
// is decoded already: blocks of about 228 transactions, 432 logs and 174 KB.
func BenchmarkVerify(b *testing.B) {
	f := lab(b)
	var buf era.Buffer
	blocks := make([]chain.Block, 64)
	n, err := f.ReadBlocks(chain.Range{From: 700, To: 764}, chain.PartsAll, &buf, blocks)
	if err != nil || n != len(blocks) {
		b.Fatal(n, err)
	}
	var v Verifier
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		if err := v.Block(&blocks[i], Expected{Number: 700 + uint64(i)}); err != nil {
			b.Fatal(err)
		}
		i = (i + 1) % n
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "blocks/s")
}

// BenchmarkReadAndVerify asks what a block costs from the file to the proof, without senders.
func BenchmarkReadAndVerify(b *testing.B) {
	f := lab(b)
	var (
		buf    era.Buffer
		v      Verifier
		blocks = make([]chain.Block, 16)
		r      = chain.Range{From: 1, To: f.Range().To}
		next   = r
	)
	b.ReportAllocs()
	for done := 0; done < b.N; {
		n, err := f.ReadBlocks(next, chain.PartsAll, &buf, blocks)
		if err != nil {
			b.Fatal(err)
		}
		for i := range n {
			if err := v.Block(&blocks[i], Expected{Number: next.From + uint64(i)}); err != nil {
				b.Fatal(err)
			}
		}
		done += n
		if next.From += uint64(n); next.Empty() {
			next = r
		}
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "blocks/s")
}

// BenchmarkGoEthereum is the yardstick for BenchmarkVerify plus decoding: the same blocks,
// decompressed already, decoded and proved with go-ethereum's types, trie hasher and blooms.
func BenchmarkGoEthereum(b *testing.B) {
	f := lab(b)
	var buf era.Buffer
	blocks := make([]chain.Block, 16)
	if n, err := f.ReadBlocks(chain.Range{From: 700, To: 716}, chain.PartsAll, &buf, blocks); err != nil || n != len(blocks) {
		b.Fatal(n, err)
	}
	receipts := make([][]byte, len(blocks)) // lists of canonical receipts
	for i := range blocks {
		list := make(types.Receipts, len(blocks[i].Receipts))
		for j := range list {
			list[j] = gethReceipt(&blocks[i], j)
		}
		encoded, err := gethrlp.EncodeToBytes(list)
		if err != nil {
			b.Fatal(err)
		}
		receipts[i] = encoded
	}
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		if err := proveWithGoEthereum(&blocks[i], receipts[i]); err != nil {
			b.Fatal(err)
		}
		i = (i + 1) % len(blocks)
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "blocks/s")
}

func proveWithGoEthereum(b *chain.Block, receipts []byte) error {
	var h types.Header
	if err := gethrlp.DecodeBytes(b.Header, &h); err != nil {
		return err
	}
	transactions := make(types.Transactions, len(b.Transactions))
	for i, envelope := range b.Transactions {
		transactions[i] = new(types.Transaction)
		if err := transactions[i].UnmarshalBinary(envelope); err != nil {
			return err
		}
		transactions[i].Hash()
	}
	var list types.Receipts
	if err := gethrlp.DecodeBytes(receipts, &list); err != nil {
		return err
	}
	for _, r := range list {
		r.Bloom = types.CreateBloom(r)
	}
	for _, root := range []struct{ got, want common.Hash }{
		{types.DeriveSha(transactions, trie.NewStackTrie(nil)), h.TxHash},
		{types.DeriveSha(list, trie.NewStackTrie(nil)), h.ReceiptHash},
	} {
		if root.got != root.want {
			return mismatch(root.got, root.want)
		}
	}
	if h.Hash() == (common.Hash{}) || types.MergeBloom(list) != h.Bloom {
		return mismatch(h.Hash(), common.Hash{})
	}
	return nil
}
