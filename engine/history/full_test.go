package history

import (
	"errors"
	"math/rand/v2"
	"slices"
	"syscall"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/leani-go/leani/chain"
	"github.com/leani-go/leani/engine"
	"github.com/leani-go/leani/engine/internal/crashfs"
)

// A disk runs full at random moments while blocks are written, merged, given senders and pruned. Each time
// the error says so, what was acknowledged is there, and the same work succeeds when there is room: at once
// when a file did not fit, after the next open when the database did not.
//
// STO-005 STO-006 STO-024 INV-24
func TestDiskRunsFull(t *testing.T) {
	t.Parallel()
	c := newModelChain(9, 0, 72)
	full, reopened := 0, 0
	rounds := 60
	if testing.Short() || raceEnabled {
		rounds = 10
	}
	for seed := range uint64(rounds) {
		rng := rand.New(rand.NewPCG(seed, 17))
		disk := new(crashfs.Full)
		fs := disk.On(vfs.NewMem())
		disk.SetRoom(1 << 40)
		open := func() (*engine.Engine, *Store) {
			e, s, err := openSmall(fs, 4, smallOptions(8))
			if err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
			return e, s
		}
		e, s := open()
		has := make([]bool, len(c.blocks))
		acknowledge := func(r chain.Range, is bool) {
			for n := r.From; n < r.To; n++ {
				has[n] = is
			}
		}
		work := func() error {
			w := s.NewWriter(t.Context(), func(r chain.Range) { acknowledge(r, true) })
			var err error
			for i, ok := range has {
				if !ok && err == nil {
					err = w.Add(c.blocks[i])
				}
			}
			if err = errors.Join(err, w.Close(false)); err != nil {
				return err
			}
			if _, err := s.Compact(t.Context()); err != nil {
				return err
			}
			if err := s.FillSenders(t.Context(), nil); err != nil {
				return err
			}
			from := rng.Uint64N(60)
			gone := chain.Range{From: from, To: from + 1 + rng.Uint64N(8)}
			if _, err := s.Prune(t.Context(), gone, PruneOptions{}); err != nil {
				return err
			}
			acknowledge(gone, false)
			return nil
		}
		for range 6 {
			disk.SetRoom(int64(rng.IntN(250_000)))
			err := work()
			disk.SetRoom(1 << 40)
			switch {
			case err == nil:
				continue
			case !errors.Is(err, syscall.ENOSPC):
				t.Fatalf("seed %d: got %v, want that the disk is full", seed, err)
			case e.Err() != nil: // the database did not fit
				reopened++
				_ = e.Close()
				e, s = open()
				// An edit whose batch did not fit may have happened.
				for i := range has {
					has[i] = len(s.Missing(chain.Range{From: uint64(i), To: uint64(i) + 1})) == 0
				}
			default:
				full++
			}
			if err := c.verifyAgainst(t.Context(), s, has); err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
		}
		if err := work(); err != nil {
			t.Fatalf("seed %d: with room again: %v", seed, err)
		}
		if err := c.verifyAgainst(t.Context(), s, has); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		if err := e.Close(); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("the disk was full %d times for a file, %d times for the database", full, reopened)
	if full < rounds || reopened == 0 && rounds > 10 {
		t.Errorf("the disk was full %d times for a file, %d times for the database", full, reopened)
	}
}

// A store above its budget takes nothing more and can be pruned below it; then writing goes on.
//
// STO-004 STO-005 STO-006 INV-24
func TestStoreBudgetAndPrune(t *testing.T) {
	c := newModelChain(10, 0, 160)
	fs := vfs.NewMem()
	e, s, err := openSmall(fs, 4, smallOptions(8))
	if err != nil {
		t.Fatal(err)
	}
	write(t, s, c.blocks[:80])
	used := e.Space().Store()
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	e, err = engine.Open(engine.Options{Dir: testDir, FS: fs, ChainID: 1, MaximumBytes: used + 15_000})
	if err != nil {
		t.Fatal(err)
	}
	s = New(e, smallOptions(8))
	has := slices.Repeat([]bool{true}, 160)
	clear(has[80:])
	w := s.NewWriter(t.Context(), nil)
	for _, b := range c.blocks[80:] {
		if err = w.Add(b); err != nil {
			break
		}
	}
	if err = errors.Join(err, w.Close(false)); !errors.Is(err, engine.ErrSpace) {
		t.Fatalf("got %v", err)
	}
	if err := c.verifyAgainst(t.Context(), s, has); err != nil {
		t.Error(err)
	}
	if _, err := s.Prune(t.Context(), chain.Range{From: 0, To: 50}, PruneOptions{}); err != nil {
		t.Fatal(err)
	}
	clear(has[:50])
	write(t, s, c.blocks[80:100])
	for i := 80; i < 100; i++ {
		has[i] = true
	}
	if err := c.verifyAgainst(t.Context(), s, has); err != nil {
		t.Error(err)
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
}

// The budget before compression is one of its own, and holds the other way round: it is not passed, and with
// a larger one writing goes on.
//
// STO-005 STO-006
func TestLogicalBudget(t *testing.T) {
	c := newModelChain(11, 0, 64)
	fs := vfs.NewMem()
	s := openStore(t, fs, smallOptions(8))
	write(t, s, c.blocks[:32])
	logical, err := s.LogicalBytes(t.Context())
	if err != nil || logical < 1000 {
		t.Fatalf("%d logical bytes, %v", logical, err)
	}
	if again, err := New(s.Engine(), smallOptions(8)).LogicalBytes(t.Context()); err != nil || again != logical {
		t.Errorf("another time %d logical bytes, %v", again, err)
	}
	opts := smallOptions(8)
	opts.MaximumLogicalBytes = logical + 100
	s = New(s.Engine(), opts)
	w := s.NewWriter(t.Context(), nil)
	for _, b := range c.blocks[32:] {
		if err = w.Add(b); err != nil {
			break
		}
	}
	if err = errors.Join(err, w.Close(false)); !errors.Is(err, ErrBudget) {
		t.Fatalf("got %v", err)
	}
	if _, err := s.Compact(t.Context()); err != nil {
		t.Errorf("merging grows nothing: %v", err)
	}
	if got, err := s.LogicalBytes(t.Context()); err != nil || got > opts.MaximumLogicalBytes {
		t.Errorf("%d logical bytes, %v", got, err)
	}
	opts.MaximumLogicalBytes = 0
	s = New(s.Engine(), opts)
	write(t, s, c.blocks[32:])
	if err := c.verifyAgainst(t.Context(), s, slices.Repeat([]bool{true}, 64)); err != nil {
		t.Error(err)
	}
}
