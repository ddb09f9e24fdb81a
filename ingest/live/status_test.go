package live

import (
	"context"
	"errors"
	"io"
	"testing"

	"github.com/leani-go/leani/engine/history"
)

// steps is a source that gives what it is given.
type steps struct{ give chan *Event }

func (s *steps) Next(ctx context.Context) (*Event, error) {
	select {
	case e, ok := <-s.give:
		if !ok {
			return nil, io.EOF
		}
		return e, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// TestStatus: a lane is ready while its source has told something and has no more, through single new blocks and
// reorganizations, and not while it is behind, off the finalized chain, or at an end.
//
// RPC-069
func TestStatus(t *testing.T) {
	l := newLab(t, history.RecentOptions{})
	lane := New(Options{Store: l.store, Source: &list{}})
	if got := lane.Status(); got != (Status{}) {
		t.Errorf("before the start: %+v", got)
	}
	b := l.branch(t, 4, 3, l.base[3].Hash, "b")
	current := &Event{Kind: Current}
	n := func(i int) uint64 { return l.base[i].Number }
	for i, step := range []struct {
		what  string
		event *Event
		want  Status
	}{
		{"a source that has told nothing", current, Status{Running: true}},
		{"the first of several blocks", apply(l.base[0]), Status{Running: true}},
		{"the next one", apply(l.base[1]), Status{Running: true}},
		{"a mark", &Event{Kind: Attested, Block: idOf(l.base[0])}, Status{Running: true}},
		{"the last one", apply(l.base[2]), Status{Running: true}},
		{"no more", current, Status{Running: true, Ready: true}},
		{"a new block", apply(l.base[3]), Status{Running: true, Ready: true}},
		{"no more again", current, Status{Running: true, Ready: true}},
		{"a mark of a block to come", &Event{Kind: Attested, Block: idOf(l.base[5])}, Status{Running: true, Ready: true, Newest: n(5)}},
		{"another one", &Event{Kind: Finalized, Block: idOf(l.base[4])}, Status{Running: true, Ready: true, Newest: n(5)}},
		{"a block of them", apply(l.base[4]), Status{Running: true, Ready: true, Newest: n(5)}},
		{"no more, once more", current, Status{Running: true, Ready: true, Newest: n(5)}},
		{"the other one", apply(l.base[5]), Status{Running: true, Ready: true}},
		{"a branch that contradicts finality", apply(b...), Status{Running: true}},
		{"nothing more than that", current, Status{Running: true}},
		{"the chain again", apply(l.base[5]), Status{Running: true, Ready: true}},
		{"no more of it", current, Status{Running: true, Ready: true}},
		{"an undo", &Event{Kind: Undo, Block: idOf(l.base[4])}, Status{Running: true, Ready: true}},
	} {
		lane.told(step.event.Kind)
		if err := lane.handle(t.Context(), step.event, nil); err != nil {
			t.Fatal(err)
		}
		lane.reached(lane.newestPending(), lane.astray != nil)
		if got := lane.Status(); got != step.want {
			t.Errorf("step %d, %s: got %+v want %+v", i, step.what, got, step.want)
		}
	}
}

// TestStatusEnds: a lane that has ended, whatever way, is not ready.
//
// RPC-069
func TestStatusEnds(t *testing.T) {
	l := newLab(t, history.RecentOptions{})
	for _, stop := range []bool{false, true} {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		source := &steps{give: make(chan *Event)}
		woken := make(chan struct{}, 1)
		lane := New(Options{Store: l.store, Source: source, Committed: func() { woken <- struct{}{} }})
		ended := make(chan error)
		go func() { ended <- lane.Run(ctx) }()
		at := 0
		if stop {
			at = 1
		}
		source.give <- apply(l.base[at])
		<-woken
		if got := lane.Status(); !got.Running || got.Ready {
			t.Errorf("without a word that there is no more: %+v", got)
		}
		if stop {
			cancel()
		} else {
			close(source.give)
		}
		if err := <-ended; stop != errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
		if got := lane.Status(); got != (Status{}) {
			t.Errorf("after the end: %+v", got)
		}
	}
}
