package ingest

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"github.com/leani-go/leani/chain"
)

// Defaults of Options.
const (
	// DefaultMemoryBytes is enough to keep tens of cores busy on full Mainnet blocks.
	DefaultMemoryBytes = 256 << 20
	// DefaultMaximumBlockBytes is several times what a block of 100 M gas can hold.
	DefaultMaximumBlockBytes = 64 << 20
	// DefaultChunksPerWorker lets workers go on for a while when the sink is busy.
	DefaultChunksPerWorker = 8
	// DefaultCutAfter is the work that a kill loses at most.
	DefaultCutAfter = 2 * time.Second
	// DefaultSealGrace is shorter than the ten seconds that service managers and container
	// runtimes commonly wait before they kill.
	DefaultSealGrace = 8 * time.Second
)

// Options configure Fill. Source and Sink are required; the zero value of everything else is the
// default.
type Options struct {
	// Source is where blocks are read.
	Source Source
	// Ranges are the blocks to fill: ascending, without overlap, and without those that are
	// retained already. Empty ones mean nothing; ranges that touch are one.
	Ranges []chain.Range
	// Sink makes the sink of a run that has something to do; Fill closes it. The context outlives
	// that of Fill by SealGrace, so that what was added can still become durable. The sink calls
	// committed with blocks that became durable, on any goroutine, until Close returns.
	Sink func(ctx context.Context, committed func(chain.Range)) Sink
	// ExpectedParent is asked at both ends of each range, what is retained beside it requires: the
	// hash that block n-1 must have so that block n can follow it. At the start of a range that is
	// the hash of the retained block below, at its end the parent hash of the retained block above.
	// False means that nothing is retained there. Nil never knows.
	ExpectedParent func(n uint64) (common.Hash, bool)

	// Workers is the number of goroutines that decode and verify. Default GOMAXPROCS.
	Workers int
	// SourceConcurrency is the number of reads from the source at a time. Default Workers.
	SourceConcurrency int
	// ActiveChunks bounds the chunks between the planner and the sink. Fewer than Workers leave
	// some of those idle. Default DefaultChunksPerWorker for each worker.
	ActiveChunks int
	// MemoryBytes bounds the memory of all chunks: stored and decoded bytes and the structures
	// that point into them. A single chunk is admitted whatever its size. Default
	// DefaultMemoryBytes.
	MemoryBytes int64
	// MaximumBlockBytes bounds the decoded header, body and receipts of one block together; a
	// larger block ends the run with an error for which errors.Is(err, era.ErrTooLarge) holds.
	// Default DefaultMaximumBlockBytes, and at most 1 GiB whatever is written here.
	MaximumBlockBytes int64
	// CutAfter is how long a run may be built before it is cut. Default DefaultCutAfter.
	CutAfter time.Duration
	// SealGrace is how long the last commit may take after ctx was cancelled. Default
	// DefaultSealGrace.
	SealGrace time.Duration

	// Progress is told how far the run is, a few times a second to thousands of times. Calls do not
	// overlap, but come from several goroutines. It must be quick. Nil tells nobody.
	Progress func(Result)
	// After is the clock: it delivers once a time has passed. Default time.After.
	After func(time.Duration) <-chan time.Time
}

// Result is what a run has done.
type Result struct {
	Blocks    uint64 // handed to the sink
	Bytes     uint64 // of these blocks, as stored in the source
	Committed uint64 // blocks that are durable
}

func (o Options) withDefaults() Options {
	setDefault(&o.Workers, runtime.GOMAXPROCS(0))
	setDefault(&o.SourceConcurrency, o.Workers)
	setDefault(&o.ActiveChunks, DefaultChunksPerWorker*o.Workers)
	setDefault(&o.MemoryBytes, DefaultMemoryBytes)
	setDefault(&o.MaximumBlockBytes, DefaultMaximumBlockBytes)
	setDefault(&o.CutAfter, DefaultCutAfter)
	setDefault(&o.SealGrace, DefaultSealGrace)
	if o.ExpectedParent == nil {
		o.ExpectedParent = func(uint64) (common.Hash, bool) { return common.Hash{}, false }
	}
	if o.Progress == nil {
		o.Progress = func(Result) {}
	}
	if o.After == nil {
		o.After = time.After
	}
	return o
}

func setDefault[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

// validate reports everything that is wrong with options whose defaults are filled in.
func (o Options) validate() error {
	var problems []error
	if o.Source == nil {
		problems = append(problems, errors.New("option Source is missing"))
	}
	if o.Sink == nil {
		problems = append(problems, errors.New("option Sink is missing"))
	}
	for _, field := range []struct {
		name  string
		value int64
	}{
		{"Workers", int64(o.Workers)}, {"SourceConcurrency", int64(o.SourceConcurrency)},
		{"ActiveChunks", int64(o.ActiveChunks)}, {"MemoryBytes", o.MemoryBytes},
		{"MaximumBlockBytes", o.MaximumBlockBytes},
		{"CutAfter", int64(o.CutAfter)}, {"SealGrace", int64(o.SealGrace)},
	} {
		if field.value < 0 {
			problems = append(problems, fmt.Errorf("option %s is negative: %d", field.name, field.value))
		}
	}
	_, err := joinRanges(o.Ranges)
	return errors.Join(append(problems, err)...)
}

// joinRanges leaves out empty ranges and joins those that touch.
func joinRanges(ranges []chain.Range) ([]chain.Range, error) {
	var joined []chain.Range
	for _, r := range ranges {
		if r.Empty() {
			continue
		}
		if n := len(joined); n > 0 && r.From < joined[n-1].To {
			return nil, fmt.Errorf("option Ranges: %v begins before the end of %v", r, joined[n-1])
		} else if n > 0 && r.From == joined[n-1].To {
			joined[n-1].To = r.To
			continue
		}
		joined = append(joined, r)
	}
	return slices.Clip(joined), nil
}
