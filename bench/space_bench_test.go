package bench

import (
	"errors"
	"testing"

	"github.com/leani-go/leani/chain"
	"github.com/leani-go/leani/codec"
	"github.com/leani-go/leani/internal/chainfixture"
)

// mainnetRun are 23 Mainnet blocks in a row with 4,416 transactions and 9,807 logs.
var mainnetRun = chain.Range{From: 17_686_110, To: 17_686_133}

// BenchmarkSpaceMainnet asks what a run of Mainnet blocks takes, by what the bytes are for. So few
// blocks cannot share much of dictionaries and index; the test chain says what many do. An operation
// writes them to a new store.
func BenchmarkSpaceMainnet(b *testing.B) {
	var blocks []*chain.Block
	for _, f := range chainfixture.RealBlocks(b) {
		if mainnetRun.Contains(f.Number) {
			f.HasReceipts = true
			blocks = append(blocks, &f.Block)
		}
	}
	if uint64(len(blocks)) != mainnetRun.Len() {
		b.Fatalf("got %d blocks of %v", len(blocks), mainnetRun)
	}
	for _, compression := range []codec.Compression{codec.None, codec.Snappy, codec.Deflate, codec.Zstd} {
		b.Run(compression.String(), func(b *testing.B) {
			for b.Loop() {
				s, err := OpenStore(StoreOptions{Dir: b.TempDir(), ChainID: chain.MainnetChainID, Compression: compression})
				if err != nil {
					b.Fatal(err)
				}
				w := s.History.NewWriter(b.Context(), nil)
				for _, block := range blocks {
					if err := w.Add(block); err != nil {
						b.Fatal(errors.Join(err, w.Close(true), s.Close()))
					}
				}
				if err := w.Close(false); err != nil {
					b.Fatal(err)
				}
				b.StopTimer()
				all, err := s.Columns(b.Context())
				if err != nil {
					b.Fatal(err)
				}
				reportColumns(b, all, s.Space())
				if err := s.Close(); err != nil {
					b.Fatal(err)
				}
				b.StartTimer()
			}
		})
	}
}

// reportColumns reports what the columns of a store take.
func reportColumns(b *testing.B, c Columns, space Space) {
	g := c.Groups(space.Transactions)
	perLog := func(bytes int64) float64 { return float64(bytes) / float64(space.Logs) }
	perTransaction := func(bytes int64) float64 { return float64(bytes) / float64(space.Transactions) }
	b.ReportMetric(perLog(g.Logs), "logsB/log")
	b.ReportMetric(perLog(g.Index), "indexB/log")
	b.ReportMetric(perTransaction(g.Locators), "locatorB/tx")
	b.ReportMetric(perTransaction(g.Cold), "coldB/tx")
	b.ReportMetric(perLog(g.Rest), "restB/log")
	if g.Senders > 0 {
		b.ReportMetric(perTransaction(g.Senders), "sendersB/tx")
	}
	b.ReportMetric(float64(space.DataBytes+space.IndexBytes+space.SendersBytes)/float64(space.Blocks), "B/block")
}
