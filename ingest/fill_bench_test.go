package ingest

import (
	"context"
	"fmt"
	"syscall"
	"testing"
	"time"

	"github.com/leani-go/leani/chain"
	"github.com/leani-go/leani/internal/shareddata"
)

// BenchmarkFill asks what the pipeline gives from file to sink, with the digest of the file and all
// roots, when the sink costs nothing, and what a second worker adds. Blocks have about 228
// transactions, 432 logs and 174 KB. An operation is one fill of all 800 blocks.
func BenchmarkFill(b *testing.B) {
	source, err := OpenEraFolder(shareddata.Path(b, "chainlab-800"), "chainlab")
	if err != nil {
		b.Fatal(err)
	}
	all := source.Catalog().Entries()[0]
	for _, workers := range []int{1, 2} {
		b.Run(fmt.Sprintf("workers=%d", workers), func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(all.Size)
			cpu := processorTime(b)
			for b.Loop() {
				_, err := Fill(context.Background(), Options{
					Source: source, Ranges: []chain.Range{all.Range}, Workers: workers,
					Sink: func(context.Context, func(chain.Range)) Sink { return discard{} },
				})
				if err != nil {
					b.Fatal(err)
				}
			}
			blocks := float64(b.N) * float64(all.Range.Len())
			cpu = processorTime(b) - cpu
			b.ReportMetric(blocks/b.Elapsed().Seconds(), "blocks/s")
			b.ReportMetric(float64(cpu.Microseconds())/blocks, "cpu-us/block")
			b.ReportMetric(cpu.Seconds()/b.Elapsed().Seconds(), "cores")
		})
	}
}

// processorTime is what the process has used so far.
func processorTime(tb testing.TB) time.Duration {
	tb.Helper()
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		tb.Fatal(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// discard is a sink that drops blocks.
type discard struct{}

func (discard) Add(*chain.Block) error { return nil }
func (discard) Cut() error             { return nil }
func (discard) Pending() int           { return 0 }
func (discard) Close(bool) error       { return nil }
