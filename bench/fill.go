package bench

import (
	"context"
	"fmt"
	"time"

	"github.com/leani-go/leani/chain"
	"github.com/leani-go/leani/ingest"
)

// FillOptions configure Fill.
type FillOptions struct {
	Workers     int   // goroutines that decode and verify; 0 is GOMAXPROCS
	MemoryBytes int64 // of blocks between source and store; 0 is the default of package ingest
	Senders     bool  // fill the senders, too
}

// FillResult is what a fill did and cost.
type FillResult struct {
	Blocks  uint64
	Elapsed time.Duration
	CPU     time.Duration // of the whole process meanwhile
}

// BlocksPerSecond is the rate by the clock.
func (r FillResult) BlocksPerSecond() float64 { return float64(r.Blocks) / r.Elapsed.Seconds() }

// BlocksPerCPUSecond is the rate by processor time.
func (r FillResult) BlocksPerCPUSecond() float64 { return float64(r.Blocks) / r.CPU.Seconds() }

// Fill reads the blocks of a chain that the store does not hold from era files, compares the digests
// of the files, verifies all roots, and commits sealed data and index files, as `leani history fill`
// does.
func Fill(ctx context.Context, s *Store, c *Chain, o FillOptions) (FillResult, error) {
	ranges := c.Missing(s)
	start, cpu := time.Now(), ProcessorTime()
	done, err := ingest.Fill(ctx, ingest.Options{
		Source: c.Source,
		Ranges: ranges,
		Sink: func(ctx context.Context, committed func(chain.Range)) ingest.Sink {
			return s.History.NewWriter(ctx, committed)
		},
		Workers: o.Workers, MemoryBytes: o.MemoryBytes,
	})
	if err == nil && o.Senders {
		err = s.History.FillSenders(ctx, nil)
	}
	r := FillResult{Blocks: done.Committed, Elapsed: time.Since(start), CPU: ProcessorTime() - cpu}
	if left := c.Missing(s); err == nil && len(left) > 0 {
		err = fmt.Errorf("fill %v: %v were not committed", ranges, left)
	}
	return r, err
}
