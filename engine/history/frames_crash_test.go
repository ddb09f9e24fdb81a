package history

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/leani-go/leani/chain"
	"github.com/leani-go/leani/engine"
	"github.com/leani-go/leani/engine/internal/crashfs"
	"github.com/leani-go/leani/internal/chainmodel"
)

// TestFramesCrashAtEveryOperation crashes a fixed history of frames of profiles that overlap, with complete
// blocks among them, at every operation. What was acknowledged is there with its states, what was in flight is
// there as a whole or not at all, and complete answers do not depend on it.
//
// STO-002 STO-006
func TestFramesCrashAtEveryOperation(t *testing.T) {
	t.Parallel()
	c := newModelChain(6, 0, 24)
	type state struct {
		frames *partials
		has    []bool
	}
	// run works until the machine stops, and returns what was acknowledged and what was in flight then.
	run := func(fs vfs.FS) (acknowledged, inFlight state, err error) {
		now := state{newPartials(c), make([]bool, len(c.blocks))}
		next := now
		step := func(change func(s *state), work func() error) error {
			next = state{now.frames.clone(), slices.Clone(now.has)}
			change(&next)
			if err := work(); err != nil {
				return err
			}
			now = next
			return nil
		}
		for session := range 2 {
			e, s, err := openSmall(fs, 2, smallOptions(8))
			if err != nil {
				return now, next, err
			}
			add := func(shape chainmodel.Shape, from, to uint64) error {
				return step(func(s *state) { s.frames.note(shape, from, to, true) },
					func() error { return s.AddFrames(context.Background(), now.frames.frames(shape, from, to)...) })
			}
			steps := []func() error{
				func() error { return add(chainmodel.HeaderOnly, 0, 20) }, // three files, one commit
				func() error { return add(chainmodel.LogsOfAddress, 5, 12) },
				func() error {
					return step(func(s *state) {
						for n := 8; n < 16; n++ {
							s.has[n] = true
						}
					}, func() error {
						w := s.NewWriter(context.Background(), nil)
						for _, b := range c.slice(chain.Range{From: 8, To: 16}) {
							if err := w.Add(b); err != nil {
								return errors.Join(err, w.Close(true))
							}
						}
						return w.Close(false)
					})
				},
			}
			if session == 1 {
				steps = []func() error{
					func() error { return add(chainmodel.NoReceipts, 3, 9) },
					func() error {
						return step(func(s *state) {
							s.frames.note(chainmodel.HeaderOnly, 6, 18, false)
							s.frames.note(chainmodel.LogsOfAddress, 6, 18, false)
							s.frames.note(chainmodel.NoReceipts, 6, 18, false)
						},
							func() error {
								_, err := s.PruneFrames(context.Background(), AllProfiles, chain.Range{From: 6, To: 18}, PruneOptions{})
								return err
							})
					},
					func() error { return add(chainmodel.HeaderOnly, 6, 24) },
				}
			}
			for _, work := range steps {
				if err = work(); err != nil {
					break
				}
			}
			if err = errors.Join(err, e.Close()); err != nil {
				return now, next, err
			}
		}
		return now, now, nil
	}
	machine := crashfs.New(vfs.NewCrashableMem(), rand.New(rand.NewPCG(1, 1)))
	machine.StopAt = crashfs.Never
	if _, _, err := run(machine.FS()); err != nil {
		t.Fatal(err)
	}
	n, happened := machine.Count(), 0
	for at := 0; at < n; at += stride() {
		machine := crashfs.New(vfs.NewCrashableMem(), rand.New(rand.NewPCG(uint64(at), 1)))
		machine.StopAt = at
		acknowledged, inFlight, _ := run(machine.FS())
		e, s, err := openSmall(machine.Crash(), 2, smallOptions(8))
		if err != nil {
			t.Fatalf("crash at %s: %v", machine, err)
		}
		v, err := s.View()
		if err != nil {
			t.Fatal(err)
		}
		whole := chain.Range{To: c.end()}
		matches := func(w state) error {
			if got, want := v.Coverage(), c.coverage(w.has); !slices.Equal(got, want) {
				return fmt.Errorf("coverage: got %v want %v", got, want)
			}
			return w.frames.check(t.Context(), v, whole)
		}
		failed := matches(acknowledged)
		is := acknowledged
		if failed != nil {
			if err := matches(inFlight); err != nil {
				t.Fatalf("crash at %s: neither what was acknowledged: %v\nnor with what was in flight: %v", machine, failed, err)
			}
			happened++
			is = inFlight
		}
		if err := c.verifyAgainst(t.Context(), s, is.has); err != nil {
			t.Fatalf("crash at %s: %v", machine, err)
		}
		v.Close()
		if err := e.Close(); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("%d operations; what was in flight happened %d times", n, happened)
}

// A backup holds partial material with its profiles.
func TestFramesBackup(t *testing.T) {
	fs := vfs.NewMem()
	e, s := openPartials(t, fs)
	c := newModelChain(4, 20, 30)
	p := newPartials(c)
	for shape, r := range map[chainmodel.Shape]chain.Range{chainmodel.NoOmmers: {From: 20, To: 40}, chainmodel.LogsOfAddress: {From: 30, To: 50}} {
		if err := s.AddFrames(t.Context(), p.frames(shape, r.From, r.To)...); err != nil {
			t.Fatal(err)
		}
		p.note(shape, r.From, r.To, true)
	}
	if _, err := e.Backup(t.Context(), "backup", engine.BackupOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	e, s, err := openIn("backup", fs, 0, smallOptions(8))
	if err != nil {
		t.Fatal(err)
	}
	p.checkAll(t, s, make([]bool, len(c.blocks)))
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
}
