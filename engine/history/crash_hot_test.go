package history

import (
	"context"
	"slices"

	"github.com/leani-go/leani/chain"
	"github.com/leani-go/leani/engine"
)

// hotRange is the range of the recent blocks as the store shows it.
func (w *world) hotRange() chain.Range {
	snap := w.store.Engine().Acquire()
	defer snap.Release()
	return snap.HotRange()
}

// finalized is the mark as the store shows it.
func (w *world) finalized() (chain.BlockRef, bool) {
	snap := w.store.Engine().Acquire()
	defer snap.Release()
	return snap.Mark(engine.FinalityFinalized)
}

// live does one random thing to the newest blocks of the chain.
func (w *world) live() {
	hot := w.hotRange()
	final, any := w.finalized()
	switch w.rng.IntN(10) {
	case 0, 1, 2, 3:
		if hot.Empty() {
			last := len(w.has) - 1
			for ; last >= 0 && !w.has[last]; last-- {
			}
			hot.To = w.chain.first + uint64(last+1)
		}
		w.extend(chain.Range{From: hot.To, To: min(w.chain.end(), hot.To+1+uint64(w.rng.IntN(4)))}, final, any)
	case 4:
		w.undo(hot, final, any)
	case 5, 6:
		if hot.Empty() {
			return
		}
		r := w.chain.at(hot.From + w.rng.Uint64N(hot.Len())).BlockRef
		if any && r.Number <= final.Number {
			return
		}
		err := w.store.Extend(context.Background(), &Extension{Finalized: &r})
		w.note("finalized %s: %v", r, err)
		if err != nil {
			w.expectStopped("finalized", err)
			return
		}
		w.final = r.Number + 1
	default:
		seal := w.store.SealRecent
		if w.rng.IntN(2) == 0 {
			seal = w.store.SealFinal
		}
		n, err := seal(context.Background())
		w.note("seal: %d blocks of %v, %v", n, hot, err)
		w.lab.done.sealed += int(n)
		if err != nil {
			w.expectStopped("seal", err)
			return
		}
		w.ask()
	}
}

// extend applies the blocks of a range.
func (w *world) extend(r chain.Range, final chain.BlockRef, any bool) {
	if r.Empty() || any && r.From <= final.Number {
		return
	}
	err := w.store.Extend(context.Background(), &Extension{Apply: w.chain.slice(r)})
	w.note("extend %v: %v", r, err)
	if err != nil {
		w.doubt = r
		w.expectStopped("extend", err)
		return
	}
	w.acknowledge(r)
	w.ask()
}

// undo undoes some of the newest blocks.
func (w *world) undo(hot chain.Range, final chain.BlockRef, any bool) {
	var x Extension
	r := chain.Range{From: hot.To, To: hot.To}
	for range 1 + w.rng.IntN(4) {
		if r.From == hot.From || any && r.From-1 <= final.Number {
			break
		}
		r.From--
		x.Undo = append(x.Undo, w.chain.at(r.From).BlockRef)
	}
	if r.Empty() {
		return
	}
	err := w.store.Extend(context.Background(), &x)
	w.note("undo %v: %v", r, err)
	if err != nil {
		w.gone = r
		w.expectStopped("undo", err)
		return
	}
	w.forget(r)
	w.ask()
}

// verifyHot compares the recent blocks and the mark with the model: the blocks are the newest ones, and the mark never
// goes back.
func (w *world) verifyHot() {
	w.t.Helper()
	hot := w.hotRange()
	if last := len(w.has) - 1 - slices.Index(reversed(w.has), true); !hot.Empty() && hot.To != w.chain.first+uint64(last)+1 {
		w.fail("recent blocks are %v, the newest is %d", hot, w.chain.first+uint64(last))
	}
	if final, any := w.finalized(); w.final > 0 && (!any || final.Number+1 < w.final) {
		w.fail("the finalized mark went back from block %d to %s, %v", w.final-1, final, any)
	}
}

func reversed(list []bool) []bool {
	out := slices.Clone(list)
	slices.Reverse(out)
	return out
}

// sealAll makes files of all recent blocks.
func (w *world) sealAll() {
	hot := w.hotRange()
	if hot.Empty() {
		return
	}
	tip := w.chain.at(hot.To - 1).BlockRef
	if err := w.store.Extend(context.Background(), &Extension{Finalized: &tip}); err != nil {
		w.fail("finalized: %v", err)
	}
	if _, err := w.store.SealFinal(context.Background()); err != nil {
		w.fail("seal: %v", err)
	}
}
