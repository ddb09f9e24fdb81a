package history

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/leani-go/leani/chain"
	"github.com/leani-go/leani/engine"
	"github.com/leani-go/leani/internal/chainmodel"
	"github.com/leani-go/leani/internal/corrupt"
)

// pruneSome prunes a random range.
func (w *world) pruneSome() {
	from := w.chain.first + uint64(w.rng.IntN(len(w.has)))
	r := chain.Range{From: from, To: from + 1 + uint64(w.rng.IntN(len(w.has)/2))}
	if hot := w.hotRange(); !r.Intersect(hot).Empty() {
		if _, err := w.store.Prune(context.Background(), r, PruneOptions{Head: true}); !errors.Is(err, ErrPruneRecent) {
			w.expectStopped("prune of recent blocks", err)
		}
		if r.To = hot.From; r.Empty() {
			return
		}
	}
	_ = w.prune(r)
	if !w.machine.Stopped() {
		w.ask()
	}
}

// prune prunes a range; only a machine that stopped may keep it from doing so.
func (w *world) prune(r chain.Range) error {
	report, err := w.store.Prune(context.Background(), r, PruneOptions{Head: true})
	w.note("prune %v: %+v %v", r, report, err)
	if err != nil {
		w.gone = r
		w.expectStopped("prune", err)
		return err
	}
	if report.Blocks > 0 {
		w.lab.done.prunes++
	}
	w.forget(r)
	return nil
}

// forget takes blocks out of the model.
func (w *world) forget(r chain.Range) {
	for i := range w.has {
		if r.Contains(w.chain.first + uint64(i)) {
			w.has[i], w.senders[i] = false, false
		}
	}
}

// settlePrune finds out whether a prune that was interrupted happened: as a whole or not at all.
func (w *world) settlePrune() {
	gone := 0
	had := 0
	for i, ok := range w.has {
		if n := w.chain.first + uint64(i); ok && w.gone.Contains(n) {
			had++
			if len(w.store.Missing(chain.Range{From: n, To: n + 1})) > 0 {
				gone++
			}
		}
	}
	switch gone {
	case 0:
	case had:
		w.note("the prune in flight happened")
		w.forget(w.gone)
	default:
		w.fail("of %d blocks of %v %d were pruned", had, w.gone, gone)
	}
	w.gone = chain.Range{}
}

