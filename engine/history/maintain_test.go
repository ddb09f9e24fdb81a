package history

import (
	"errors"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/leani-go/leani/engine"
)

// TestMaintainWithoutRoom: recent blocks that cannot be sealed, because the budget of the history is used up, do not keep
// files from being merged, which makes room.
func TestMaintainWithoutRoom(t *testing.T) {
	t.Parallel()
	c := newBranchingChain(5, 0, 32)
	opts := hotOptions(8)
	opts.Recent = RecentOptions{MinimumBlocks: 1, SoftBytes: 1}
	e, s, err := openSmall(vfs.NewMem(), 2, opts)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	}()
	for i := 0; i < len(c.blocks); i += 2 {
		write(t, s, c.blocks[i:i+2])
	}
	x := c.branch(0, 6)
	x.Finalized = &x.Apply[4].BlockRef
	if err := s.Extend(t.Context(), &x); err != nil {
		t.Fatal(err)
	}
	files := func() int {
		snap := e.Acquire()
		defer snap.Release()
		return len(snap.Rows(engine.KindData))
	}
	before := files()
	s.opts.MaximumBytes = s.Bytes()
	if err := s.maintainOnce(t.Context(), MaintainOptions{}); !errors.Is(err, ErrBudget) {
		t.Errorf("got %v", err)
	}
	if after := files(); after >= before {
		t.Errorf("%d files before, %d after", before, after)
	}
	s.opts.MaximumBytes = 0
	if err := s.maintainOnce(t.Context(), MaintainOptions{}); err != nil {
		t.Error(err)
	}
	snap := e.Acquire()
	defer snap.Release()
	if r := snap.HotRange(); r.Len() != 1 {
		t.Errorf("recent blocks %v", r)
	}
}
