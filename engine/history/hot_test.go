package history

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/zeebo/xxh3"

	"github.com/leani-go/leani/chain"
	"github.com/leani-go/leani/engine"
	"github.com/leani-go/leani/engine/history/hotblock"
	"github.com/leani-go/leani/internal/chainmodel"
)

// branchingChain is a plain model of a chain that reorganizes: its canonical blocks from the first one on, of
// which some are sealed, and a source of children for any of them.
type branchingChain struct {
	*modelChain
	rng       *rand.Rand
	sealed    int // leading blocks that are in files or were finalized
	finalized int // leading blocks that are finalized
}

func newBranchingChain(seed, first uint64, n int) *branchingChain {
	c := &branchingChain{modelChain: newModelChain(seed, first, n), rng: rand.New(rand.NewPCG(seed, 11))}
	c.sealed = n
	return c
}

// child makes a random block over the newest one.
func (c *branchingChain) child() *chain.Block {
	m := chainmodel.New(c.rng.Uint64(), c.end())
	m.Addresses, m.Topics, m.Transactions = c.model.Addresses, c.model.Topics, c.model.Transactions
	m.Parent = c.blocks[len(c.blocks)-1].Hash
	return m.Block()
}

// push makes a block the newest one.
func (c *branchingChain) push(b *chain.Block) {
	var h xxh3.Hasher
	c.blocks = append(slices.Clip(c.blocks), b)
	c.sums = append(slices.Clip(c.sums), blockDigest(&h, b))
}

func (c *branchingChain) pop() *chain.Block {
	b := c.blocks[len(c.blocks)-1]
	c.blocks, c.sums = c.blocks[:len(c.blocks)-1], c.sums[:len(c.sums)-1]
	return b
}

// copyOf is the chain as it is now.
func (c *branchingChain) copyOf() *modelChain {
	out := *c.modelChain
	out.blocks, out.sums = slices.Clone(c.blocks), slices.Clone(c.sums)
	return &out
}

// branch undoes up to undo blocks that are not final, and applies up to apply.
func (c *branchingChain) branch(undo, apply int) (x Extension) {
	for ; undo > 0 && len(c.blocks) > c.sealed && len(c.blocks) > c.finalized; undo-- {
		x.Undo = append(x.Undo, c.pop().BlockRef)
	}
	for range apply {
		b := c.child()
		c.push(b)
		x.Apply = append(x.Apply, b)
	}
	return x
}

// all says that every block is retained.
func all(n int) []bool { return slices.Repeat([]bool{true}, n) }

// checkView compares a view with a chain that it shows in full: some queries, which cross the border between
// files and recent blocks, and look-ups; and undone blocks, which must not be found.
func checkView(ctx context.Context, v *View, c *modelChain, seed uint64, undone []*chain.Block) error {
	m := &chainmodel.Model{Rand: rand.New(rand.NewPCG(seed, 13)), Addresses: c.model.Addresses, Topics: c.model.Topics}
	if got, want := v.Coverage(), c.coverage(all(len(c.blocks))); !slices.Equal(got, want) {
		return fmt.Errorf("coverage: got %v want %v", got, want)
	}
	if err := c.check(ctx, v, m, all(len(c.blocks))); err != nil {
		return err
	}
	whole := chain.Range{From: c.first, To: c.end()}
	if err := c.query(ctx, v, m, whole); err != nil {
		return err
	}
	hot := v.hot.span
	if !hot.Empty() {
		n := hot.From + m.Rand.Uint64N(hot.Len())
		if err := c.lookUp(ctx, v, m, n); err != nil {
			return err
		}
		if err := c.oneTransaction(ctx, v, m, n); err != nil {
			return err
		}
		f := randomFilter(m)
		r := chain.Range{From: hot.From, To: hot.To}
		cost, err := v.LogsCost(ctx, r, f)
		if err != nil {
			return err
		}
		count := uint64(0)
		for next := logsOf(c.slice(r), f); ; count++ {
			if _, _, ok := next(); !ok {
				break
			}
		}
		if cost < count {
			return fmt.Errorf("cost of %+v over recent blocks %v: got %d, there are %d logs", f, r, cost, count)
		}
	}
	for _, b := range undone {
		if _, ok, err := v.NumberByHash(b.Hash); ok || err != nil {
			return fmt.Errorf("undone block %s is found: %w", b.BlockRef, err)
		}
		for _, h := range b.TransactionHashes {
			if _, _, ok, err := v.LocateTransaction(h); ok || err != nil {
				return fmt.Errorf("transaction of undone block %s is found: %w", b.BlockRef, err)
			}
		}
	}
	return nil
}

