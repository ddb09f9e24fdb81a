package ingest

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"syscall"
	"testing"
	"time"

	"github.com/leani-go/leani/chain"
	"github.com/leani-go/leani/ingest/remote"
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

// BenchmarkFillMirror asks what a mirror costs beside a folder: the same fill with the file fetched over a
// loopback connection first, from a server in the same process, which takes part of the processor time.
func BenchmarkFillMirror(b *testing.B) {
	server := httptest.NewServer(http.FileServer(http.Dir(shareddata.Path(b, "chainlab-800"))))
	defer server.Close()
	temporary := NewTemporary(b.TempDir(), 1<<30)
	folder, err := OpenEraFolder(shareddata.Path(b, "chainlab-800"), "chainlab")
	if err != nil {
		b.Fatal(err)
	}
	all := folder.Catalog().Entries()[0]
	b.ReportAllocs()
	b.SetBytes(all.Size)
	cpu := processorTime(b)
	for b.Loop() {
		_, err := FillFrom(context.Background(), []Candidate{{ID: "mirror", Open: func(ctx context.Context) (Source, error) {
			return openOrNil(OpenEraMirror(ctx, server.URL+"/", "chainlab", temporary, remote.Options{}))
		}}}, Options{
			Ranges: []chain.Range{all.Range}, Workers: 2,
			Sink: func(context.Context, func(chain.Range)) Sink { return discard{} },
		}, nil)
		if err != nil {
			b.Fatal(err)
		}
	}
	blocks := float64(b.N) * float64(all.Range.Len())
	b.ReportMetric(blocks/b.Elapsed().Seconds(), "blocks/s")
	b.ReportMetric(float64((processorTime(b)-cpu).Microseconds())/blocks, "cpu-us/block")
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
