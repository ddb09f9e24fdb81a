package ondemand

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/leani-go/leani/chain"
	"github.com/leani-go/leani/ingest"
	"github.com/leani-go/leani/ingest/era"
	"github.com/leani-go/leani/ingest/remote"
)

// A list of files is read anew when blocks are missing in it and it is old.
func TestRenewal(t *testing.T) {
	s := newFakeSource(t, mainChain())
	s.holds = span(0, 10)
	now := time.Now()
	f, _ := start(t, func(o *Options) { o.Now = func() time.Time { return now } }, s)
	plans := func() int {
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.plans
	}
	for range 2 {
		reasonIs(t, f.Fetch(t.Context(), request(span(20, 21)), new(collector)), NotHeld)
	}
	if n := plans(); n != 2 {
		t.Errorf("%d plans", n)
	}
	now = now.Add(renewAfter)
	reasonIs(t, f.Fetch(t.Context(), request(span(20, 21)), new(collector)), NotHeld)
	if n := plans(); n != 4 {
		t.Errorf("%d plans", n)
	}
	// While there is no new list the old one serves.
	now = now.Add(renewAfter)
	s.openError = errors.New("down")
	reasonIs(t, f.Fetch(t.Context(), request(span(20, 21)), new(collector)), Failed)
	if err := f.Fetch(t.Context(), request(span(5, 6)), new(collector)); err != nil {
		t.Error(err)
	}
}

// A list of files is read anew when it is old and a file is not what it says, because it was replaced or renamed; the request
// that finds that gets its answer.
func TestRenewalAfterFailure(t *testing.T) {
	now := time.Now()
	for _, copied := range []bool{false, true} {
		before, after := newFakeSource(t, mainChain()), newFakeSource(t, mainChain())
		after.dir, after.digest = before.dir, [32]byte{1}
		opens := 0
		f, _ := start(t, func(o *Options) {
			o.Now, o.Sources[0].Copied = func() time.Time { return now }, copied
			o.Sources[0].Open = func(context.Context) (ingest.Source, error) {
				if opens++; opens == 1 {
					return before, nil
				} else if opens == 2 {
					return nil, errors.New("the list is being written")
				}
				return after, nil
			}
		}, before)
		before.proof[12] = &era.DigestError{File: "replaced"}
		fetch := func() error { return f.Fetch(t.Context(), request(span(8, 15)), new(collector)) }
		reasonIs(t, fetch(), Invalid) // the list is new
		for range 2 {                 // and when it is old there is none for a while
			now = now.Add(renewAfter)
			if opens < 2 {
				reasonIs(t, fetch(), Invalid)
			}
		}
		var c collector
		if err := f.Fetch(t.Context(), request(span(8, 15)), &c); err != nil {
			t.Errorf("copied %v: %v", copied, err)
		}
		c.is(t, mainChain(), span(8, 15))
		if opens != 3 {
			t.Errorf("copied %v: the list was read %d times", copied, opens)
		}
		f.running.Wait()
	}

	// Files under other names.
	before, after := newFakeSource(t, mainChain()), newFakeSource(t, mainChain())
	opens := 0
	f, _ := start(t, func(o *Options) {
		o.Now = func() time.Time { return now }
		o.Sources[0].Open = func(context.Context) (ingest.Source, error) {
			if opens++; opens == 1 {
				return before, nil
			}
			return after, nil
		}
	}, before)
	if err := f.Fetch(t.Context(), request(span(1, 2)), new(collector)); err != nil {
		t.Fatal(err)
	}
	for _, n := range []uint64{0, 10} {
		if err := os.Remove(before.name(n)); err != nil {
			t.Fatal(err)
		}
	}
	reasonIs(t, f.Fetch(t.Context(), request(span(1, 12)), new(collector)), Failed)
	now = now.Add(renewAfter)
	if err := f.Fetch(t.Context(), request(span(1, 12)), new(collector)); err != nil {
		t.Error(err)
	}
}

// A file that was changed without a trace in its size and the time of its last write is proved anew.
func TestProofAfterHiddenChange(t *testing.T) {
	if _, _, changed := system(t.TempDir()); changed.IsZero() {
		t.Skip("the time of change is not known here")
	}
	s := newFakeSource(t, mainChain())
	f, _ := start(t, nil, s)
	if err := f.Fetch(t.Context(), request(span(12, 13)), new(collector)); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(s.name(12))
	if err == nil {
		// The clock of a file system may be coarse: until it has moved on a change has no time of its own.
		for before, now := statusChange(s.name(12)), (time.Time{}); err == nil && !now.After(before); now = statusChange(s.name(12)) {
			err = errors.Join(os.WriteFile(s.name(12), []byte("unproved!"), 0o644), os.Chtimes(s.name(12), info.ModTime(), info.ModTime()))
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	s.proof[12] = &era.DigestError{File: s.name(12)}
	reasonIs(t, f.Fetch(t.Context(), request(span(12, 13)), new(collector)), Invalid)
}

func statusChange(name string) time.Time {
	_, _, changed := system(name)
	return changed
}

// That a mirror could not be asked what its files hold is logged, once, whichever blocks clients want; that blocks are missing is not.
func TestLogOfHoles(t *testing.T) {
	for _, c := range []struct {
		unread []error
		copied bool
		want   int
	}{
		{nil, true, 0},
		{[]error{ingest.ErrNoReceipts}, true, 0},
		{[]error{ingest.ErrNoReceipts, &remote.Error{File: "a", Err: &remote.StatusError{Code: 403}}}, true, 1},
		{[]error{&era.CorruptError{File: "a"}}, true, 1},
		{[]error{&era.CorruptError{File: "a"}}, false, 0},
	} {
		s := newFakeSource(t, mainChain())
		f, log := start(t, func(o *Options) { o.Sources[0].Copied = c.copied }, s)
		for n := range uint64(3) {
			s.planError = &era.HoleError{Missing: []chain.Range{span(n, n+1)}, Unread: c.unread}
			if err := f.Fetch(t.Context(), request(span(n, n+1)), new(collector)); err == nil {
				t.Error("no error")
			}
		}
		if got := strings.Count(log.String(), "level=WARN"); got != c.want {
			t.Errorf("%v, copied %v: %d warnings, want %d\n%s", c.unread, c.copied, got, c.want, log.String())
		}
	}
}
