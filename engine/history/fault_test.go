package history

import (
	"context"
	"errors"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/leani-go/leani/chain"
	"github.com/leani-go/leani/engine"
	"github.com/leani-go/leani/engine/internal/crashfs"
	"github.com/leani-go/leani/internal/corrupt"
)

// fullOrBroken is what a disk answers: it is full when it should grow, and broken otherwise.
func fullOrBroken(op string) error {
	switch op {
	case "write", "write-at", "create", "mkdir":
		return syscall.ENOSPC
	default:
		return syscall.EIO
	}
}

// passedBefore is how many changes of other goroutines may be on their way to the disk, behind the guard, while
// one fails: closing a database flushes, rotates its log and deletes at once.
const passedBefore = 2

// TestErrorAtEveryOperation fails every single operation of the script once: writes stop half-way
// because the disk is full, syncs, renames and removals because it is broken. The cause must reach the
// caller, views go on answering, old and new, and the store must open again as it was acknowledged, with
// or without a power cut after the error (both in a thorough run); doing the work again ends in the same
// history.
//
// STO-006 STO-024
func TestErrorAtEveryOperation(t *testing.T) {
	t.Parallel()
	c := newModelChain(3, 0, scriptBlocks)
	digest := undisturbed(t, c.blocks)
	n := scriptLength(t, c)
	sticky, soft := 0, 0
	for at := 0; at < n; at += stride() {
		w := newScript(t, &crashLab{}, c, at)
		w.machine.Inject, w.machine.Short = fullOrBroken, true
		tried := 0
		went := false // on, without a reopen
		err := w.script(func(err error) {
			if w.store.Engine().Err() == nil {
				soft++
				went = true
				w.verifyWentOn(err)
				return
			}
			sticky++
			tried = len(w.machine.After()) // by others, while the failure made its way
			w.verifyFailed()
		})
		if !w.machine.Stopped() {
			break // background work made this run shorter
		}
		var failed *engine.FailedError
		if !errors.As(err, &failed) && !went || !errors.Is(err, syscall.ENOSPC) && !errors.Is(err, syscall.EIO) {
			t.Errorf("got %v, want the injected failure", err)
		}
		if after := w.machine.After(); !went && len(after) > tried+passedBefore {
			t.Errorf("changes after the failure: %v", after[tried:])
		}
		where := w.machine
		disk, has, doubt, senders := w.disk, slices.Clone(w.has), w.doubt, slices.Clone(w.senders)
		for i, next := range []*vfs.MemFS{disk.CrashClone(vfs.CrashCloneCfg{}), disk} {
			if !thorough() && at%2 != i {
				continue
			}
			w.disk, w.doubt = next, doubt
			copy(w.has, has)
			copy(w.senders, senders)
			w.complete(digest)
		}
		if t.Failed() {
			t.Fatalf("error at %s", where)
		}
	}
	if sticky+soft < n/2/stride() || soft == 0 {
		t.Errorf("only %d of %d operations failed in an open store, %d that cost no more than a file", sticky+soft, n, soft)
	}
}

// verifyWentOn proves that a disk which is full while a file is written costs no more than that file.
func (w *world) verifyWentOn(err error) {
	w.t.Helper()
	if !errors.Is(err, syscall.ENOSPC) {
		w.fail("the store goes on after %v", err)
	}
	w.doubt, w.gone = chain.Range{}, chain.Range{} // what failed is not there
	w.verifyPins()
	w.verify()
	w.write()
	w.verify()
}

// verifyFailed proves that a store whose disk has failed refuses changes and answers queries.
func (w *world) verifyFailed() {
	w.t.Helper()
	w.verifyPins()
	w.ask()
	g := w.store.NewWriter(context.Background(), func(r chain.Range) { w.fail("blocks %v are acknowledged after a failure", r) })
	var failed *engine.FailedError
	if err := errors.Join(g.Add(w.chain.blocks[0]), g.Close(false)); !errors.As(err, &failed) {
		w.fail("write to a failed store: %v", err)
	}
}

// An error of the disk under a read is the caller's to see as it is: it is not taken for damage, it
// leaves no trace in the caches, and the store goes on.
//
// INV-10
func TestReadErrors(t *testing.T) {
	c := newModelChain(5, 0, 40)
	has := make([]bool, len(c.blocks))
	for i := range has {
		has[i] = true
	}
	m := crashfs.New(vfs.NewCrashableMem(), nil)
	reads, failAt := 0, -1
	m.OnRead = func(path string, _ int64) error {
		if !strings.HasSuffix(path, ".seg") {
			return nil
		}
		if reads++; reads-1 == failAt {
			return syscall.EIO
		}
		return nil
	}
	e, s, err := openSmall(m.FS(), 2, smallOptions(8))
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	}()
	write(t, s, c.blocks)
	if _, err := s.Compact(t.Context()); err != nil {
		t.Fatal(err)
	}
	ask := func() error {
		s := New(e, smallOptions(8)) // cold caches
		for failed := false; ; failed = true {
			err := askAll(t.Context(), s, c, has)
			if err == nil {
				return nil
			}
			if !errors.Is(err, syscall.EIO) || corrupt.Is(err) || failed {
				return err
			}
		}
	}
	if err := ask(); err != nil {
		t.Fatal(err)
	}
	n := reads
	if n < 50 {
		t.Fatalf("only %d reads", n)
	}
	for failAt = 0; failAt < n; failAt += stride() {
		reads = 0
		if err := ask(); err != nil {
			t.Fatalf("read %d fails: %v", failAt, err)
		}
	}
	if e.Err() != nil {
		t.Error(e.Err())
	}
}

// askAll asks a fixed set of questions of a store that hold all blocks of a chain.
func askAll(ctx context.Context, s *Store, c *modelChain, has []bool) error {
	v, err := s.View()
	if err != nil {
		return err
	}
	defer v.Close()
	m := newModelChain(1, 0, 0).model // a source of randomness that starts anew each time
	m.Addresses, m.Topics = c.model.Addresses, c.model.Topics
	whole := chain.Range{From: c.first, To: c.end()}
	for range 4 {
		if err := c.query(ctx, v, m, whole); err != nil {
			return err
		}
	}
	for n := c.first; n < c.end(); n += 3 {
		if err := c.lookUp(ctx, v, m, n); err != nil {
			return err
		}
	}
	return c.check(ctx, v, m, has)
}