// oneTransaction compares what LoadTransaction gives.
func (c *modelChain) oneTransaction(ctx context.Context, v *View, m *chainmodel.Model, number uint64) error {
	want := c.at(number)
	if len(want.Transactions) == 0 {
		return nil
	}
	i := m.Rand.IntN(len(want.Transactions))
	var got chain.Block
	if err := v.LoadTransaction(ctx, number, uint32(i), chain.PartsAll|chain.PartSenders, &got); err != nil {
		return err
	}
	if string(got.Transactions[i]) != string(want.Transactions[i]) || got.Senders[i] != sendersOf(want)[i] || got.Receipts[i].LogsEnd != want.Receipts[i].LogsEnd {
		return fmt.Errorf("transaction %d of block %d", i, number)
	}
	return nil
}

// hotOptions are for a store that seals early.
func hotOptions(target uint64) Options {
	o := smallOptions(target)
	o.Recent = RecentOptions{MinimumBlocks: 2, SoftBytes: 40_000, HardBytes: 1 << 20}
	o.HotBytes = 20_000
	return o
}

// TestHotModel compares views over random histories of a chain that grows, reorganizes, is marked and sealed,
// with a plain model: queries, look-ups and blocks, for the newest view and for views that are held while
// blocks come and go.
//
// INV-01 INV-02 INV-07 INV-13 INV-14 STO-001 STO-012 SRC-041 SRC-053 SRC-054
func TestHotModel(t *testing.T) {
	t.Parallel()
	histories := uint64(40)
	if testing.Short() || raceEnabled {
		histories = 8
	}
	sealed := uint64(0)
	for seed := range histories {
		n, err := runHotHistory(t, seed)
		if err != nil {
			t.Fatalf("history %d: %v", seed, err)
		}
		sealed += n
	}
	if sealed < histories*4 {
		t.Errorf("only %d blocks were sealed", sealed)
	}
}

func runHotHistory(t *testing.T, seed uint64) (sealed uint64, err error) {
	ctx := t.Context()
	c := newBranchingChain(seed, 30*(seed%3), 1+int(seed%20))
	e, s, err := openSmall(vfs.NewMem(), 2, hotOptions(1+seed%9))
	if err != nil {
		return 0, err
	}
	type held struct {
		view   *View
		chain  *modelChain
		undone []*chain.Block
	}
	var pins []held
	var undone []*chain.Block
	defer func() {
		for _, p := range pins {
			p.view.Close()
		}
		if closeErr := e.Close(); err == nil {
			err = closeErr
		}
	}()
	write(t, s, c.blocks)
	feed := s.Subscribe()
	var wanted []Change
	extend := func(x Extension) error {
		if err := s.Extend(ctx, &x); err != nil {
			return err
		}
		w := Change{Undone: x.Undo, Attested: x.Attested, Finalized: x.Finalized}
		for _, b := range x.Apply {
			w.Applied = append(w.Applied, b.BlockRef)
		}
		wanted = append(wanted, w)
		return nil
	}
	for step := range 60 {
		before := slices.Clone(c.blocks)
		switch c.rng.IntN(10) {
		case 0, 1, 2, 3:
			err = extend(c.branch(0, 1+c.rng.IntN(3)))
		case 4, 5:
			x := c.branch(1+c.rng.IntN(4), c.rng.IntN(5))
			if len(x.Undo)+len(x.Apply) > 0 {
				err = extend(x)
			}
		case 6:
			if n := len(c.blocks); n > c.finalized && n > c.sealed {
				at := max(c.finalized, c.sealed) + c.rng.IntN(n-max(c.finalized, c.sealed))
				c.finalized = at + 1
				err = extend(Extension{Finalized: &c.blocks[at].BlockRef})
			}
		case 7:
			var n uint64
			if n, err = s.SealRecent(ctx); c.rng.IntN(3) == 0 && err == nil {
				var more uint64
				more, err = s.SealFinal(ctx)
				n += more
			}
			sealed += n
		case 8:
			v, viewErr := s.View()
			if viewErr != nil {
				return sealed, viewErr
			}
			pins = append(pins, held{v, c.copyOf(), slices.Clone(undone)})
		case 9:
			if len(pins) > 0 {
				i := c.rng.IntN(len(pins))
				p := pins[i]
				err = checkView(ctx, p.view, p.chain, seed^uint64(step), p.undone)
				p.view.Close()
				pins = slices.Delete(pins, i, i+1)
			} else {
				_, err = s.Compact(ctx)
			}
		}
		if err != nil {
			return sealed, fmt.Errorf("step %d: %w", step, err)
		}
		for _, b := range before {
			if i := int(b.Number - c.first); i >= len(c.blocks) || c.blocks[i] != b {
				undone = append(undone, b)
			}
		}
		snap := e.Acquire()
		if hot := snap.HotRange(); !hot.Empty() {
			c.sealed = int(hot.From - c.first)
		} else {
			c.sealed = len(c.blocks)
		}
		snap.Release()
		v, err := s.View()
		if err != nil {
			return sealed, err
		}
		err = checkView(ctx, v, c.modelChain, seed<<8^uint64(step), undone)
		v.Close()
		if err != nil {
			return sealed, fmt.Errorf("step %d: %w", step, err)
		}
	}
	if err := c.verifyAgainst(ctx, s, all(len(c.blocks))); err != nil {
		return sealed, err
	}
	if held := s.hot.held; held > s.opts.HotBytes {
		return sealed, fmt.Errorf("%d bytes are kept decoded, the limit is %d", held, s.opts.HotBytes)
	}
	for i, w := range wanted {
		got, err := feed.Next(ctx)
		if err != nil || !slices.Equal(got.Undone, w.Undone) || !slices.Equal(got.Applied, w.Applied) || !sameRef(got.Finalized, w.Finalized) {
			return sealed, fmt.Errorf("change %d: got %+v, %w want %+v", i, got, err, w)
		}
	}
	return sealed, nil
}

