package ondemand

import (
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/leani-go/leani/chain"
	"github.com/leani-go/leani/ingest"
)

// Limits bound requests. All are required.
type Limits struct {
	// Blocks is how many blocks one request may have.
	Blocks uint64
	// InputBytes bounds the blocks of one request as the source stores them.
	InputBytes int64
	// BlockBytes bounds one block, decoded.
	BlockBytes int64
	// BufferedBlocks is how many decoded blocks one request holds at a time, of BlockBytes all together.
	BufferedBlocks int
	// Requests is how many requests run at a time, Waiting how many may wait for that.
	Requests, Waiting int
	// Time bounds a request, waiting included.
	Time time.Duration
	// Reads bounds the parallel reads of one file.
	Reads int
	// OpenFiles is how many files are kept open for later requests.
	OpenFiles int
}

// DefaultLimits are what the parts of a request may take where memory does not set less.
func DefaultLimits() Limits {
	return Limits{
		Blocks: 1024, InputBytes: 512 << 20, BlockBytes: 32 << 20, BufferedBlocks: 8, Requests: 2, Waiting: 64,
		Time: 60 * time.Second, Reads: 4, OpenFiles: 8,
	}
}

// residentPerBlock is what a request holds for each byte that a block may take: stored, decoded, and half as much for
// the structures that point into it.
const residentPerBlock = 3

// Within lowers the limits so that all requests together hold no more than memory bytes.
func (l Limits) Within(memory int64) Limits {
	l.BlockBytes = min(l.BlockBytes, memory/int64(l.Requests)/residentPerBlock)
	return l
}

// TemporaryFiles is how many files of mirrors may be on disk for n requests at a time: each reads one, and closes those
// that nobody reads before it fetches another.
func TemporaryFiles(requests int) int { return requests }

// Threads is how many threads of low priority n requests at a time may keep busy: besides theirs one that makes a copy, and one that
// looks for damage.
func Threads(requests int) int { return requests + 2 }

// Source is a history source.
type Source struct {
	ingest.Candidate
	// Copied tells that the files of the source are copied to a place of this process when they are opened. The names of other files
	// are paths.
	Copied bool
}

// Options configure a Fetcher.
type Options struct {
	// Sources are asked by priority, those of equal priority in order.
	Sources []Source
	ChainID uint64
	// Check, if set, refuses blocks of other chains.
	Check  func(b *chain.Block) error
	Limits Limits
	Logger *slog.Logger

	// Now is the clock by which failures of sources are forgotten. Default time.Now.
	Now func() time.Time
}

// validate reports everything that is wrong.
func (o *Options) validate() error {
	var problems []error
	for _, field := range []struct {
		name  string
		value int64
	}{
		{"Blocks", int64(min(o.Limits.Blocks, 1<<62))}, {"InputBytes", o.Limits.InputBytes}, {"BlockBytes", o.Limits.BlockBytes},
		{"BufferedBlocks", int64(o.Limits.BufferedBlocks)}, {"Requests", int64(o.Limits.Requests)},
		{"Time", int64(o.Limits.Time)}, {"Reads", int64(o.Limits.Reads)}, {"OpenFiles", int64(o.Limits.OpenFiles)},
	} {
		if field.value < 1 {
			problems = append(problems, fmt.Errorf("limit %s: got %d, want at least 1", field.name, field.value))
		}
	}
	for i, s := range o.Sources {
		for _, other := range o.Sources[:i] {
			if other.ID == s.ID {
				problems = append(problems, fmt.Errorf("two sources have the id %q", s.ID))
			}
		}
	}
	return errors.Join(problems...)
}
