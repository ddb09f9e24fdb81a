package history

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/leani-go/leani/chain"
	"github.com/leani-go/leani/codec"
	"github.com/leani-go/leani/engine"
	"github.com/leani-go/leani/engine/internal/crashfs"
	"github.com/leani-go/leani/internal/chainmodel"
)

// TestCrashModel runs random histories of a store of real blocks, with the real builders, on a disk
// that crashes at random operations, and compares what is there after every reopen with a model that
// knows only which blocks were acknowledged.
//
// After a reopen: the two tiers of the store agree and its files are whole; every acknowledged block is
// there byte for byte; of the runs that were not acknowledged, at most the one in flight is there, as a
// whole; queries and look-ups answer as a search through the model does; the digest is that of a store
// built from the same blocks without a disturbance. Pinned views answer from their snapshot throughout,
// also in a store whose disk has failed.
//
// A history is a pure function of its seed, except for the timing of background work. Replay one
// with -crash.seed=N; run more with -crash.histories=N (make crash does).
var (
	crashHistories = flag.Int("crash.histories", defaultHistories, "number of random histories in TestCrashModel")
	crashSeed      = flag.Uint64("crash.seed", 0, "run only the history of this seed")
)

const defaultHistories = 200

// thorough tells whether more histories than usual are wanted, and with them more of the tests that
// visit every operation.
func thorough() bool { return *crashHistories > defaultHistories }

// stride is how many operations a test that visits every one skips over.
func stride() int {
	if (testing.Short() || raceEnabled) && !thorough() {
		return 7
	}
	return 1
}

// INV-02 INV-29 STO-002 STO-017
func TestCrashModel(t *testing.T) {
	t.Parallel()
	l := newCrashLab(t)
	if *crashSeed != 0 {
		l.run(t, *crashSeed)
		return
	}
	n := *crashHistories
	if (testing.Short() || raceEnabled) && !thorough() {
		n = min(n, 30)
	}
	base := uint64(time.Now().UnixNano())
	for i := range n {
		if l.run(t, base+uint64(i)); t.Failed() {
			t.Fatalf("history %d failed; replay with -run TestCrashModel -crash.seed=%d", i, base+uint64(i))
		}
	}
	t.Logf("%d histories: %+v", n, l.done)
	if n < defaultHistories {
		return // too few for counts that chance does not decide
	}
	if d := l.done; d.crashes < n || d.Repacks < n/2 || d.IndexMerges < n/4 || d.sealed < n/10 || d.prunes < n/10 {
		t.Errorf("the histories do too little: %+v", d)
	}
}

// crashLab is what the histories share: chains, the digest of an undisturbed store of each, and counts
// of what happened.
type crashLab struct {
	chains  []*modelChain
	digests [][32]byte
	done    struct {
		CompactStats
		crashes  int
		prunes   int // that removed something
		sealed   int // blocks that became files
		inFlight int // crashes that a run survived which was not acknowledged
	}
}

func newCrashLab(t *testing.T) *crashLab {
	l := &crashLab{}
	for i := range uint64(4) {
		c := newModelChain(i, i*37, 72)
		l.chains = append(l.chains, c)
		l.digests = append(l.digests, undisturbed(t, c.blocks))
	}
	return l
}

// world is one history: a machine, the store on it, and what must be true.
type world struct {
	t     *testing.T
	lab   *crashLab
	seed  uint64
	rng   *rand.Rand
	chain *modelChain
	opts  Options

	disk    *vfs.MemFS
	machine *crashfs.Machine
	store   *Store

	mu    sync.Mutex  // guards has and doubt, which the writer's goroutine changes too
	has   []bool      // the acknowledged blocks of the chain
	final uint64      // one past the acknowledged finalized block
	doubt chain.Range // the run that was in flight when the machine crashed, empty for none
	gone  chain.Range // the range that was being pruned when the machine crashed, empty for none
	// senders are the blocks whose senders were acknowledged and not touched by a repack since.
	senders []bool

	pins []pinned
	log  []string
}

// pinned is a view that is held and the blocks that it must show.
type pinned struct {
	view *View
	has  []bool
}

