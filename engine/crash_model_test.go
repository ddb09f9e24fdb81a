package engine

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"sort"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/leani-go/leani/chain"
	"github.com/leani-go/leani/engine/internal/crashfs"
	"github.com/leani-go/leani/keys"
)

// TestCrashModel runs random histories of a store on a disk that crashes at random operations,
// and compares what is there after every reopen with a model that knows only what was
// acknowledged.
//
// It proves what docs/adr/0003-crash-story.md promises: acknowledged edits survive with the
// exact content of their files; the edit in flight is there as a whole or not at all; pinned
// snapshots stay readable; no temporary or replaced file leaks; the quarantine holds the
// foreign files that the test planted, all of them, and nothing else; Check is clean. Partial material of
// profiles that overlap comes and goes with it, and never counts as complete.
//
// A history is a pure function of its seed, except for the timing of Pebble's and the
// reaper's background work. Replay one with -crash.seed=N; run more with -crash.histories=N.
var (
	crashHistories = flag.Int("crash.histories", 300, "number of random histories in TestCrashModel")
	crashSeed      = flag.Uint64("crash.seed", 0, "run only the history of this seed")
)

// STO-002 STO-017 STO-024
func TestCrashModel(t *testing.T) {
	if *crashSeed != 0 {
		runHistory(t, *crashSeed)
		return
	}
	n := *crashHistories
	if testing.Short() {
		n = min(n, 50)
	}
	base := uint64(time.Now().UnixNano())
	for i := range n {
		if runHistory(t, base+uint64(i)); t.Failed() {
			t.Fatalf("history %d failed; replay with -run TestCrashModel -crash.seed=%d", i, base+uint64(i))
		}
	}
}

// modelFile is a file as the model knows it: what identifies it to the outside, and its bytes.
type modelFile struct {
	kind    Kind
	level   uint8
	blocks  chain.Range
	content string
}

// world is one history: a machine, the store on it, and what must be true.
type world struct {
	t    *testing.T
	seed uint64
	rng  *rand.Rand

	disk    *vfs.MemFS
	machine *crashfs.Machine
	engine  *Engine

	acknowledged []modelFile // of all acknowledged edits
	hot          modelHot    // likewise
	flying       bool        // an edit was being committed when the machine stopped
	inFlight     []modelFile // after that edit
	hotInFlight  modelHot    // likewise
	foreign      map[string]bool
	pins         []pin
	backups      []backupModel
	log          []string
}

// pin is a snapshot that is held and what it must show.
type pin struct {
	snapshot *Snapshot
	files    []modelFile
	hot      modelHot
}

func runHistory(t *testing.T, seed uint64) {
	t.Helper()
	w := &world{t: t, seed: seed, rng: rand.New(rand.NewPCG(seed, 3)), foreign: map[string]bool{}}
	defer func() {
		if t.Failed() {
			t.Logf("history of seed %d:\n  %s", seed, strings.Join(w.log, "\n  "))
		}
	}()
	w.disk = vfs.NewCrashableMem()
	for range 2 + w.rng.IntN(4) {
		w.session()
		if t.Failed() {
			return
		}
	}
}

func (w *world) note(format string, args ...any) { w.log = append(w.log, fmt.Sprintf(format, args...)) }

func (w *world) fail(format string, args ...any) {
	w.t.Helper()
	w.t.Errorf("seed %d: %s", w.seed, fmt.Sprintf(format, args...))
}

// session opens the store, works with it, and ends in a crash or a clean close.
func (w *world) session() {
	if !w.open() {
		return
	}
	for range w.rng.IntN(25) {
		w.step()
		if w.t.Failed() || w.machine.Stopped() {
			break
		}
	}
	if w.t.Failed() {
		w.leave(w.disk)
		return
	}
	w.verifyPins() // also in a failed store
	if w.machine.Stopped() || w.rng.IntN(2) == 0 {
		survivor := w.machine.Crash()
		w.note("crash at %s", w.machine)
		w.leave(survivor)
		return
	}
	w.releasePins()
	pending := w.engine.mu.pending
	err := w.engine.Close()
	stopped := w.machine.Stopped()
	if err != nil && !stopped && pending == 0 {
		w.fail("close: %v", err)
	}
	if stopped {
		w.disk = w.machine.Crash()
		w.note("crash in close at %s", w.machine)
	} else {
		w.note("close")
	}
	w.plant()
}

// leave gives up a store whose machine has crashed: its process would be gone.
func (w *world) leave(next *vfs.MemFS) {
	_ = w.engine.Close()
	w.pins = nil
	w.disk = next
}

