package verify

import (
	"testing"

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
