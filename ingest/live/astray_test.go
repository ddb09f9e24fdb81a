package live

import (
	"errors"
	"math"
	"slices"
	"testing"

	"github.com/leani-go/leani/engine/history"
)

// TestAstray: a source that takes back blocks which were refused, as one does that is read again from its start
// after other blocks became final, changes nothing and does not end the lane.
//
// SRC-041 INV-07
func TestAstray(t *testing.T) {
	l := newLab(t, history.RecentOptions{})
	a, b := l.base[:12], l.branch(t, 8, 6, l.base[7].Hash, "b")
	var events []*Event
	for _, e := range [][]*Event{
		each(a),
		{{Kind: Undo, Block: idOf(a[10])}, {Kind: Undo, Block: BlockID{Number: 9}}, {Kind: Undo, Block: idOf(a[8])}, {Kind: Undo, Block: BlockID{Number: 7}}},
		each(b),
		{{Kind: Undo, Block: BlockID{Number: 12}}, {Kind: Finalized, Block: idOf(b[0])}},
	} {
		events = append(events, e...)
	}
	want := append(slices.Clone(a[:8]), b[:5]...)
	l.must(t, events...)
	l.expect(t, want...)
	for range 2 { // block 8 is final now: a[8:] are refused, and the undo to a[8] names its number
		l.must(t, events...)
		l.expect(t, want...)
	}
	// After a block that is known the source is back on the chain.
	l.must(t, apply(a[8:]...), apply(b[2]), &Event{Kind: Undo, Block: BlockID{Number: 11}})
	l.expect(t, want[:12]...)
	l.must(t, apply(a[8:]...), apply(b[4]), &Event{Kind: Undo, Block: BlockID{Number: 11}})
	l.expect(t, want[:12]...)
}

// TestUndoBeforeGenesis: no number stands for the block before block 0.
func TestUndoBeforeGenesis(t *testing.T) {
	l := newLab(t, history.RecentOptions{})
	l.must(t, each(l.base[:4])...)
	if err := l.run(t, &Event{Kind: Undo, Block: BlockID{Number: math.MaxUint64}}); !errors.Is(err, ErrUnknownBlock) {
		t.Errorf("got %v", err)
	}
	l.expect(t, l.base[:4]...)
}