func (l *crashLab) run(t *testing.T, seed uint64) {
	t.Helper()
	c := l.chains[seed%uint64(len(l.chains))]
	w := &world{t: t, lab: l, seed: seed, rng: rand.New(rand.NewPCG(seed, 5)), chain: c}
	defer func() {
		if t.Failed() {
			t.Logf("history of seed %d:\n  %s", seed, strings.Join(w.log, "\n  "))
		}
	}()
	w.has = make([]bool, len(c.blocks))
	w.senders = make([]bool, len(c.blocks))
	w.opts = smallOptions(1 + seed%13)
	w.opts.Compression = codec.Compression(w.rng.IntN(3))
	switch w.rng.IntN(6) {
	case 0:
		w.opts.SegmentBytes = int64(4000 + w.rng.IntN(40_000))
	case 1:
		w.opts.BuilderMemory = int64(10_000 + w.rng.IntN(20_000)) // a builder of few logs takes 9,000
	}
	w.opts.Recent = RecentOptions{MinimumBlocks: 1 + seed%3, SoftBytes: 1 + int64(seed%2)<<40}
	w.disk = vfs.NewCrashableMem()
	for range 2 + w.rng.IntN(3) {
		if w.session(); t.Failed() {
			return
		}
	}
	w.complete(l.digests[seed%uint64(len(l.chains))])
}

func (w *world) note(format string, args ...any) { w.log = append(w.log, fmt.Sprintf(format, args...)) }

func (w *world) fail(format string, args ...any) {
	w.t.Helper()
	w.t.Errorf("seed %d: %s", w.seed, fmt.Sprintf(format, args...))
}

// expectStopped accepts an error only when the machine has crashed.
func (w *world) expectStopped(what string, err error) {
	w.t.Helper()
	if !w.machine.Stopped() {
		w.fail("%s: %v", what, err)
	}
}

// session opens the store, works with it, and ends in a crash or a clean close.
func (w *world) session() {
	if !w.open(true) {
		return
	}
	for range w.rng.IntN(12) {
		w.step()
		if w.t.Failed() || w.machine.Stopped() {
			break
		}
	}
	w.verifyPins() // also in a failed store
	w.releasePins()
	if w.t.Failed() || w.machine.Stopped() || w.rng.IntN(2) == 0 {
		survivor := w.machine.Crash()
		w.note("crash at %s", w.machine)
		w.lab.done.crashes++
		_ = w.store.Engine().Close() // its process would be gone
		w.disk = survivor
		return
	}
	err := w.store.Engine().Close()
	switch {
	case w.machine.Stopped():
		w.disk = w.machine.Crash()
		w.note("crash in close at %s", w.machine)
		w.lab.done.crashes++
	case err != nil:
		w.fail("close: %v", err)
	default:
		w.note("close")
	}
}

// open opens the store, with crashes on the way if wanted, and verifies what is there.
func (w *world) open(crashes bool) bool {
	for attempt := 0; ; attempt++ {
		w.machine = crashfs.New(w.disk, rand.New(rand.NewPCG(w.seed, w.rng.Uint64())))
		if crashes && attempt < 2 && w.rng.IntN(10) < 8 {
			w.machine.StopAt = w.rng.IntN(400)
			if w.rng.IntN(5) == 0 {
				w.machine.StopAt = w.rng.IntN(40) // in recovery
			}
		}
		_, s, err := openSmall(w.machine.FS(), 1+w.rng.IntN(4), w.opts)
		if err == nil {
			w.store = s
			w.note("open: recovery %+v", s.Engine().Recovery())
			break
		}
		if !w.machine.Stopped() {
			w.fail("open: %v", err)
			return false
		}
		w.note("crash in open at %s", w.machine)
		w.lab.done.crashes++
		w.disk = w.machine.Crash()
	}
	w.settle()
	return !w.t.Failed()
}

// settle finds out whether the run in flight became durable, and verifies everything either way.
func (w *world) settle() {
	if q := w.store.Engine().Recovery().Quarantined; len(q) > 0 {
		w.fail("own files were quarantined: %v", q)
	}
	w.settlePrune()
	missing := w.store.Missing(w.doubt)
	switch {
	case w.doubt.Empty():
	case len(missing) == 0:
		w.note("the run in flight is there")
		w.lab.done.inFlight++
		w.acknowledge(w.doubt)
	case len(missing) != 1 || missing[0] != w.doubt:
		w.fail("of the run %v that was in flight, %v are missing", w.doubt, missing)
	}
	w.doubt = chain.Range{}
	w.verify()
}

// acknowledge marks blocks as durable.
func (w *world) acknowledge(r chain.Range) {
	for n := r.From; n < r.To; n++ {
		w.has[n-w.chain.first] = true
	}
}

// verify compares the whole store with the model.
func (w *world) verify() {
	w.t.Helper()
	if err := w.chain.verifyAgainst(context.Background(), w.store, w.has); err != nil {
		if !w.machine.Stopped() {
			w.fail("%v", err)
		}
		return
	}
	snap := w.store.Engine().Acquire()
	defer snap.Release()
	for i, ok := range w.senders {
		if !ok {
			continue
		}
		row, held := snap.DataFile(w.chain.first + uint64(i))
		if held {
			_, held = snap.SendersFile(row)
		}
		if !held {
			w.fail("the senders of block %d are gone", w.chain.first+uint64(i))
			return
		}
	}
	w.verifyHot()
	w.ask()
}

