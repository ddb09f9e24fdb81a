package history

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/leani-go/leani/chain"
)

// TestHotIsolation reads on several goroutines while blocks come, go and are sealed: every view shows one state of the
// chain throughout, however long it is held, and one that some commit left.
//
// INV-02 INV-34 SRC-054
func TestHotIsolation(t *testing.T) {
	t.Parallel()
	c := newBranchingChain(21, 0, 6)
	s := smallHot(t)
	write(t, s, c.blocks)
	var mu sync.Mutex
	states := map[uint64]*modelChain{} // by the hash of the head, shortened
	name := func(m *modelChain) uint64 {
		h := m.blocks[len(m.blocks)-1].Hash
		return uint64(h[0])<<56 | uint64(h[1])<<48 | uint64(h[2])<<40 | uint64(h[3])<<32 | uint64(len(m.blocks))
	}
	remember := func() {
		mu.Lock()
		defer mu.Unlock()
		m := c.copyOf()
		states[name(m)] = m
	}
	remember()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var group sync.WaitGroup
	errs := make(chan error, 8)
	for reader := range uint64(3) {
		group.Go(func() {
			for n := uint64(0); ctx.Err() == nil; n++ {
				if err := readOnce(ctx, s, reader<<32|n, func(hash [32]byte, blocks int) *modelChain {
					mu.Lock()
					defer mu.Unlock()
					return states[uint64(hash[0])<<56|uint64(hash[1])<<48|uint64(hash[2])<<40|uint64(hash[3])<<32|uint64(blocks)]
				}); err != nil {
					errs <- err
					return
				}
			}
		})
	}
	group.Go(func() {
		for ctx.Err() == nil {
			if _, err := s.SealRecent(context.WithoutCancel(ctx)); err != nil {
				errs <- err
				return
			}
			if _, err := s.Compact(context.WithoutCancel(ctx)); err != nil {
				errs <- err
				return
			}
		}
	})
	rounds := 300
	if testing.Short() || raceEnabled {
		rounds = 80
	}
	for i := range rounds {
		// Only what is above the mark is undone, so that sealing never is in the way.
		x := c.branch(c.rng.IntN(4), 1+c.rng.IntN(3))
		if i%3 == 2 && len(c.blocks) > c.finalized+4 {
			c.finalized = len(c.blocks) - 4
			c.sealed = c.finalized
			x.Finalized = &c.blocks[c.finalized-1].BlockRef
		}
		remember() // before the commit: a reader may see it at once
		if err := s.Extend(ctx, &x); err != nil {
			t.Fatal(err)
		}
	}
	stop()
	group.Wait()
	close(errs)
	for err := range errs {
		t.Error(err)
	}
}

// readOnce opens a view, finds the state that it shows, and compares the two twice.
func readOnce(ctx context.Context, s *Store, seed uint64, find func(hash [32]byte, blocks int) *modelChain) error {
	v, err := s.View()
	if err != nil {
		return err
	}
	defer v.Close()
	head, ok := v.Head()
	if !ok {
		return fmt.Errorf("no head")
	}
	m := find(v.HeadHash(), int(head)+1)
	if m == nil {
		return fmt.Errorf("head %d %x is of no state", head, v.HeadHash())
	}
	for i := range uint64(2) {
		if err := checkView(context.WithoutCancel(ctx), v, m, seed+i, nil); err != nil {
			return fmt.Errorf("view of %d blocks: %w", head+1, err)
		}
	}
	if err := v.Logs(context.WithoutCancel(ctx), chain.Range{From: head, To: head + 1}, &chain.LogFilter{}, func(*chain.FoundLog) error { return nil }); err != nil {
		return err
	}
	return nil
}
