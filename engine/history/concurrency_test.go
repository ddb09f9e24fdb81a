package history

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"go.uber.org/goleak"

	"github.com/leani-go/leani/chain"
	"github.com/leani-go/leani/engine"
	"github.com/leani-go/leani/internal/chainmodel"
)

// noLeaks fails the test when it leaves a goroutine behind. Tests that crash a machine do on purpose:
// what they left is not counted.
func noLeaks(t *testing.T) {
	ignore := goleak.IgnoreCurrent()
	t.Cleanup(func() { goleak.VerifyNone(t, ignore) })
}

// TestConcurrentUse lets everything that uses a store meet: a writer that commits out of order, merges,
// senders, a verification, and readers that compare what they see in their snapshot with the model.
// Every block that was acknowledged before a view was opened is in it, and a view that is held shows the
// same throughout.
//
// INV-02 INV-34
func TestConcurrentUse(t *testing.T) {
	noLeaks(t)
	c := newModelChain(9, 3, 320)
	opts := smallOptions(8)
	opts.CacheBytes = 64 << 10 // so that pages come and go
	e, s, err := openSmall(vfs.NewMem(), 2, opts)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()

	var acknowledged sync.Map // block number to struct{}
	written := make(chan struct{})
	wake := make(chan struct{}, 1)
	var group sync.WaitGroup
	start := func(name string, f func() error) {
		group.Go(func() {
			if err := f(); err != nil && !errors.Is(err, context.Canceled) {
				t.Errorf("%s: %v", name, err)
				stop()
			}
		})
	}
	start("writer", func() error {
		defer close(written)
		w := s.NewWriter(ctx, func(r chain.Range) {
			for n := r.From; n < r.To; n++ {
				acknowledged.Store(n, struct{}{})
			}
			select {
			case wake <- struct{}{}:
			default:
			}
		})
		for _, piece := range []chain.Range{{From: 103, To: 183}, {From: 3, To: 103}, {From: 223, To: 323}, {From: 183, To: 223}} {
			for n := piece.From; n < piece.To; n++ {
				err := w.Add(c.at(n))
				if err == nil && n%5 == 0 {
					err = w.Cut()
				}
				if err != nil {
					return errors.Join(err, w.Close(true))
				}
			}
		}
		return w.Close(false)
	})
	quiet, endQuiet := context.WithCancel(ctx) // ends the background work when all is written
	defer endQuiet()
	start("maintenance", func() error { return s.Maintain(quiet, MaintainOptions{Wake: wake, Senders: true}) })
	start("compaction", func() error {
		for quiet.Err() == nil {
			if _, err := s.Compact(quiet); err != nil {
				return err
			}
		}
		return nil
	})
	start("verification", func() error {
		for quiet.Err() == nil {
			r, err := s.Verify(quiet, VerifyOptions{NewProver: func() Prover { return modelProver{c} }, Workers: 2})
			if err != nil {
				return err
			}
			if err := errors.Join(r.Problems...); err != nil {
				return err
			}
		}
		return nil
	})
	var checks atomic.Int64
	for i := range uint64(3) {
		m := chainmodel.New(100+i, 0)
		m.Addresses, m.Topics = c.model.Addresses, c.model.Topics
		start("reader", func() error {
			for last := false; !last; checks.Add(1) {
				select {
				case <-written:
					last = true
				default:
				}
				if err := c.read(ctx, s, m, &acknowledged); err != nil {
					return err
				}
			}
			return nil
		})
	}
	var held pinned
	start("pin", func() error {
		defer endQuiet()
		select {
		case <-wake: // something is there, much of it still to be merged
		case <-ctx.Done():
			return ctx.Err()
		}
		var err error
		if held.view, err = s.View(); err != nil {
			return err
		}
		wake <- struct{}{}
		held.has = c.covered(held.view.Coverage())
		m := chainmodel.New(200, 0)
		m.Addresses, m.Topics = c.model.Addresses, c.model.Topics
		for last := false; !last; {
			select {
			case <-written:
				last = true
			default:
			}
			if got := c.covered(held.view.Coverage()); !slices.Equal(got, held.has) {
				return errors.New("the coverage of a view changed")
			}
			if err := c.check(ctx, held.view, m, held.has); err != nil {
				return err
			}
		}
		return nil
	})
	group.Wait()
	if held.view != nil {
		held.view.Close()
	}
	if !t.Failed() {
		has := make([]bool, len(c.blocks))
		for i := range has {
			has[i] = true
		}
		if err := c.verifyAgainst(t.Context(), s, has); err != nil {
			t.Error(err)
		}
		t.Logf("%d views compared", checks.Load())
	}
	if err := e.Close(); err != nil {
		t.Error(err)
	}
}