func sameRef(a, b *chain.BlockRef) bool {
	return a == nil && b == nil || a != nil && b != nil && *a == *b
}

// smallHot is a store in memory whose recent blocks are few, until the test ends.
func smallHot(t *testing.T) *Store {
	t.Helper()
	e, s, err := openSmall(vfs.NewMem(), 2, hotOptions(4))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// TestExtendRefuses proves that what does not fit the chain changes nothing and says why.
//
// INV-13 SRC-041 SRC-053 SRC-055
func TestExtendRefuses(t *testing.T) {
	t.Parallel()
	c := newBranchingChain(3, 0, 10)
	s := smallHot(t)
	write(t, s, c.blocks)
	child := c.child()
	stranger := *child
	stranger.ParentHash[3] ^= 1
	refuse := func(name string, x Extension, want error) {
		t.Helper()
		if err := s.Extend(t.Context(), &x); !errors.Is(err, want) {
			t.Errorf("%s: got %v want %v", name, err, want)
		}
	}
	refuse("a child of another block than the last of the files", Extension{Apply: []*chain.Block{&stranger}}, engine.ErrNotChild)
	refuse("undo of a sealed block", Extension{Undo: []chain.BlockRef{c.blocks[9].BlockRef}}, engine.ErrTooDeep)
	x := c.branch(0, 6)
	x.Finalized = &x.Apply[3].BlockRef
	if err := s.Extend(t.Context(), &x); err != nil {
		t.Fatal(err)
	}
	tip := x.Apply
	refuse("a finalized block undone", Extension{Undo: []chain.BlockRef{tip[5].BlockRef, tip[4].BlockRef, tip[3].BlockRef}}, engine.ErrFinalized)
	refuse("the finalized mark moved back", Extension{Finalized: &tip[2].BlockRef}, engine.ErrFinalized)
	refuse("a block without receipts", Extension{Apply: []*chain.Block{{BlockRef: c.child().BlockRef, Header: []byte{1}}}}, hotblock.ErrIncomplete)
	if _, err := s.SealFinal(t.Context()); err != nil {
		t.Fatal(err)
	}
	refuse("a reorganization below the recent blocks", Extension{Undo: []chain.BlockRef{tip[5].BlockRef, tip[4].BlockRef, tip[3].BlockRef}}, engine.ErrFinalized)
	v, err := s.View()
	if err != nil {
		t.Fatal(err)
	}
	defer v.Close()
	if f, ok := v.Finalized(); !ok || f != tip[3].BlockRef {
		t.Errorf("finalized after sealing: %v %v", f, ok)
	}
	if a, ok := v.Attested(); !ok || a != tip[3].BlockRef {
		t.Errorf("attested: %v %v", a, ok)
	}
	if err := checkView(t.Context(), v, c.modelChain, 1, []*chain.Block{&stranger}); err != nil {
		t.Error(err)
	}
}

// TestRecentBounds proves the bounds of the recent blocks: full files are sealed and a minimum stays; above the soft bound
// final blocks go early, oldest first; above the hard bound the minimum goes too, and with nothing final no block
// is taken until there is. The tip never moves.
//
// STO-010 STO-011 STO-012 STO-005
func TestRecentBounds(t *testing.T) {
	t.Parallel()
	c := newBranchingChain(5, 0, 1)
	o := smallOptions(8)
	o.Recent = RecentOptions{MinimumBlocks: 5, SoftBytes: 1 << 40, HardBytes: 1 << 41}
	e, s, err := openSmall(vfs.NewMem(), 2, o)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	}()
	write(t, s, c.blocks)
	seal := func(from, to uint64) {
		t.Helper()
		if _, err := s.SealRecent(t.Context()); err != nil {
			t.Fatal(err)
		}
		v, err := s.View()
		if err != nil {
			t.Fatal(err)
		}
		defer v.Close()
		if got := v.hot.span; got.From != from || got.To != to {
			t.Errorf("recent blocks: got %v want [%d, %d)", got, from, to)
		}
		if head, ok := v.Head(); !ok || head != c.end()-1 {
			t.Errorf("head: got %d %v want %d", head, ok, c.end()-1)
		}
	}
	extend := func(x Extension) {
		t.Helper()
		if err := s.Extend(t.Context(), &x); err != nil {
			t.Fatal(err)
		}
	}
	extend(c.branch(0, 21)) // blocks 1 to 21
	seal(1, 22)             // nothing is final
	extend(Extension{Finalized: &c.at(20).BlockRef})
	seal(16, 22) // full files, and five blocks stay
	s.opts.Recent.SoftBytes = 1
	seal(17, 22) // as much as leaves five
	s.opts.Recent.HardBytes = 1
	if x := (Extension{Apply: []*chain.Block{c.child()}}); !errors.Is(s.Extend(t.Context(), &x), ErrRecentFull) {
		t.Error("a block is taken above the hard bound")
	}
	seal(21, 22) // all that is final
	s.opts.Recent.HardBytes = 1 << 41
	extend(c.branch(0, 1))
	seal(21, 23)
	if err := c.verifyAgainst(t.Context(), s, all(len(c.blocks))); err != nil {
		t.Error(err)
	}

	// Without finality, depth counts.
	d := newBranchingChain(6, 0, 1)
	o.Recent = RecentOptions{MinimumBlocks: 1, SoftBytes: 1, Depth: 6}
	e2, s2, err := openSmall(vfs.NewMem(), 2, o)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := e2.Close(); err != nil {
			t.Error(err)
		}
	}()
	write(t, s2, d.blocks)
	x := d.branch(0, 12)
	if err := s2.Extend(t.Context(), &x); err != nil {
		t.Fatal(err)
	}
	if _, err := s2.SealRecent(t.Context()); err != nil {
		t.Fatal(err)
	}
	v, err := s2.View()
	if err != nil {
		t.Fatal(err)
	}
	defer v.Close()
	if v.hot.span != (chain.Range{From: 7, To: 13}) {
		t.Errorf("recent blocks without finality: got %v", v.hot.span)
	}
}

// TestFeed proves that a subscriber that falls behind is told so, and that the others are not held up.
//
// INV-23
func TestFeed(t *testing.T) {
	t.Parallel()
	s := &Store{}
	slow, fast := s.Subscribe(), s.Subscribe()
	for i := range uint64(feedLength + 1) {
		s.feed.publish(&Change{Generation: i})
		if c, err := fast.Next(t.Context()); err != nil || c.Generation != i {
			t.Fatalf("change %d: got %+v %v", i, c, err)
		}
	}
	if _, err := slow.Next(t.Context()); !errors.Is(err, ErrLagged) {
		t.Errorf("got %v", err)
	}
	done := make(chan error)
	go func() {
		_, err := fast.Next(context.Background())
		done <- err
	}()
	s.feed.publish(&Change{})
	if err := <-done; err != nil {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := fast.Next(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}