// open opens the store, with crashes on the way, and verifies what is there.
func (w *world) open() bool {
	for attempt := 0; ; attempt++ {
		w.machine = crashfs.New(w.disk, rand.New(rand.NewPCG(w.seed, w.rng.Uint64())))
		if attempt < 3 && w.rng.IntN(10) < 8 {
			w.machine.StopAt = w.rng.IntN(250)
			if w.rng.IntN(4) == 0 {
				w.machine.StopAt = w.rng.IntN(40) // in recovery
			}
		}
		opts := testOptions(w.machine.FS())
		opts.noReaper = w.seed%2 == 0
		opts.OpenFiles = 1 + w.rng.IntN(4)
		opts.ChainID = testChain
		e, err := Open(opts)
		if err == nil {
			w.engine = e
			w.note("open: generation %d, recovery %+v", e.catalog().generation, e.Recovery())
			break
		}
		if !w.machine.Stopped() {
			w.fail("open: %v", err)
			return false
		}
		w.note("crash in open at %s", w.machine)
		w.disk = w.machine.Crash()
	}
	w.settle()
	w.verifyCheck()
	w.verifyQuarantine()
	w.verifyBackup()
	return !w.t.Failed()
}

// settle finds out whether the edit in flight happened, and verifies the files either way.
func (w *world) settle() {
	got, err := readFiles(w.engine)
	if err != nil {
		w.fail("read after open: %v", err)
		return
	}
	hot, err := readHot(w.engine)
	if err != nil {
		w.fail("read recent blocks after open: %v", err)
		return
	}
	switch {
	case sameFiles(got, w.acknowledged) && hot.same(&w.hot):
	case w.flying && sameFiles(got, w.inFlight) && hot.same(&w.hotInFlight):
		w.note("the edit in flight happened")
		w.acknowledged, w.hot = w.inFlight, w.hotInFlight
	default:
		w.fail("after open:\ngot          %v %v\nacknowledged %v %v\nin flight    %v %v", describe(got), &hot,
			describe(w.acknowledged), &w.hot, describe(w.inFlight), &w.hotInFlight)
	}
	w.flying = false
	w.verifyCoverage()
}

// step does one random thing.
func (w *world) step() {
	switch w.rng.IntN(36) {
	default:
		w.live()
	case 0, 1, 2, 3, 4, 5:
		w.seal()
	case 6, 7:
		w.addSenders()
	case 8, 9:
		w.addIndex()
	case 10, 11:
		w.mergeIndexes()
	case 12, 13:
		w.repack()
	case 14:
		w.prune()
	case 15:
		w.refused()
	case 16:
		w.pins = append(w.pins, pin{w.engine.Acquire(), slices.Clone(w.acknowledged), w.hot})
		w.note("pin")
	case 17:
		w.verifyPins()
		if len(w.pins) > 0 {
			i := w.rng.IntN(len(w.pins))
			w.pins[i].snapshot.Release()
			w.pins = slices.Delete(w.pins, i, i+1)
			w.note("release")
		}
	case 18:
		w.reap()
	case 19:
		w.forgetOrAbort()
	case 20, 21, 22:
		w.frames()
	case 23:
		w.backup()
	}
}

func (w *world) reap() {
	w.note("reap")
	if err := w.engine.reap(); err != nil && !w.machine.Stopped() {
		w.fail("reap: %v", err)
	}
	if w.rng.IntN(3) == 0 && !w.machine.Stopped() {
		w.verifyCheck()
	}
}

// forgetOrAbort begins a file that is never committed.
func (w *world) forgetOrAbort() {
	row, err := pendingOf(w.engine, KindData, 0, chain.Range{From: 1, To: 2}, randomContent(w.rng))
	switch {
	case err != nil:
		w.expectStopped("begin", err)
	case w.rng.IntN(2) == 0:
		w.note("abort")
		if err := row.File.Abort(); err != nil {
			w.expectStopped("abort", err)
		}
	default:
		w.note("forget a file")
	}
}

func (w *world) expectStopped(what string, err error) {
	w.t.Helper()
	if !w.machine.Stopped() {
		w.fail("%s: %v", what, err)
	}
}

// commit commits files that appear and files that go.
func (w *world) commit(what string, add, remove []modelFile) {
	w.t.Helper()
	if len(add)+len(remove) == 0 {
		return
	}
	w.commitWith(what, add, remove, HotEdit{}, w.hot)
}

