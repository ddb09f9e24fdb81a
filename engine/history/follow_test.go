package history

import (
	"context"
	"errors"
	"testing"

	"github.com/leani-go/leani/chain"
)

// TestFollow undoes blocks before their changes are read: every view shows the chain of its change, with the
// logs of blocks that are gone since; a follower that never reads is told so and keeps nothing.
//
// INV-02 INV-23
func TestFollow(t *testing.T) {
	t.Parallel()
	c := newBranchingChain(5, 10, 4)
	s := smallHot(t)
	write(t, s, c.blocks)
	f, view, err := s.Follow()
	if err != nil {
		t.Fatal(err)
	}
	idle, first, err := s.Follow()
	if err != nil {
		t.Fatal(err)
	}
	first.Close()
	var made []Extension
	for i := range 6 {
		x := c.branch(i%3, 3)
		if err := s.Extend(t.Context(), &x); err != nil {
			t.Fatal(err)
		}
		made = append(made, x)
	}
	if f.Refresh() != nil {
		t.Error("a view that is newer than the changes that wait")
	}
	for i, x := range made {
		if got := f.Waiting(); got != len(made)-i {
			t.Errorf("%d changes wait after %d of %d", got, i, len(made))
		}
		change, next, err := f.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		var b chain.Block
		for j, ref := range x.Undo {
			if err := view.LoadBlock(t.Context(), ref.Number, chain.PartReceipts, &b); err != nil || b.Hash != ref.Hash || change.Undone[j] != ref {
				t.Errorf("change %d: undone %s: got %s %v", i, ref, b.BlockRef, err)
			}
		}
		view.Close()
		view = next
		for j, want := range x.Apply {
			if err := view.LoadBlock(t.Context(), want.Number, chain.PartReceipts, &b); err != nil || b.Hash != want.Hash ||
				len(b.Logs) != len(want.Logs) || change.Applied[j] != want.BlockRef {
				t.Errorf("change %d: applied %s: got %s %v", i, want.BlockRef, b.BlockRef, err)
			}
		}
	}
	if fresh := f.Refresh(); fresh == nil {
		t.Error("no newer view")
	} else {
		fresh.Close()
	}
	view.Close()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := f.Next(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	f.Close()
	f.Close()
	for range feedLength {
		s.deliver(&Change{Applied: []chain.BlockRef{{}}})
	}
	if _, _, err := idle.Next(t.Context()); !errors.Is(err, ErrLagged) {
		t.Errorf("got %v", err)
	}
	if len(idle.mu.queue) != 0 {
		t.Error("a follower that fell behind keeps views")
	}
	idle.Close()
}
