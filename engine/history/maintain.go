package history

import (
	"context"
	"errors"
	"time"

	"github.com/leani-go/leani/chain"
	"github.com/leani-go/leani/engine"
	"github.com/leani-go/leani/internal/corrupt"
)

// MaintainOptions choose what Maintain does.
type MaintainOptions struct {
	// Wake, when it receives, says that blocks were committed. A nil channel never does.
	Wake <-chan struct{}
	// Senders fills the senders of data files as well.
	Senders bool
}

// retryAfter is the pause after an error of Maintain, long enough for a disk to be freed or replaced.
const retryAfter = time.Minute

// Maintain does the work that a backfill leaves for later until the context ends, and then returns nil:
// it merges index files, packs small data files, and fills senders. Queries answer the same with and
// without it, only slower. It logs errors and tries again later; only a store that takes no more writes
// ends it early, with that error. Run it on a goroutine of low priority.
func (s *Store) Maintain(ctx context.Context, opts MaintainOptions) error {
	for {
		err := s.maintainOnce(ctx, opts)
		if ctx.Err() != nil {
			return nil
		}
		if failed := s.engine.Err(); failed != nil {
			return failed
		}
		var retry <-chan time.Time
		if err != nil {
			s.opts.Logger.Error("background work failed and will be tried again", "cause", err, "after", retryAfter)
			retry = time.After(retryAfter)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-opts.Wake:
		case <-retry:
		}
	}
}

func (s *Store) maintainOnce(ctx context.Context, opts MaintainOptions) error {
	for {
		_, sealErr := s.SealRecent(ctx) // where there is no room for it, merging may make some
		if _, err := s.Compact(ctx); err != nil {
			return errors.Join(sealErr, err)
		}
		if !opts.Senders {
			return sealErr
		}
		more, err := s.fillSendersOnce(ctx, func(r chain.Range) { s.opts.Logger.Debug("senders stored", "from", r.From, "to", r.To) })
		if err != nil || !more {
			return errors.Join(sealErr, err)
		}
		// The senders of a long history take hours, for which recent blocks cannot wait.
	}
}

// setAside leaves files out of later background work when err says that one of them is damaged, and tells
// whether it does. Queries still use what is sound of them, and Verify names the damage. The caller holds
// compacting.
func (s *Store) setAside(rows []*engine.FileRow, err error) bool {
	if !corrupt.Is(err) {
		return false
	}
	s.opts.Logger.Error("a damaged file is left out of background work: run `leani db verify`", "cause", err)
	for _, r := range rows {
		s.damaged[r] = struct{}{}
	}
	return true
}

// sound are the rows that were not set aside.
func (s *Store) sound(rows []*engine.FileRow) []*engine.FileRow {
	if len(s.damaged) == 0 {
		return rows
	}
	out := make([]*engine.FileRow, 0, len(rows))
	for _, r := range rows {
		if _, bad := s.damaged[r]; !bad {
			out = append(out, r)
		}
	}
	return out
}
