package history

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/leani-go/leani/engine"
	"github.com/leani-go/leani/internal/corrupt"
	"github.com/leani-go/leani/keys"
)

// Defaults of ScrubOptions.
const (
	// DefaultScrubRate reads 100 GB in seven hours and is lost beside what a disk can do.
	DefaultScrubRate = 4 << 20
	// DefaultScrubPause is between two passes over a store that is small.
	DefaultScrubPause = time.Hour
	// scrubPatience is the shortest wait between pages.
	scrubPatience = 20 * time.Millisecond
)

// ScrubOptions configure Scrub.
type ScrubOptions struct {
	// BytesPerSecond bounds what is read; 0 is DefaultScrubRate.
	BytesPerSecond int64
	// Pause is the time between two passes over all files; 0 is DefaultScrubPause.
	Pause time.Duration
	// OnFinding is told about each damaged file, once; it may be nil.
	OnFinding func(row *engine.FileRow, err error)

	// sleep replaces waiting in tests.
	sleep func(ctx context.Context, d time.Duration)
}

// ScrubStatus counts what Scrub has done since the store was made.
type ScrubStatus struct {
	Passes   uint64 // over all files
	Files    uint64
	Bytes    uint64
	Findings uint64 // damaged files
}

// scrubCounts are the numbers of ScrubStatus.
type scrubCounts struct{ passes, files, bytes, findings atomic.Uint64 }

// ScrubStatus gives the counts so far.
func (s *Store) ScrubStatus() ScrubStatus {
	return ScrubStatus{s.scrubbed.passes.Load(), s.scrubbed.files.Load(), s.scrubbed.bytes.Load(), s.scrubbed.findings.Load()}
}

// Scrub reads every page of every segment file again and again, slowly, and compares it with its checksum,
// until the context ends; it then returns nil. Disks lose bits in places that nobody asks for: a finding is
// logged, counted and left out of background work while there is still a source to fill it from again. It
// changes nothing and uses no page of the cache. Run it on a goroutine of low priority.
//
// A read that fails is logged too; the file comes again with the next pass.
func (s *Store) Scrub(ctx context.Context, opts ScrubOptions) error {
	if opts.BytesPerSecond <= 0 {
		opts.BytesPerSecond = DefaultScrubRate
	}
	if opts.Pause <= 0 {
		opts.Pause = DefaultScrubPause
	}
	if opts.sleep == nil {
		opts.sleep = sleep
	}
	found := make(map[[32]byte]bool)
	for ctx.Err() == nil {
		snap := s.engine.Acquire()
		var rows []*engine.FileRow
		for _, kind := range keys.Kinds() {
			rows = append(rows, snap.Rows(kind)...)
		}
		// Files are not held for the hours of a pass: one that was replaced meanwhile is left out.
		snap.Release()
		for _, row := range rows {
			if ctx.Err() != nil {
				return nil
			}
			s.scrubRow(ctx, row, opts, found)
		}
		if ctx.Err() == nil {
			s.scrubbed.passes.Add(1)
			opts.sleep(ctx, opts.Pause)
		}
	}
	return nil
}

// scrubRow reads one file if it is still live.
func (s *Store) scrubRow(ctx context.Context, row *engine.FileRow, opts ScrubOptions, found map[[32]byte]bool) {
	snap := s.engine.Acquire()
	defer snap.Release()
	if !live(snap, row) || found[row.Digest] {
		return
	}
	f, err := s.openApart(row)
	if err == nil {
		var due time.Duration // waited for in one piece: pages are small
		err = f.CheckPages(ctx, func(n int) {
			s.scrubbed.bytes.Add(uint64(n))
			due += time.Duration(float64(n) / float64(opts.BytesPerSecond) * float64(time.Second))
			if due >= scrubPatience {
				opts.sleep(ctx, due)
				due = 0
			}
		})
		opts.sleep(ctx, due)
	}
	switch {
	case ctx.Err() != nil:
		return
	case corrupt.Is(err):
		found[row.Digest] = true
		s.scrubbed.findings.Add(1)
		s.compacting.Lock()
		s.setAside([]*engine.FileRow{row}, err)
		s.compacting.Unlock()
		if opts.OnFinding != nil {
			opts.OnFinding(row, err)
		}
	case err != nil:
		s.opts.Logger.Error("a file could not be read to check it", "file", row.String(), "cause", err)
		return
	}
	s.scrubbed.files.Add(1)
}

// live tells whether a snapshot lists a row.
func live(snap *engine.Snapshot, row *engine.FileRow) bool {
	for _, r := range snap.Rows(row.Kind) {
		if r == row {
			return true
		}
	}
	return false
}

// sleep waits, or until the context ends.
func sleep(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}
