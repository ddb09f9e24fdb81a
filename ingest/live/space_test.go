package live

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/leani-go/leani/chain"
	"github.com/leani-go/leani/engine"
	"github.com/leani-go/leani/engine/history"
)

// stopAt is a log handler that notes a reason and calls stop when the lane says that it waits.
type stopAt struct {
	slog.Handler
	stop   func()
	reason *string
}

func (h stopAt) Enabled(context.Context, slog.Level) bool { return true }

func (h stopAt) Handle(_ context.Context, r slog.Record) error {
	r.Attrs(func(a slog.Attr) bool {
		if a.Key == "reason" {
			*h.reason = a.Value.String()
			h.stop()
		}
		return true
	})
	return nil
}

// TestWaitsForSpace: a lane that meets the budget of the store says so and waits instead of ending, and a store with
// more room takes the same events to their end.
//
// STO-005
func TestWaitsForSpace(t *testing.T) {
	fs := vfs.NewMem()
	blocks := newLab(t, history.RecentOptions{}).base[:4]
	run := func(ctx context.Context, maximum int64, logger *slog.Logger) (chain.Range, error) {
		e, err := engine.Open(engine.Options{Dir: "store", FS: fs, ChainID: 1, MaximumBytes: maximum})
		if err != nil {
			t.Fatal(err)
		}
		defer func() {
			if err := e.Close(); err != nil {
				t.Error(err)
			}
		}()
		store := history.New(e, history.Options{TargetBlocks: 8, CacheBytes: 1 << 20})
		err = New(Options{Store: store, Source: &list{events: each(blocks)}, Retry: time.Millisecond, Logger: logger}).Run(ctx)
		snap := e.Acquire()
		defer snap.Release()
		return snap.HotRange(), err
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	reason := ""
	got, err := run(ctx, 1, slog.New(stopAt{stop: stop, reason: &reason}))
	if !errors.Is(err, context.Canceled) || reason != "physical_storage_limit" || !got.Empty() {
		t.Errorf("got %v, reason %q, blocks %v", err, reason, got)
	}
	if got, err = run(t.Context(), 0, nil); err != nil || got != (chain.Range{From: 0, To: 4}) {
		t.Errorf("got %v, blocks %v", err, got)
	}
}
