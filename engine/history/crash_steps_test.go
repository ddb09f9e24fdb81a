package history

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/leani-go/leani/chain"
	"github.com/leani-go/leani/engine/internal/crashfs"
)

// scriptBlocks is the length of the chain that the script stores.
const scriptBlocks = 18

// newScript prepares a machine for one fixed history that visits every kind of work: runs of blocks with
// a gap that is filled later, a repack with and without senders, a merge into the next tier, a view that
// holds replaced files, a range that is pruned and written again, three reopens.
func newScript(t *testing.T, l *crashLab, c *modelChain, at int) *world {
	w := &world{t: t, lab: l, seed: uint64(at), rng: rand.New(rand.NewPCG(uint64(at), 11)), chain: c, opts: smallOptions(2)}
	w.has = make([]bool, len(c.blocks))
	w.senders = make([]bool, len(c.blocks))
	w.disk = vfs.NewCrashableMem()
	w.machine = crashfs.New(w.disk, w.rng)
	w.machine.StopAt = at
	return w
}

// script runs the history until something fails. broken, if set, is called in the store that is open
// then. The last session's Close reports what failed in the background at the latest.
func (w *world) script(broken func(error)) error {
	for _, session := range []func() error{
		func() error {
			// Cut after the first block and the second: the window [0, 2) has two files. A gap at [6, 8).
			return w.writeRuns([]uint64{0}, []uint64{1, 2, 3, 4, 5}, []uint64{8, 9})
		},
		func() error {
			w.pin()
			if err := w.compactOnce(1, 0); err != nil { // [0, 2)
				return err
			}
			w.releasePins()
			if err := w.fill(); err != nil {
				return err
			}
			if err := w.writeRuns([]uint64{6, 7}, []uint64{10, 11, 12, 13, 14, 15, 16}); err != nil {
				return err
			}
			w.pin()
			return w.compactOnce(0, 1) // the indexes of [0, 16)
		},
		func() error {
			w.pin()
			if err := w.fill(); err != nil {
				return err
			}
			if err := w.writeRuns([]uint64{17}); err != nil {
				return err
			}
			if err := w.compactOnce(1, 0); err != nil { // [16, 18), whose senders are not complete
				return err
			}
			return w.fill()
		},
		func() error {
			w.pin()
			// Cuts two data files and their senders, and the index of [0, 16) in two.
			if err := w.prune(chain.Range{From: 5, To: 9}); err != nil {
				return err
			}
			w.releasePins()
			if err := w.writeRuns([]uint64{5, 6, 7, 8}); err != nil {
				return err
			}
			return w.fill()
		},
	} {
		e, s, err := openSmall(w.machine.FS(), 2, w.opts)
		if err != nil {
			return err
		}
		w.store = s
		err = session()
		if err != nil && broken != nil {
			broken(err)
		}
		w.releasePins()
		if err = errors.Join(err, e.Close()); err != nil {
			return err
		}
	}
	return nil
}

// writeRuns writes the blocks of each list as runs of their own.
func (w *world) writeRuns(lists ...[]uint64) error {
	g := w.newWriting(context.Background())
	var err error
	for _, list := range lists {
		for _, n := range list {
			if err == nil {
				err = g.add(n)
			}
		}
		if err == nil {
			err = g.writer.Cut()
		}
	}
	return g.close(false, err)
}

func (w *world) compactOnce(repacks, merges int) error {
	clear(w.senders)
	st, err := w.store.Compact(context.Background())
	if err == nil && (st.Repacks != repacks || st.IndexMerges != merges) {
		w.fail("compact: got %+v want %d repacks and %d merges", st, repacks, merges)
	}
	return err
}

func (w *world) fill() error {
	err := w.store.FillSenders(context.Background(), func(r chain.Range) {
		for n := r.From; n < r.To; n++ {
			w.senders[n-w.chain.first] = true
		}
	})
	if err == nil {
		copy(w.senders, w.has)
	}
	return err
}

// scriptLength counts the operations of the undisturbed script, and proves that it does what it says.
func scriptLength(t *testing.T, c *modelChain) int {
	t.Helper()
	w := newScript(t, &crashLab{}, c, crashfs.Never)
	if err := w.script(nil); err != nil {
		t.Fatal(err)
	}
	if slices.Contains(w.has, false) || slices.Contains(w.senders, false) {
		t.Fatal("the script does not store everything")
	}
	return w.machine.Count()
}

// TestCrashAtEveryOperation crashes the script at every single operation, with none or all of the
// unsynced data surviving (with both in a thorough run), and proves that the store recovers and that the
// same work done again ends in the same history.
//
// INV-29 STO-002
func TestCrashAtEveryOperation(t *testing.T) {
	t.Parallel()
	c := newModelChain(3, 0, scriptBlocks)
	digest := undisturbed(t, c.blocks)
	n := scriptLength(t, c)
	l := &crashLab{}
	for at := 0; at < n; at += stride() {
		for _, percent := range []int{0, 100} {
			if !thorough() && at%2 != percent/100 {
				continue
			}
			w := newScript(t, l, c, at)
			w.machine.Percent = percent
			_ = w.script(nil)
			w.disk = w.machine.Crash()
			where := w.machine
			if w.complete(digest); t.Failed() {
				t.Fatalf("crash at %s, %d%% of unsynced data survive", where, percent)
			}
		}
	}
	t.Logf("%d operations; a run that was not acknowledged survived %d crashes", n, l.done.inFlight)
	if l.done.inFlight == 0 && stride() == 1 {
		t.Error("no crash came between the moment when a run is durable and its acknowledgement")
	}
}