// ask compares some queries and look-ups with the model.
func (w *world) ask() {
	w.t.Helper()
	v, err := w.store.View()
	if err != nil {
		w.fail("view: %v", err)
		return
	}
	defer v.Close()
	w.askView(v, w.has)
}

func (w *world) askView(v *View, has []bool) {
	w.t.Helper()
	if got, want := v.Coverage(), w.chain.coverage(has); !slices.Equal(got, want) {
		w.fail("coverage: got %v want %v", got, want)
		return
	}
	m := &chainmodel.Model{Rand: w.rng, Addresses: w.chain.model.Addresses, Topics: w.chain.model.Topics}
	if err := w.chain.check(context.Background(), v, m, has); err != nil {
		w.fail("%v", err)
	}
}

// step does one random thing.
func (w *world) step() {
	switch w.rng.IntN(26) {
	default:
		w.live()
	case 0, 1, 2, 3, 4, 5:
		w.write()
	case 6:
		w.writeTwice()
	case 7, 8, 9:
		w.compact()
	case 10, 11:
		w.fillSenders()
	case 12:
		w.pin()
	case 13:
		w.verifyPins()
		if n := len(w.pins); n > 0 {
			w.note("release")
			w.pins[n-1].view.Close()
			w.pins = w.pins[:n-1]
		}
	case 14:
		w.ask()
	case 15:
		w.verify()
	case 16, 17:
		w.pruneSome()
	}
}

// plan picks blocks that are not retained: up to three pieces, in any order.
func (w *world) plan() (blocks []uint64) {
	chosen := slices.Clone(w.has)
	if hot := w.hotRange(); !hot.Empty() { // no file lies above recent blocks
		for i := hot.From - w.chain.first; i < uint64(len(chosen)); i++ {
			chosen[i] = true
		}
	}
	for range 1 + w.rng.IntN(3) {
		i := w.rng.IntN(len(chosen) * 2 / 3) // leave room for recent blocks
		for range 1 + w.rng.IntN(24) {
			if i == len(chosen) || chosen[i] {
				break
			}
			chosen[i] = true
			blocks = append(blocks, w.chain.first+uint64(i))
			i++
		}
	}
	return blocks
}

// writing is one use of a writer.
type writing struct {
	*world
	writer *Writer
	runs   []chain.Range // in the order of their commits; the last may be open
	acked  int           // how many of them were acknowledged
}

func (w *world) newWriting(ctx context.Context) *writing {
	g := &writing{world: w}
	g.writer = w.store.NewWriter(ctx, func(r chain.Range) {
		w.mu.Lock()
		defer w.mu.Unlock()
		if g.acked == len(g.runs) || g.runs[g.acked] != r {
			w.t.Errorf("seed %d: blocks %v are acknowledged, want run %d of %v", w.seed, r, g.acked, g.runs)
			return
		}
		g.acked++
		w.acknowledge(r)
	})
	return g
}