// commitWith is commit with a change of the hot tier that leaves hot.
func (w *world) commitWith(what string, add, remove []modelFile, change HotEdit, hot modelHot) {
	w.t.Helper()
	w.note("%s: add %v remove %v, recent blocks %v", what, describe(add), describe(remove), &hot)
	edit := Edit{Hot: change}
	for _, f := range add {
		row, err := pendingOf(w.engine, f.kind, f.level, f.blocks, []byte(f.content))
		if err != nil {
			w.expectStopped("begin", err)
			return
		}
		edit.Add = append(edit.Add, row)
	}
	next := slices.Clone(w.acknowledged)
	for _, f := range remove {
		i := slices.Index(next, f)
		next = slices.Delete(next, i, i+1)
		edit.Remove = append(edit.Remove, w.rowOf(f))
	}
	next = append(next, add...)
	w.flying, w.inFlight, w.hotInFlight = true, next, hot
	if err := w.engine.Commit(context.Background(), edit); err != nil {
		w.expectStopped("commit", err)
		if err2 := w.engine.Commit(context.Background(), edit); err2 == nil {
			w.fail("a commit after a failed one succeeds")
		}
		return
	}
	w.acknowledged, w.hot, w.flying = next, hot, false
	if got, err := readHot(w.engine); err == nil && !got.same(&hot) {
		w.fail("recent blocks after commit: got %v want %v", &got, &hot)
	}
	if got, err := readFiles(w.engine); err == nil && !sameFiles(got, next) {
		w.fail("after commit: got %v want %v", describe(got), describe(next))
	}
	w.verifyCoverage()
}

func (w *world) rowOf(f modelFile) *FileRow {
	s := w.engine.Acquire()
	defer s.Release()
	for _, r := range s.Rows(f.kind) {
		if levelOf(s, r) == f.level && r.Range() == f.blocks {
			return r
		}
	}
	w.t.Fatalf("seed %d: no row of %v", w.seed, describe([]modelFile{f}))
	return nil
}

// of lists the acknowledged files of a kind and level in block order; level -1 is any.
func (w *world) of(kind Kind, level int) []modelFile {
	var list []modelFile
	for _, f := range w.acknowledged {
		if f.kind == kind && (level < 0 || int(f.level) == level) {
			list = append(list, f)
		}
	}
	sort.Slice(list, func(i, j int) bool { return list[i].blocks.From < list[j].blocks.From })
	return list
}

func (w *world) newFile(kind Kind, level uint8, blocks chain.Range) modelFile {
	return modelFile{kind, level, blocks, string(randomContent(w.rng))}
}

// seal adds data files in a free range, at the end or in a gap, with or without sidecars.
func (w *world) seal() {
	data := w.of(KindData, 0)
	from := uint64(w.rng.IntN(60))
	if n := len(data); n > 0 && w.rng.IntN(2) == 0 {
		from = data[n-1].blocks.To
	}
	room := uint64(1 + w.rng.IntN(12))
	for _, f := range data {
		if f.blocks.Contains(from) {
			return
		}
		if f.blocks.From > from {
			room = min(room, f.blocks.From-from)
		}
	}
	if blocks := w.hot.blocks; len(blocks) > 0 {
		if from >= blocks[0].Number {
			return
		}
		room = min(room, blocks[0].Number-from)
	}
	whole := chain.Range{From: from, To: from + room}
	parts := []chain.Range{whole}
	if cut := from + uint64(w.rng.IntN(int(room)+1)); w.rng.IntN(3) == 0 && whole.From < cut && cut < whole.To {
		parts = []chain.Range{{From: whole.From, To: cut}, {From: cut, To: whole.To}}
	}
	var add []modelFile
	for _, r := range parts {
		add = append(add, w.newFile(KindData, 0, r))
		if w.rng.IntN(3) == 0 {
			add = append(add, w.newFile(KindSenders, 0, r))
		}
	}
	if w.rng.IntN(3) == 0 {
		add = append(add, w.newFile(KindIndex, 0, whole))
	}
	w.commit("seal", add, nil)
}

func (w *world) addSenders() {
	for _, f := range w.of(KindData, 0) {
		has := slices.ContainsFunc(w.of(KindSenders, 0), func(s modelFile) bool { return s.blocks == f.blocks })
		if !has && w.rng.IntN(2) == 0 {
			w.commit("senders", []modelFile{w.newFile(KindSenders, 0, f.blocks)}, nil)
			return
		}
	}
}

func (w *world) addIndex() {
	for _, f := range w.of(KindData, 0) {
		has := slices.ContainsFunc(w.of(KindIndex, 0), func(i modelFile) bool { return !i.blocks.Intersect(f.blocks).Empty() })
		if !has && w.rng.IntN(2) == 0 {
			w.commit("index", []modelFile{w.newFile(KindIndex, 0, f.blocks)}, nil)
			return
		}
	}
}