// covered is the model of a coverage.
func (c *modelChain) covered(runs []chain.Range) []bool {
	has := make([]bool, len(c.blocks))
	for _, r := range runs {
		for n := r.From; n < r.To; n++ {
			has[n-c.first] = true
		}
	}
	return has
}

// read opens a view and compares it with the model.
func (c *modelChain) read(ctx context.Context, s *Store, m *chainmodel.Model, acknowledged *sync.Map) error {
	var before []uint64
	acknowledged.Range(func(n, _ any) bool {
		before = append(before, n.(uint64))
		return true
	})
	v, err := s.View()
	if err != nil {
		return err
	}
	defer v.Close()
	has := c.covered(v.Coverage())
	for _, n := range before {
		if !has[n-c.first] {
			return fmt.Errorf("block %d was acknowledged and is not in a view opened afterwards", n)
		}
	}
	return c.check(ctx, v, m, has)
}

// A view goes on answering from its files after a repack and merges have replaced them, whatever is
// open or cached; the files go when the view does.
//
// INV-34 STO-017
func TestViewKeepsReplacedFiles(t *testing.T) {
	noLeaks(t)
	c := newModelChain(4, 0, 64)
	has := make([]bool, len(c.blocks))
	for i := range has {
		has[i] = true
	}
	fs := vfs.NewMem()
	deleted := make(chan string, 1000)
	e, err := engine.Open(engine.Options{Dir: testDir, FS: fs, ChainID: 1, OpenFiles: 1, OnEvent: func(ev engine.Event) {
		if ev.Kind == engine.EventDeleted {
			deleted <- ev.Path
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	s := New(e, smallOptions(8))
	for i := 0; i < len(c.blocks); i += 2 {
		write(t, s, c.blocks[i:i+2])
	}
	if err := s.FillSenders(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	v, err := s.View()
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{} // of the files that the view stands on
	for _, kind := range []engine.Kind{engine.KindData, engine.KindIndex, engine.KindSenders} {
		for _, r := range v.snapshot.Rows(kind) {
			names[fs.PathJoin(testDir, "segments", r.String())] = true
		}
	}
	if st, err := s.Compact(t.Context()); err != nil || st.Repacks != 8 || st.IndexMerges != 1 {
		t.Fatalf("%+v %v", st, err)
	}
	s.Cache().Drop()
	clear(s.open.byRow)
	m := chainmodel.New(1, 0)
	m.Addresses, m.Topics = c.model.Addresses, c.model.Topics
	for range 20 {
		if err := c.check(t.Context(), v, m, has); err != nil {
			t.Fatal(err)
		}
	}
	for name := range names {
		if _, err := fs.Stat(name); err != nil {
			t.Errorf("a file of the view: %v", err)
		}
	}
	v.Close()
	for len(names) > 0 {
		path := <-deleted
		delete(names, path) // files of between are deleted, too
		if _, err := fs.Stat(path); err == nil {
			t.Errorf("%s is said to be deleted", path)
		}
	}
	if err := c.verifyAgainst(t.Context(), s, has); err != nil {
		t.Error(err)
	}
	if err := e.Close(); err != nil {
		t.Error(err)
	}
}
