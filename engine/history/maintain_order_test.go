package history

import (
	"context"
	"log/slog"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// onSenders is a log handler that calls itself when the senders of a file are stored.
type onSenders func(ctx context.Context)

func (f onSenders) Enabled(context.Context, slog.Level) bool { return true }
func (f onSenders) WithAttrs([]slog.Attr) slog.Handler       { return f }
func (f onSenders) WithGroup(string) slog.Handler            { return f }

func (f onSenders) Handle(ctx context.Context, r slog.Record) error {
	if r.Message == "senders stored" {
		f(context.WithoutCancel(ctx))
	}
	return nil
}

// TestMaintainSealsBetweenSenders: recent blocks that become final are sealed before all the senders of what is stored
// already are there.
//
// STO-005
func TestMaintainSealsBetweenSenders(t *testing.T) {
	t.Parallel()
	c := newBranchingChain(5, 0, 64)
	opts := smallOptions(8)
	opts.Recent = RecentOptions{MinimumBlocks: 1, SoftBytes: 1}
	var (
		s      *Store
		x      Extension
		stored int
		recent []uint64 // the number of recent blocks, after each file of senders
	)
	opts.Logger = slog.New(onSenders(func(ctx context.Context) {
		if stored++; stored == 1 {
			if err := s.Extend(ctx, &Extension{Finalized: &x.Apply[4].BlockRef}); err != nil {
				t.Error(err)
			}
		}
		snap := s.engine.Acquire()
		defer snap.Release()
		recent = append(recent, snap.HotRange().Len())
	}))
	e, s2, err := openSmall(vfs.NewMem(), 2, opts)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	}()
	s = s2
	write(t, s, c.blocks)
	x = c.branch(0, 6)
	if err := s.Extend(t.Context(), &Extension{Apply: x.Apply}); err != nil {
		t.Fatal(err)
	}
	if err := s.maintainOnce(t.Context(), MaintainOptions{Senders: true}); err != nil {
		t.Fatal(err)
	}
	if len(recent) < 3 || recent[0] != 6 || recent[1] != 1 {
		t.Errorf("recent blocks after each file of senders: %v", recent)
	}
	if err := c.verifyAgainst(t.Context(), s, all(len(c.blocks))); err != nil {
		t.Error(err)
	}
}
