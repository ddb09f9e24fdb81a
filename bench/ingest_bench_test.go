package bench

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/leani-go/leani/chain"
	"github.com/leani-go/leani/codec"
	"github.com/leani-go/leani/internal/shareddata"
)

// BenchmarkIngest asks what a backfill costs from era files to sealed and committed segment files, with
// the digests of the files and all roots, with one worker and with two, without senders and with them.
// An operation fills a new store with the whole test chain. "blocks/cpu-s" is by the processor time of
// the whole process; the bytes are those of the files: logsB/log log pages
// without transaction hashes and their dictionaries, indexB/log terms and postings, coldB/tx headers,
// bodies, transactions and receipts.
func BenchmarkIngest(b *testing.B) {
	c := testChain(b)
	for _, senders := range []bool{false, true} {
		for _, workers := range []int{1, 2} {
			if senders && workers == 1 {
				continue // one more minute, and nothing new: senders are filled after the blocks
			}
			b.Run(fmt.Sprintf("Senders=%t/Workers=%d", senders, workers), func(b *testing.B) {
				benchmarkIngest(b, c, codec.Snappy, FillOptions{Workers: workers, Senders: senders})
			})
		}
	}
}

// BenchmarkIngestCompression asks how space and time of a backfill depend on the compression of cold
// pages: headers, bodies, transactions and receipts.
func BenchmarkIngestCompression(b *testing.B) {
	c := testChain(b)
	for _, compression := range []codec.Compression{codec.None, codec.Snappy, codec.Deflate, codec.Zstd} {
		b.Run(compression.String(), func(b *testing.B) { benchmarkIngest(b, c, compression, FillOptions{}) })
	}
}

// BenchmarkIngestMainnet asks the same of the six Mainnet blocks that are part of the repository, where
// opening a store and committing weigh more than blocks do: it shows changes, not rates.
func BenchmarkIngestMainnet(b *testing.B) {
	c, err := OpenEras(filepath.Join(shareddata.Root(b), "testdata", "era", "mainnet-mini"), chain.Mainnet())
	if err != nil {
		b.Fatal(err)
	}
	benchmarkIngest(b, c, codec.Snappy, FillOptions{Senders: true})
}

func benchmarkIngest(b *testing.B, c *Chain, compression codec.Compression, o FillOptions) {
	var total FillResult
	var space Space
	var columns Columns
	peak := int64(0)
	ResetPeakMemory()
	for b.Loop() {
		s, err := OpenStore(StoreOptions{Dir: b.TempDir(), ChainID: c.Network.ChainID(), Compression: compression})
		if err != nil {
			b.Fatal(err)
		}
		r, err := Fill(b.Context(), s, c, o)
		if err != nil {
			b.Fatal(err)
		}
		total.Blocks += r.Blocks
		total.Elapsed += r.Elapsed
		total.CPU += r.CPU
		b.StopTimer()
		peak = max(peak, PeakMemory())
		space = s.Space()
		if columns == nil {
			if columns, err = s.Columns(b.Context()); err != nil {
				b.Fatal(err)
			}
			ResetPeakMemory()
		}
		if err := s.Close(); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
	}
	b.ReportMetric(total.BlocksPerSecond(), "blocks/s")
	b.ReportMetric(total.BlocksPerCPUSecond(), "blocks/cpu-s")
	b.ReportMetric(total.CPU.Seconds()/total.Elapsed.Seconds(), "cores")
	b.ReportMetric(float64(peak)/(1<<20), "peak-MiB")
	reportColumns(b, columns, space)
}