// filled is a store with all blocks of a chain, compacted, with senders.
func filled(t *testing.T, c *modelChain, target uint64) *Store {
	t.Helper()
	s := openStore(t, vfs.NewMem(), smallOptions(target))
	write(t, s, c.blocks)
	if _, err := s.Compact(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := s.FillSenders(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	return s
}

// Exactly the blocks of the range go, wherever it begins and ends; what stays answers as before, with
// senders and through indexes, and can be filled and merged again.
//
// STO-012: the highest block stays, and the tip with it.
func TestPruneRange(t *testing.T) {
	c := newModelChain(5, 30, 80)
	for _, r := range []chain.Range{
		{From: 0, To: 31}, {From: 30, To: 40}, {From: 32, To: 64}, {From: 33, To: 34}, {From: 37, To: 101},
		{From: 39, To: 41}, {From: 30, To: 109}, {From: 0, To: 10}, {From: 200, To: 300}, {From: 108, To: 109},
	} {
		s := filled(t, c, 8)
		has := make([]bool, len(c.blocks))
		for i := range has {
			has[i] = !r.Contains(c.first + uint64(i))
		}
		dry, err := s.Prune(t.Context(), r, PruneOptions{DryRun: true})
		if err != nil {
			t.Fatal(err)
		}
		all := slices.Repeat([]bool{true}, len(c.blocks))
		if err := c.verifyAgainst(t.Context(), s, all); err != nil {
			t.Fatalf("%v: after a dry run: %v", r, err)
		}
		got, err := s.Prune(t.Context(), r, PruneOptions{})
		if err != nil {
			t.Fatalf("%v: %v", r, err)
		}
		if got.Blocks != dry.Blocks || got.FilesRemoved != dry.FilesRemoved || got.BytesRemoved != dry.BytesRemoved || !slices.Equal(got.Pruned, dry.Pruned) {
			t.Errorf("%v: got %+v, the dry run said %+v", r, got, dry)
		}
		if want := r.Intersect(chain.Range{From: c.first, To: c.end()}); want.Empty() && got.Blocks != 0 ||
			!want.Empty() && !slices.Equal(got.Pruned, []chain.Range{want}) {
			t.Errorf("%v: pruned %v", r, got.Pruned)
		}
		if err := c.verifyAgainst(t.Context(), s, has); err != nil {
			t.Fatalf("%v: %v", r, err)
		}
		v, err := s.View()
		if err != nil {
			t.Fatal(err)
		}
		for range 20 {
			if err := c.check(t.Context(), v, c.model, has); err != nil {
				t.Fatalf("%v: %v", r, err)
			}
		}
		v.Close()
		snap := s.Engine().Acquire()
		for _, group := range []engine.FieldGroup{engine.FieldSenders, engine.FieldIndex} {
			var covered []chain.Range
			for _, run := range snap.Coverage(group) {
				covered = append(covered, run.Range)
			}
			if want := c.coverage(has); !slices.Equal(covered, want) {
				t.Errorf("%v: %s cover %v, want %v", r, group, covered, want)
			}
		}
		snap.Release()
		for i, ok := range has {
			if !ok {
				write(t, s, c.blocks[i:i+1])
			}
		}
		if _, err := s.Compact(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := c.verifyAgainst(t.Context(), s, all); err != nil {
			t.Errorf("%v: filled again: %v", r, err)
		}
	}
}

// The highest block goes only when it is asked for.
//
// STO-012
func TestPruneKeepsTheTip(t *testing.T) {
	c := newModelChain(5, 0, 20)
	s := filled(t, c, 8)
	if _, err := s.Prune(t.Context(), chain.Range{From: 3, To: 30}, PruneOptions{}); !errors.Is(err, ErrPruneHead) {
		t.Errorf("got %v", err)
	}
	if missing := s.Missing(chain.Range{From: 0, To: 20}); len(missing) > 0 {
		t.Errorf("a refused prune removed %v", missing)
	}
	if _, err := s.Prune(t.Context(), chain.Range{From: 3, To: 30}, PruneOptions{Head: true}); err != nil {
		t.Error(err)
	}
	if err := c.verifyAgainst(t.Context(), s, append(slices.Repeat([]bool{true}, 3), make([]bool, 17)...)); err != nil {
		t.Error(err)
	}
}

// Pruning to a size takes the oldest files and no more of them than it must.
func TestPruneTo(t *testing.T) {
	c := newModelChain(6, 0, 200)
	for _, percent := range []int64{200, 100, 99, 60, 35, 1, 0} {
		s := filled(t, c, 8)
		before := s.Bytes()
		maximum := before * percent / 100
		report, err := s.PruneTo(t.Context(), maximum, PruneOptions{})
		if err != nil {
			t.Fatal(err)
		}
		left := s.Bytes()
		head := rangesOf(s, engine.KindData)
		switch {
		case percent >= 100:
			if report.Blocks != 0 || left != before {
				t.Errorf("%d%%: pruned %+v", percent, report)
			}
		case left > maximum && len(head) > 1:
			t.Errorf("%d%%: %d bytes are left of %d", percent, left, before)
		case left < maximum-before/10:
			t.Errorf("%d%%: only %d bytes are left of %d", percent, left, before)
		}
		has := slices.Repeat([]bool{true}, len(c.blocks))
		for i := range report.Blocks {
			has[i] = false // the oldest
		}
		if !has[len(has)-1] {
			t.Errorf("%d%%: the head is gone", percent)
		}
		if err := c.verifyAgainst(t.Context(), s, has); err != nil {
			t.Errorf("%d%%: %v", percent, err)
		}
	}
}

// A view that is open keeps the blocks that were pruned after it was made, and a prune that is cancelled
// leaves no trace.
func TestPruneBesideViews(t *testing.T) {
	c := newModelChain(7, 0, 40)
	s := filled(t, c, 8)
	all := slices.Repeat([]bool{true}, len(c.blocks))
	v, err := s.View()
	if err != nil {
		t.Fatal(err)
	}
	defer v.Close()
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.Prune(cancelled, chain.Range{From: 3, To: 20}, PruneOptions{}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	if err := c.verifyAgainst(t.Context(), s, all); err != nil {
		t.Error(err)
	}
	if _, err := s.Prune(t.Context(), chain.Range{From: 3, To: 20}, PruneOptions{}); err != nil {
		t.Fatal(err)
	}
	m := &chainmodel.Model{Rand: c.model.Rand, Addresses: c.model.Addresses, Topics: c.model.Topics}
	for range 20 {
		if err := c.check(t.Context(), v, m, all); err != nil {
			t.Fatal(err)
		}
	}
}

// A damaged file is dropped by pruning its blocks and filling them again. A damaged index goes with any
// prune that touches it; a damaged data file has to go as a whole, and the error names it.
func TestPruneDamagedFiles(t *testing.T) {
	c := newModelChain(8, 0, 64)
	all := slices.Repeat([]bool{true}, len(c.blocks))
	for _, kind := range []engine.Kind{engine.KindData, engine.KindIndex, engine.KindSenders} {
		fs := vfs.NewMem()
		s := openStore(t, fs, smallOptions(8))
		write(t, s, c.blocks)
		if _, err := s.Compact(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := s.FillSenders(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		snap := s.Engine().Acquire()
		row := snap.Rows(kind)[0]
		snap.Release()
		path := fs.PathJoin("d", "segments", row.String())
		content, err := fs.UnsafeGetFileDataBuffer(path)
		if err != nil {
			t.Fatal(err)
		}
		for i := 20; i < len(content)/2; i++ {
			content[i] ^= 0x55
		}
		_, err = s.Prune(t.Context(), chain.Range{From: 3, To: 5}, PruneOptions{})
		if kind == engine.KindData {
			if !corrupt.Is(err) {
				t.Errorf("%s: a part of a damaged file was pruned: %v", kind, err)
			}
			_, err = s.Prune(t.Context(), row.Range(), PruneOptions{})
		}
		if err != nil {
			t.Fatalf("%s: %v", kind, err)
		}
		for _, r := range s.Missing(chain.Range{From: 0, To: 64}) {
			write(t, s, c.slice(r))
		}
		if _, err := s.Compact(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := s.FillSenders(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		if err := c.verifyAgainst(t.Context(), s, all); err != nil {
			t.Errorf("%s: %v", kind, err)
		}
	}
}