// add adds a block and keeps count of the runs.
func (g *writing) add(n uint64) error {
	before := g.writer.Pending()
	if err := g.writer.Add(g.chain.at(n)); err != nil {
		return err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if p := g.writer.Pending(); p > before && before > 0 {
		g.runs[len(g.runs)-1].To++
	} else {
		g.runs = append(g.runs, chain.Range{From: n, To: n + 1})
	}
	return nil
}

// close ends the writer, of which a call may have failed with err, and settles what is acknowledged,
// what is in doubt and what is not there. It returns all errors together.
func (g *writing) close(discard bool, err error) error {
	open := g.writer.Pending() > 0
	err = errors.Join(err, g.writer.Close(discard))
	if discard && open {
		g.runs = g.runs[:len(g.runs)-1]
	}
	switch {
	case err == nil && g.acked != len(g.runs):
		g.fail("the writer closed without error, %d of the runs %v are acknowledged", g.acked, g.runs)
	case g.acked < len(g.runs):
		g.doubt = g.runs[g.acked]
	}
	return err
}

// write adds some blocks that are not retained.
func (w *world) write() {
	blocks := w.plan()
	if len(blocks) == 0 {
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	g := w.newWriting(ctx)
	stop := -1 // where the caller gives up
	if w.rng.IntN(6) == 0 {
		stop = w.rng.IntN(len(blocks))
	}
	byCancel := w.rng.IntN(2) == 0
	var err error
	for i, n := range blocks {
		if i == stop {
			if byCancel {
				cancel()
			}
			break
		}
		if err = g.add(n); err != nil {
			break
		}
		if w.rng.IntN(12) == 0 {
			if err = g.writer.Cut(); err != nil {
				break
			}
		}
	}
	discard := stop >= 0 && !byCancel
	err = g.close(discard, err)
	w.note("write %v, stop at %d (cancel %v): runs %v, %d acknowledged, %v", blocks, stop, byCancel, g.runs, g.acked, err)
	switch {
	case err == nil:
	case ctx.Err() != nil && errors.Is(err, context.Canceled) && !w.machine.Stopped():
		w.doubt = chain.Range{} // nothing failed: what is not acknowledged is not there
	default:
		w.expectStopped("write", err)
	}
	if !w.machine.Stopped() {
		w.ask()
	}
}

// retains tells whether the block at an index was acknowledged.
func (w *world) retains(i int) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.has[i]
}

// writeTwice adds blocks that are retained already, which must be refused without a trace.
func (w *world) writeTwice() {
	i := slices.Index(w.has, true)
	if i < 0 {
		return
	}
	i += w.rng.IntN(3)
	g := w.newWriting(context.Background())
	retained := false
	var err error
	for range 3 {
		if i < len(w.has) && err == nil {
			err = g.add(w.chain.first + uint64(i))
			retained = retained || w.retains(i)
		}
		i++
	}
	w.mu.Lock() // a run that ended is committed meanwhile
	had := slices.Clone(w.has)
	w.mu.Unlock()
	err = g.close(false, err)
	w.note("write twice %v: %v", g.runs, err)
	switch {
	case w.machine.Stopped():
		// What is refused is refused again, so only a run without retained blocks is in doubt.
		if missing := w.store.Missing(w.doubt); len(missing) != 1 || missing[0] != w.doubt {
			w.doubt = chain.Range{}
		}
	case retained && len(g.runs) == 1 && !errors.Is(err, engine.ErrInvalidEdit):
		w.fail("retained blocks are written again: %v", err)
	default:
		w.doubt = chain.Range{}
		if retained && len(g.runs) == 1 && !slices.Equal(had, w.has) {
			w.fail("a refused run changed what is retained")
		}
		w.ask()
	}
}

func (w *world) compact() {
	clear(w.senders) // a repack drops the senders of a group that are not complete
	st, err := w.store.Compact(context.Background())
	w.note("compact: %+v %v", st, err)
	w.lab.done.Repacks += st.Repacks
	w.lab.done.IndexMerges += st.IndexMerges
	if err != nil {
		w.expectStopped("compact", err)
		return
	}
	w.ask()
}

// fillSenders fills senders, sometimes only those of some files.
func (w *world) fillSenders() {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	left := 1 + w.rng.IntN(8)
	err := w.store.FillSenders(ctx, func(r chain.Range) {
		for n := r.From; n < r.To; n++ {
			w.senders[n-w.chain.first] = true
		}
		if left--; left == 0 {
			cancel()
		}
	})
	w.note("fill senders: %v", err)
	switch {
	case err == nil:
		copy(w.senders, w.has)
		for n, hot := uint64(0), w.hotRange(); n < hot.Len(); n++ { // recent blocks have no file of senders
			w.senders[hot.From+n-w.chain.first] = false
		}
	case !errors.Is(err, context.Canceled) || ctx.Err() == nil:
		w.expectStopped("fill senders", err)
	}
}

func (w *world) pin() {
	v, err := w.store.View()
	if err != nil {
		w.expectStopped("view", err)
		return
	}
	w.note("pin")
	w.pins = append(w.pins, pinned{v, slices.Clone(w.has)})
}

func (w *world) verifyPins() {
	for _, p := range w.pins {
		w.askView(p.view, p.has)
	}
}

func (w *world) releasePins() {
	for _, p := range w.pins {
		p.view.Close()
	}
	w.pins = nil
}

// complete writes on an undisturbed machine what is missing, merges and fills everything, and compares
// the whole with a store that knew no crash.
func (w *world) complete(digest [32]byte) {
	if !w.open(false) {
		return
	}
	w.sealAll()
	g := w.newWriting(context.Background())
	for i, ok := range w.has {
		if ok {
			continue
		}
		if err := g.add(w.chain.first + uint64(i)); err != nil {
			w.fail("add: %v", err)
		}
	}
	if err := g.close(false, nil); err != nil {
		w.fail("close writer: %v", err)
		return
	}
	w.compact()
	if err := w.store.FillSenders(context.Background(), nil); err != nil {
		w.fail("fill senders: %v", err)
	}
	copy(w.senders, w.has)
	w.verify()
	if got, err := w.store.Digest(context.Background()); err != nil || got != digest {
		w.fail("digest: got %x want %x (%v)", got, digest, err)
	}
	if err := w.store.Engine().Close(); err != nil {
		w.fail("close: %v", err)
	}
}
