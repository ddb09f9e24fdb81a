package history

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/leani-go/leani/chain"
	"github.com/leani-go/leani/engine"
	"github.com/leani-go/leani/segments"
)

// nothingLeft proves that a store holds the given blocks and that nothing of a run that was given up lies
// anywhere.
func nothingLeft(t *testing.T, s *Store, c *modelChain, coverage ...chain.Range) {
	t.Helper()
	inventory, err := s.Engine().Inspect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if inventory.PendingFiles != 0 || inventory.Snapshots != 0 {
		t.Errorf("%d pending files, %d snapshots", inventory.PendingFiles, inventory.Snapshots)
	}
	report, err := s.Engine().Check(t.Context(), engine.CheckOptions{})
	if err != nil || len(report.Waiting) > 0 {
		t.Errorf("files left: %v %v", report.Waiting, err)
	}
	if err := c.verifyAgainst(t.Context(), s, c.covered(coverage)); err != nil {
		t.Error(err)
	}
}

// addAll adds blocks until one is refused.
func addAll(w *Writer, blocks []*chain.Block) error {
	for _, b := range blocks {
		if err := w.Add(b); err != nil {
			return err
		}
	}
	return nil
}

// Close with discard keeps the runs that were cut and gives up the open one without a trace.
//
// STO-006
func TestDiscard(t *testing.T) {
	noLeaks(t)
	c := newModelChain(2, 0, 30)
	s := openStore(t, vfs.NewMem(), smallOptions(8))
	w := s.NewWriter(t.Context(), nil)
	if err := addAll(w, c.blocks[:20]); err != nil {
		t.Fatal(err)
	}
	if w.Pending() != 4 {
		t.Errorf("%d blocks pending", w.Pending())
	}
	if err := w.Close(true); err != nil {
		t.Fatal(err)
	}
	nothingLeft(t, s, c, chain.Range{From: 0, To: 16})
}

// A cancelled writer stops with the context's error. What it acknowledged is there, the rest is not,
// and the store takes the next writer.
//
// STO-006
func TestCancelledWriter(t *testing.T) {
	noLeaks(t)
	c := newModelChain(2, 0, 40)
	s := openStore(t, vfs.NewMem(), smallOptions(8))
	for _, at := range []int{0, 3, 8, 17, 24} { // of the blocks given, in the open run or at its start
		ctx, cancel := context.WithCancel(t.Context())
		var acknowledged []chain.Range
		w := s.NewWriter(ctx, func(r chain.Range) { acknowledged = append(acknowledged, r) })
		missing := s.Missing(chain.Range{From: 0, To: 40})
		blocks := c.slice(missing[0])[:at]
		if err := addAll(w, blocks); err != nil {
			t.Fatal(err)
		}
		cancel()
		if err := w.Add(c.blocks[39]); !errors.Is(err, context.Canceled) {
			t.Errorf("add: %v", err)
		}
		if err := w.Close(false); err != nil && !errors.Is(err, context.Canceled) {
			t.Errorf("close: %v", err)
		}
		var want []chain.Range
		if missing[0].From > 0 {
			want = append(want, chain.Range{From: 0, To: missing[0].From})
		}
		for _, r := range acknowledged {
			if len(want) == 0 {
				want = append(want, chain.Range{})
			}
			want[0].To = r.To
		}
		nothingLeft(t, s, c, want...)
		if t.Failed() {
			t.Fatalf("cancelled after %d blocks", at)
		}
	}
	for _, r := range s.Missing(chain.Range{From: 0, To: 40}) {
		write(t, s, c.slice(r))
	}
	nothingLeft(t, s, c, chain.Range{From: 0, To: 40})
}