// run picks some neighbours without a gap from a list in block order.
func (w *world) run(list []modelFile) []modelFile {
	if len(list) < 2 {
		return nil
	}
	start := w.rng.IntN(len(list) - 1)
	end := start + 1
	for end < len(list) && list[end].blocks.From == list[end-1].blocks.To && end-start < 2+w.rng.IntN(3) {
		end++
	}
	if end-start < 2 {
		return nil
	}
	return list[start:end]
}

func span(list []modelFile) chain.Range {
	return chain.Range{From: list[0].blocks.From, To: list[len(list)-1].blocks.To}
}

// mergeIndexes replaces neighbours of one level by one file of the next. Where the next level
// is taken, its file is merged too.
func (w *world) mergeIndexes() {
	level := uint8(w.rng.IntN(3))
	list := w.run(w.of(KindIndex, int(level)))
	if list == nil {
		return
	}
	for _, f := range w.of(KindIndex, int(level)+1) {
		if !f.blocks.Intersect(span(list)).Empty() {
			return
		}
	}
	w.commit("merge", []modelFile{w.newFile(KindIndex, level+1, span(list))}, slices.Clone(list))
}

// repack replaces neighbouring data files by one, with their senders, and drops the indexes
// whose ends would fall into the new file.
func (w *world) repack() {
	list := w.run(w.of(KindData, 0))
	if list == nil {
		return
	}
	whole := span(list)
	remove := slices.Clone(list)
	senders := 0
	for _, f := range w.of(KindSenders, 0) {
		if whole.Covers(f.blocks) {
			remove = append(remove, f)
			senders++
		}
	}
	for _, f := range w.of(KindIndex, -1) {
		if !f.blocks.Intersect(whole).Empty() && !f.blocks.Covers(whole) {
			remove = append(remove, f)
		}
	}
	add := []modelFile{w.newFile(KindData, 0, whole)}
	if senders == len(list) {
		add = append(add, w.newFile(KindSenders, 0, whole))
	}
	w.commit("repack", add, remove)
}

// prune removes a data file and all that depends on it, and adds nothing.
func (w *world) prune() {
	data := w.of(KindData, 0)
	if len(data) == 0 {
		return
	}
	victim := data[w.rng.IntN(len(data))]
	remove := []modelFile{victim}
	for _, kind := range []Kind{KindSenders, KindIndex} {
		for _, f := range w.of(kind, -1) {
			if !f.blocks.Intersect(victim.blocks).Empty() {
				remove = append(remove, f)
			}
		}
	}
	w.commit("prune", nil, remove)
}

// refused commits an edit that must be refused without changing anything.
func (w *world) refused() {
	data := w.of(KindData, 0)
	if len(data) == 0 {
		return
	}
	f := data[w.rng.IntN(len(data))]
	row, err := pendingOf(w.engine, KindData, 0, f.blocks, []byte("overlap"))
	if err != nil {
		w.expectStopped("begin", err)
		return
	}
	w.note("refused edit")
	err = w.engine.Commit(context.Background(), Edit{Add: []NewRow{row}})
	if !errors.Is(err, ErrInvalidEdit) {
		w.expectStopped("commit of an overlap", err)
		return
	}
	if err := row.File.Abort(); err != nil {
		w.expectStopped("abort", err)
	}
	if w.rng.IntN(2) == 0 && !w.machine.Stopped() {
		w.verifyCheck()
	}
}

// plant puts files into the directories of a closed store that it did not write.
func (w *world) plant() {
	if w.rng.IntN(2) == 0 {
		return
	}
	l := layout{fs: w.disk, dir: testDir}
	kind := keys.Kinds()[w.rng.IntN(len(keys.Kinds()))]
	if _, err := w.disk.Stat(l.kind(kind)); err != nil {
		return // crashed before the store existed
	}
	names := []string{
		"notes.txt",
		"000000000001-000000000002.l0.p0.g1.seg",
		"1-2.l0.p0.g00000001.seg",
		fileName(keys.Segment{From: 1_000_000, Generation: 1 << 40}, 1_000_100),
	}
	if len(w.acknowledged) > 0 { // else generation 1 is the one in flight
		names = append(names, fileName(keys.Segment{From: 1_000_000, Generation: 1}, 1_000_100))
	}
	name := names[w.rng.IntN(len(names))]
	content := fmt.Sprintf("foreign %d %s", len(w.foreign), name)
	path := l.file(kind, name)
	f, err := w.disk.Create(path, vfs.WriteCategoryUnspecified)
	if err != nil {
		w.fail("plant: %v", err)
		return
	}
	_, _ = f.Write([]byte(content))
	_ = f.Sync()
	_ = f.Close()
	if err := syncDir(w.disk, l.kind(kind)); err != nil {
		w.fail("plant: %v", err)
	}
	w.foreign[content] = true
	w.note("plant %s", path)
}
