package history

import (
	"context"
	"errors"

	"github.com/leani-go/leani/chain"
)

// MaintainOptions choose what Maintain does.
type MaintainOptions struct {
	// Wake, when it receives, says that blocks were committed. A nil channel never does.
	Wake <-chan struct{}
	// Senders fills the senders of data files as well.
	Senders bool
}

// Maintain does the work that a backfill leaves for later until the context ends, and then returns nil:
// it merges index files, packs small data files, and fills senders. Queries answer the same with and
// without it, only slower. Run it on a goroutine of low priority.
func (s *Store) Maintain(ctx context.Context, opts MaintainOptions) error {
	for {
		err := s.maintainOnce(ctx, opts)
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-opts.Wake:
		}
	}
}

func (s *Store) maintainOnce(ctx context.Context, opts MaintainOptions) error {
	if _, err := s.Compact(ctx); err != nil {
		return err
	}
	if !opts.Senders {
		return nil
	}
	return s.FillSenders(ctx, func(r chain.Range) { s.opts.Logger.Debug("senders stored", "from", r.From, "to", r.To) })
}

// ErrBudget is returned when storing more blocks would pass a byte budget. What was stored stays.
var ErrBudget = errors.New("byte budget of the raw history is used up")