// A block that does not continue the chain is refused, within a run and beside what is retained, and
// so is one that is retained or incomplete. Nothing of the refused run stays.
//
// INV-14 STO-006
func TestRefusedBlocks(t *testing.T) {
	noLeaks(t)
	c, other := newModelChain(2, 0, 30), newModelChain(3, 0, 30)
	s := openStore(t, vfs.NewMem(), smallOptions(100))
	write(t, s, c.blocks[10:20])
	naked := *c.blocks[5]
	naked.HasReceipts = false
	for name, run := range map[string]struct {
		blocks []*chain.Block
		want   error
	}{
		"another chain within the run": {[]*chain.Block{c.blocks[3], other.blocks[4]}, segments.ErrNotConsecutive},
		"without receipts":             {[]*chain.Block{c.blocks[4], &naked}, segments.ErrNoReceipts},
		"another chain below":          {other.blocks[5:10], engine.ErrInvalidEdit},
		"another chain above":          {other.blocks[20:22], engine.ErrInvalidEdit},
		"retained":                     {c.blocks[12:13], engine.ErrInvalidEdit},
		"retained in part":             {c.blocks[8:11], engine.ErrInvalidEdit},
	} {
		w := s.NewWriter(t.Context(), func(r chain.Range) { t.Errorf("%s: %v are acknowledged", name, r) })
		err := addAll(w, run.blocks)
		err = errors.Join(err, w.Close(err != nil))
		if !errors.Is(err, run.want) {
			t.Errorf("%s: got %v want %v", name, err, run.want)
		}
		nothingLeft(t, s, c, chain.Range{From: 10, To: 20})
	}
	write(t, s, c.blocks[:10])
	write(t, s, c.blocks[20:])
	nothingLeft(t, s, c, chain.Range{From: 0, To: 30})
}

// The byte budget refuses a run as a whole and keeps what is there; with a larger budget the work goes
// on where it stopped.
//
// INV-24 STO-005 STO-006
func TestBudget(t *testing.T) {
	c := newModelChain(2, 0, 40)
	fs := vfs.NewMem()
	opts := smallOptions(8)
	s := openStore(t, fs, opts)
	write(t, s, c.blocks[:16])
	used := s.Bytes()
	opts.MaximumBytes = used + used/4
	s = New(s.Engine(), opts)
	w := s.NewWriter(t.Context(), nil)
	err := errors.Join(addAll(w, c.blocks[16:]), w.Close(false))
	if !errors.Is(err, ErrBudget) {
		t.Fatalf("got %v", err)
	}
	nothingLeft(t, s, c, chain.Range{From: 0, To: 16})
	if got := s.Bytes(); got != used {
		t.Errorf("%d bytes used, %d before", got, used)
	}
	opts.MaximumBytes = 0
	s = New(s.Engine(), opts)
	missing := s.Missing(chain.Range{From: 0, To: 40})
	if !slices.Equal(missing, []chain.Range{{From: 16, To: 40}}) {
		t.Fatalf("missing %v", missing)
	}
	write(t, s, c.blocks[16:])
	nothingLeft(t, s, c, chain.Range{From: 0, To: 40})
}

// The first error ends a writer: a later run is not committed by a Close that follows, and Close does
// not return nil for blocks that are not there.
func TestErrorEndsAWriter(t *testing.T) {
	noLeaks(t)
	c := newModelChain(2, 0, 30)
	s := openStore(t, vfs.NewMem(), smallOptions(4))
	write(t, s, c.blocks[4:8])
	w := s.NewWriter(t.Context(), func(r chain.Range) { t.Errorf("%v are acknowledged", r) })
	err := addAll(w, c.blocks[4:]) // the run [4, 8) is refused while [8, 12) is built
	if !errors.Is(err, engine.ErrInvalidEdit) {
		t.Errorf("add: %v", err)
	}
	if err := w.Add(c.blocks[20]); !errors.Is(err, engine.ErrInvalidEdit) {
		t.Errorf("add after an error: %v", err)
	}
	if err := w.Cut(); !errors.Is(err, engine.ErrInvalidEdit) {
		t.Errorf("cut after an error: %v", err)
	}
	if err := w.Close(false); !errors.Is(err, engine.ErrInvalidEdit) {
		t.Errorf("close after an error: %v", err)
	}
	nothingLeft(t, s, c, chain.Range{From: 4, To: 8})
}
