package live

import (
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"go.uber.org/goleak"

	"github.com/leani-go/leani/chain"
	"github.com/leani-go/leani/engine"
	"github.com/leani-go/leani/engine/history"
	"github.com/leani-go/leani/ingest/verify"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// list is a source of given events.
type list struct {
	events []*Event
	// wait, if set, is waited for before the event of that position is given.
	wait map[int]chan struct{}
	at   int
}

func (s *list) Next(ctx context.Context) (*Event, error) {
	if s.at == len(s.events) {
		return nil, io.EOF
	}
	if c := s.wait[s.at]; c != nil {
		select {
		case <-c:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	s.at++
	return s.events[s.at-1], nil
}

func apply(blocks ...*chain.Block) *Event {
	e := &Event{Kind: Apply}
	for _, b := range blocks {
		e.Blocks = append(e.Blocks, material(b))
	}
	return e
}

// each gives an event a block.
func each(blocks []*chain.Block) (out []*Event) {
	for _, b := range blocks {
		out = append(out, apply(b))
	}
	return out
}

func idOf(b *chain.Block) BlockID { return BlockID{b.Number, b.Hash} }

func (l *lab) run(t *testing.T, events ...*Event) error {
	t.Helper()
	return New(Options{Store: l.store, Source: &list{events: events}, Retry: time.Millisecond}).Run(t.Context())
}

func (l *lab) must(t *testing.T, events ...*Event) {
	t.Helper()
	if err := l.run(t, events...); err != nil {
		t.Fatal(err)
	}
}

// A branch replaces blocks in one step; what subscribers see is the same, newest undone first; what is marked stays.
//
// INV-02 INV-11 INV-13 INV-14 INV-32 SRC-041 SRC-053 SRC-054
func TestBranches(t *testing.T) {
	l := newLab(t, history.RecentOptions{})
	l.seal(t, l.base[:20])
	feed := l.store.Subscribe()
	l.must(t, each(l.base[18:26])...) // two of them are in the files
	l.expect(t, l.base[18:26]...)

	b := l.branch(t, 24, 3, l.base[23].Hash, "b")
	l.must(t, apply(b...))
	l.expect(t, append(slices.Clone(l.base[20:24]), b...)...)
	l.must(t, apply(b[1]), apply(b...)) // known
	l.expect(t, b...)

	final := &Event{Kind: Finalized, Block: idOf(b[0])}
	l.must(t, final, apply(l.base[24:28]...), apply(l.base[28])) // contradict it, and so does the child
	l.expect(t, b...)
	l.must(t, &Event{Kind: Undo, Block: idOf(l.base[22])}) // too far
	l.expect(t, b...)
	l.must(t, &Event{Kind: Undo, Block: idOf(b[0])}, &Event{Kind: Finalized, Block: idOf(l.base[21])})
	l.expect(t, b[:1]...)

	// Marks of blocks to come wait for them, and refuse others of their number.
	c := l.branch(t, 25, 3, b[0].Hash, "c")
	l.must(t, &Event{Kind: Finalized, Block: idOf(c[1])}, &Event{Kind: Attested, Block: BlockID{Number: 27}},
		apply(b[1]), apply(b[2]), apply(c...))
	l.expect(t, c...)
	v, err := l.store.View()
	if err != nil {
		t.Fatal(err)
	}
	defer v.Close()
	if f, ok := v.Finalized(); !ok || f.Hash != c[1].Hash {
		t.Errorf("finalized: %v %v", f, ok)
	}
	if a, ok := v.Attested(); !ok || a.Hash != c[2].Hash {
		t.Errorf("attested: %v %v", a, ok)
	}

	// The changes, applied to an empty list, give the chain.
	var seen []chain.BlockRef
	for len(seen) == 0 || seen[len(seen)-1].Hash != c[2].Hash {
		change, err := feed.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, u := range change.Undone {
			if n := len(seen); n == 0 || seen[n-1] != u {
				t.Fatalf("block %s is undone and is not the newest", u)
			}
			seen = seen[:len(seen)-1]
		}
		seen = append(seen, change.Applied...)
	}
	if len(seen) != 8 || seen[0].Hash != l.base[20].Hash || seen[4].Hash != b[0].Hash {
		t.Errorf("the changes lead to %v", seen)
	}
}

// A lane stops at what it cannot decide, and says what it is.
//
// SRC-008 SRC-041 SRC-055
func TestStops(t *testing.T) {
	l := newLab(t, history.RecentOptions{MinimumBlocks: 1, SoftBytes: 1, Depth: 4})
	l.seal(t, l.base[:10])
	spoiled := material(l.base[10])
	spoiled.Header = append(slices.Clone(spoiled.Header[:len(spoiled.Header)-1]), spoiled.Header[len(spoiled.Header)-1]^1)
	missing := material(l.base[16])
	missing.Transactions, missing.Receipts, missing.Logs = nil, nil, nil
	if len(l.base[16].Transactions) == 0 {
		t.Fatal("block 16 has no transactions")
	}
	var proof *verify.Error
	if err := l.run(t, &Event{Kind: Apply, Blocks: []*chain.Block{missing}}); !errors.As(err, &proof) || proof.Check != verify.CheckTransactionsRoot {
		t.Errorf("missing transactions: %v", err)
	}
	for name, c := range map[string]struct {
		event *Event
		want  error
	}{
		"a gap above the files":      {apply(l.base[11]), ErrUnknownParent},
		"another child of the files": {apply(l.branch(t, 10, 1, common.Hash{1}, "x")...), ErrUnknownParent},
		"a branch of the files":      {apply(l.branch(t, 7, 1, l.base[6].Hash, "x")...), engine.ErrTooDeep},
		"an undo to nowhere":         {&Event{Kind: Undo, Block: BlockID{Number: 30}}, ErrUnknownBlock},
		"another block of the files": {&Event{Kind: Finalized, Block: BlockID{Number: 5, Hash: common.Hash{1}}}, ErrOtherChain},
	} {
		err := l.run(t, c.event)
		if !errors.Is(err, c.want) || !strings.HasPrefix(err.Error(), "live source: ") {
			t.Errorf("%s: got %v want %v", name, err, c.want)
		}
	}
	// Last, because it may be a block of its own.
	if err := l.run(t, &Event{Kind: Apply, Blocks: []*chain.Block{spoiled}}); errors.Is(err, engine.ErrInvalidEdit) {
		t.Errorf("a changed header: %v", err)
	}
	v, err := l.store.View()
	if err != nil {
		t.Fatal(err)
	}
	v.Close()
	l2 := newLab(t, history.RecentOptions{MinimumBlocks: 1, SoftBytes: 1, Depth: 4})
	l2.must(t, each(l2.base[:12])...)
	if _, err := l2.store.SealRecent(t.Context()); err != nil {
		t.Fatal(err)
	}
	l2.expect(t, l2.base[:12]...)
	if err := l2.run(t, apply(l2.branch(t, 5, 9, l2.base[4].Hash, "deep")...)); !errors.Is(err, engine.ErrTooDeep) {
		t.Errorf("a reorganization deeper than the recent blocks: %v", err)
	}
	l2.expect(t, l2.base[:12]...)
}

// A mark below the recent blocks is compared with the files and holds from then on, whether or not there are recent ones.
func TestMarksOfFiles(t *testing.T) {
	l := newLab(t, history.RecentOptions{MinimumBlocks: 1, SoftBytes: 1})
	l.seal(t, l.base[:10])
	mark := func(kind Kind, number uint64, hash common.Hash) *Event {
		return &Event{Kind: kind, Block: BlockID{Number: number, Hash: hash}}
	}
	check := func(attested, finalized chain.BlockRef) {
		t.Helper()
		v, err := l.store.View()
		if err != nil {
			t.Fatal(err)
		}
		defer v.Close()
		if got, _ := v.Attested(); got != attested {
			t.Errorf("attested: got %s want %s", got, attested)
		}
		if got, _ := v.Finalized(); got != finalized {
			t.Errorf("finalized: got %s want %s", got, finalized)
		}
	}
	l.must(t, mark(Finalized, 3, l.base[3].Hash), mark(Attested, 9, common.Hash{}))
	check(l.base[9].BlockRef, l.base[3].BlockRef)
	l.must(t, apply(l.base[10]), mark(Attested, 8, common.Hash{1}), mark(Finalized, 9, l.base[9].Hash))
	check(l.base[9].BlockRef, l.base[9].BlockRef)
	l.must(t, mark(Finalized, 10, l.base[10].Hash), mark(Finalized, 4, common.Hash{1}))
	check(l.base[10].BlockRef, l.base[10].BlockRef)

	other := newLab(t, history.RecentOptions{MinimumBlocks: 1, SoftBytes: 1})
	other.seal(t, other.base[:10])
	for _, n := range []uint64{0, 5, 9} {
		if err := other.run(t, mark(Finalized, n, common.Hash{1})); !errors.Is(err, ErrOtherChain) {
			t.Errorf("another block %d is finalized: got %v want %v", n, err, ErrOtherChain)
		}
	}
	if err := other.run(t, mark(Attested, 5, common.Hash{1})); err != nil {
		t.Errorf("another block is attested: %v", err)
	}
	other.expect(t, other.base[:10]...)
}

// A lane without room waits before the next block, takes the marks that make room, and goes on.
//
// STO-005 STO-011
func TestWaitsForRoom(t *testing.T) {
	l := newLab(t, history.RecentOptions{MinimumBlocks: 1, SoftBytes: 1, HardBytes: 1})
	wake := make(chan struct{}, 1)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	sealed := make(chan error, 1)
	go func() { sealed <- l.store.Maintain(ctx, history.MaintainOptions{Wake: wake}) }()
	events := each(l.base[:4])
	for i := range 4 {
		events = append(events, &Event{Kind: Finalized, Block: BlockID{Number: uint64(i)}})
	}
	lane := New(Options{Store: l.store, Source: &list{events: events}, Retry: time.Millisecond, Committed: func() {
		select {
		case wake <- struct{}{}:
		default:
		}
	}})
	if err := lane.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	cancel()
	if err := <-sealed; err != nil {
		t.Error(err)
	}
	l.expect(t, l.base[:4]...)
	snap := l.store.Engine().Acquire()
	defer snap.Release()
	if len(snap.Rows(engine.KindData)) == 0 {
		t.Error("nothing was sealed")
	}
}

// A source that fails ends the lane with its error; a context that ends, too.
// TestMarksInTurn stalls a lane in front of a reorganization, with marks behind it: those that name a number mean the
// branch of their turn, unless the number is below all that can change before.
//
// INV-13
func TestMarksInTurn(t *testing.T) {
	l := newLab(t, history.RecentOptions{})
	lane := New(Options{Store: l.store, Source: &list{}})
	if err := lane.handle(t.Context(), apply(l.base[:4]...), nil); err != nil {
		t.Fatal(err)
	}
	mark := func(n uint64, hash common.Hash) *Event {
		return &Event{Kind: Finalized, Block: BlockID{Number: n, Hash: hash}}
	}
	finalized := func(want uint64) {
		t.Helper()
		snap := l.store.Engine().Acquire()
		defer snap.Release()
		if got, _ := snap.Mark(engine.FinalityFinalized); got.Number != want {
			t.Errorf("finalized: got block %s want %d", got, want)
		}
	}
	first := l.base[0].Number
	undo := &Event{Kind: Undo, Block: BlockID{Number: first + 1}}
	lane.queue = []*Event{mark(first+3, common.Hash{}), undo, mark(first+2, common.Hash{}), mark(first+1, common.Hash{})}
	if err := lane.takeMarks(t.Context(), first+3); err != nil {
		t.Fatal(err)
	}
	finalized(first + 1)
	if len(lane.queue) != 3 || lane.queue[1] != undo {
		t.Errorf("%d events are left", len(lane.queue))
	}
	lane.queue = append(lane.queue, mark(first+2, l.base[2].Hash))
	if err := lane.takeMarks(t.Context(), first+3); err != nil {
		t.Fatal(err)
	}
	finalized(first + 2)
}

// TestMarksFarAhead gives marks of blocks that will not come before those of blocks that do.
func TestMarksFarAhead(t *testing.T) {
	l := newLab(t, history.RecentOptions{})
	events := []*Event{{Kind: Finalized, Block: BlockID{Number: 1<<64 - 1}}}
	for i := range uint64(2 * maximumPending) {
		events = append(events, &Event{Kind: Finalized, Block: BlockID{Number: 1<<40 + i}})
	}
	events = append(events, &Event{Kind: Finalized, Block: BlockID{Number: l.base[2].Number}})
	events = append(events, each(l.base[:4])...)
	if err := New(Options{Store: l.store, Source: &list{events: events}}).Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	snap := l.store.Engine().Acquire()
	defer snap.Release()
	if got, _ := snap.Mark(engine.FinalityFinalized); got != l.base[2].BlockRef {
		t.Errorf("finalized: got %s want %s", got, l.base[2].BlockRef)
	}
}

func TestEnds(t *testing.T) {
	l := newLab(t, history.RecentOptions{})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	never := &list{events: []*Event{nil}, wait: map[int]chan struct{}{0: make(chan struct{})}}
	if err := New(Options{Store: l.store, Source: never}).Run(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	refused := errors.New("of another chain")
	lane := New(Options{Store: l.store, Source: &list{events: each(l.base[:1])}, Admit: func(*chain.Block) error { return refused }})
	if err := lane.Run(t.Context()); !errors.Is(err, refused) {
		t.Errorf("got %v", err)
	}
}
