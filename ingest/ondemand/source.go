package ondemand

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/leani-go/leani/chain"
	"github.com/leani-go/leani/ingest"
	"github.com/leani-go/leani/ingest/remote"
)

// source is a Source with what is known of it.
type source struct {
	Source
	// locate, if set, looks for the damage in a file and closes it.
	locate func(name string, file ingest.File, difference error)
	now    func() time.Time

	turn   chan struct{} // capacity 1: methods of a source are called by one goroutine at a time
	opened ingest.Source // nil before it is needed; guarded by turn
	list   uint64        // counts the lists of files that were read; guarded by turn
	since  time.Time     // when the list was read, or could not be; guarded by turn
	failed time.Time     // when it could not be read, or was on another chain, the last time; guarded by the Fetcher's mu
	told   string        // the failure that was logged last, and when; guarded by the Fetcher's mu
	toldAt time.Time
}

const (
	// renewAfter is how old the list of a source's files has to be to be read again when blocks are missing in it, or a
	// file is not what it says.
	renewAfter = time.Minute
	// asideFor is how long a source that could not be read, or was on another chain, is asked after the others.
	asideFor = 30 * time.Second
	// tellAgainAfter is when a failure is logged again that clients meet again and again.
	tellAgainAfter = time.Minute
)

// enter takes the turn.
func (s *source) enter(ctx context.Context) error {
	select {
	case s.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (s *source) leave() { <-s.turn }

// plan finds the files of runs, and tells which list they are from. Blocks that no file has are an error.
func (s *source) plan(ctx context.Context, runs []chain.Range) (extents []ingest.Extent, list uint64, err error) {
	if err := s.enter(ctx); err != nil {
		return nil, 0, err
	}
	defer s.leave()
	if s.opened == nil {
		if err := s.open(ctx); err != nil {
			return nil, 0, err
		}
	}
	extents, err = s.planRenewing(ctx, runs)
	return extents, s.list, err
}

// planRenewing plans with a list that is read anew when blocks are missing in an old one.
func (s *source) planRenewing(ctx context.Context, runs []chain.Range) ([]ingest.Extent, error) {
	extents, err := s.planOpen(ctx, runs)
	var holes ingest.Holes
	if !errors.As(err, &holes) || s.now().Sub(s.since) < renewAfter {
		return extents, err
	}
	if err := s.open(ctx); err != nil {
		return nil, err
	}
	return s.planOpen(ctx, runs)
}

// renew reads the list anew if it is old, after a failure that may come from that: a file of it was replaced or renamed since.
// It tells whether there is a newer list than the one that was planned with.
func (s *source) renew(ctx context.Context, list uint64, failure error) bool {
	var own *readerError
	if errors.As(failure, &own) || remote.Unavailable(failure) {
		return false
	}
	switch reasonOf(failure) {
	case Failed, Invalid, NotHeld:
	default:
		return false
	}
	if s.enter(ctx) != nil {
		return false
	}
	defer s.leave()
	if s.list != list {
		return true
	}
	if s.now().Sub(s.since) < renewAfter {
		return false
	}
	if s.open(ctx) != nil { // the failure says what is wrong
		s.since = s.now()
		return false
	}
	return true
}

// open opens the source, with the list that it has now. When that fails an older list stays.
func (s *source) open(ctx context.Context) error {
	opened, err := s.Open(ctx)
	if err != nil {
		return err
	}
	err = s.close()
	s.opened, s.since = opened, s.now()
	s.list++
	return err
}

func (s *source) planOpen(ctx context.Context, runs []chain.Range) ([]ingest.Extent, error) {
	var all []ingest.Extent
	for _, r := range runs {
		extents, err := ingest.PlanAll(ctx, s.opened, r)
		if err != nil {
			return nil, err
		}
		all = append(all, extents...)
	}
	return all, nil
}

// openFile opens a file that plan named.
func (s *source) openFile(ctx context.Context, name string, limits ingest.Limits) (ingest.File, error) {
	if err := s.enter(ctx); err != nil {
		return nil, err
	}
	defer s.leave()
	return s.opened.Open(ctx, name, limits)
}

// close closes the source. The turn is held, or nobody uses it any more.
func (s *source) close() error {
	closer, ok := s.opened.(io.Closer)
	s.opened = nil
	if !ok {
		return nil
	}
	if err := closer.Close(); err != nil {
		return fmt.Errorf("close source %s: %w", s.ID, err)
	}
	return nil
}
