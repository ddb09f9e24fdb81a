package engine

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/leani-go/leani/chain"
	"github.com/leani-go/leani/keys"
)

// TestSnapshotsUnderConcurrentCommits runs readers against commits that replace what they
// read, with the reaper at work; the race detector watches.
func TestSnapshotsUnderConcurrentCommits(t *testing.T) {
	opts := testOptions(vfs.NewMem())
	opts.noReaper = false
	opts.OpenFiles = 2
	e := mustOpen(t, opts)
	mustCommit(t, e, nil, mustPending(t, e, KindData, 0, 0, 4), mustPending(t, e, KindData, 0, 4, 8), mustPending(t, e, KindIndex, 0, 0, 8))

	stop := make(chan struct{})
	var readers sync.WaitGroup
	for range 4 {
		readers.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				s := e.Acquire()
				for _, kind := range keys.Kinds() {
					for _, r := range s.Rows(kind) {
						f, err := s.Open(r)
						if err != nil {
							t.Errorf("open: %v", err)
							continue
						}
						if err := checkContent(t.Context(), r, f); err != nil {
							t.Errorf("read %s: %v", r, err)
						}
						_ = f.Close()
					}
				}
				s.Release()
			}
		})
	}
	for i := range 100 {
		level := uint8(i % 3)
		mustCommit(t, e, []*FileRow{rowAt(t, e, KindIndex, level, 0)}, mustPending(t, e, KindIndex, (level+1)%3, 0, 8))
		if i%10 == 0 {
			mustCheck(t, e)
		}
	}
	close(stop)
	readers.Wait()
	if err := e.reap(); err != nil {
		t.Fatal(err)
	}
	if report := mustCheck(t, e); len(report.Waiting) > 0 || report.Files != 3 {
		t.Errorf("after the last reader: %+v", report)
	}
	mustClose(t, e)
}

func TestHandleCacheIsBounded(t *testing.T) {
	opts := testOptions(vfs.NewMem())
	opts.OpenFiles = 3
	e := mustOpen(t, opts)
	defer mustClose(t, e)
	var add []NewRow
	for i := range uint64(10) {
		add = append(add, mustPending(t, e, KindData, 0, i, i+1))
	}
	mustCommit(t, e, nil, add...)
	s := e.Acquire()
	defer s.Release()
	var open []*File
	for _, r := range s.Rows(KindData) {
		a, err := s.Open(r)
		if err != nil {
			t.Fatal(err)
		}
		b, err := s.Open(r)
		if err != nil {
			t.Fatal(err)
		}
		if a.handle != b.handle {
			t.Error("two readers of one file do not share its handle")
		}
		open = append(open, a, b)
	}
	if n := e.handles.openCount(); n != 10 {
		t.Errorf("files in use: got %d handles want 10", n)
	}
	for _, f := range open {
		_ = f.Close()
		_ = f.Close()
	}
	if n := e.handles.openCount(); n != 3 {
		t.Errorf("idle: got %d handles want 3", n)
	}
	for _, r := range s.Rows(KindData) {
		f, err := s.Open(r)
		if err != nil {
			t.Fatal(err)
		}
		if f.Size() != r.Size || f.Row() != r || !strings.HasSuffix(f.Path(), r.Name()) {
			t.Errorf("handle of %s describes another file: %s", r, f.Path())
		}
		_ = f.Close()
	}
	other := *s.Rows(KindData)[0]
	other.Generation = 99
	if _, err := s.Open(&other); !errors.Is(err, ErrNotInSnapshot) {
		t.Errorf("open of a row that is not in the snapshot: %v", err)
	}
}

func TestSnapshotLookups(t *testing.T) {
	e := mustOpen(t, testOptions(vfs.NewMem()))
	defer mustClose(t, e)
	mustCommit(t, e, nil,
		mustPending(t, e, KindData, 0, 10, 20), mustPending(t, e, KindData, 0, 20, 30), mustPending(t, e, KindData, 0, 40, 50),
		mustPending(t, e, KindSenders, 0, 20, 30),
		mustPending(t, e, KindIndex, 0, 10, 20), mustPending(t, e, KindIndex, 0, 40, 50), mustPending(t, e, KindIndex, 2, 10, 30))
	s := e.Acquire()
	defer s.Release()

	for n, want := range map[uint64]uint64{9: 0, 10: 10, 19: 10, 20: 20, 29: 20, 30: 0, 39: 0, 40: 40, 49: 40, 50: 0} {
		r, ok := s.DataFile(n)
		if ok != (want != 0) || ok && r.From != want {
			t.Errorf("data file of block %d: got %v want one from %d", n, r, want)
		}
	}
	for _, c := range []struct {
		in      chain.Range
		files   int
		parts   string
		missing chain.Range
	}{
		{chain.Range{From: 0, To: 10}, 0, "", chain.Range{From: 0, To: 10}},
		{chain.Range{From: 15, To: 15}, 0, "", chain.Range{}},
		{chain.Range{From: 15, To: 16}, 1, "l2[15, 16)", chain.Range{}},
		{chain.Range{From: 10, To: 30}, 2, "l2[10, 30)", chain.Range{}},
		{chain.Range{From: 25, To: 45}, 2, "l2[25, 30) l0[40, 45)", chain.Range{From: 30, To: 40}},
		{chain.Range{From: 0, To: 100}, 3, "l2[10, 30) l0[40, 50)", chain.Range{From: 0, To: 10}},
		{chain.Range{From: 45, To: 60}, 1, "l0[45, 50)", chain.Range{From: 50, To: 60}},
		{chain.Range{From: 50, To: 60}, 0, "", chain.Range{From: 50, To: 60}},
	} {
		if got := len(s.DataFiles(c.in)); got != c.files {
			t.Errorf("data files of %v: got %d want %d", c.in, got, c.files)
		}
		var parts []string
		for _, p := range s.IndexFiles(c.in) {
			parts = append(parts, fmt.Sprintf("l%d%v", p.Row.Level, p.Range))
		}
		if got := strings.Join(parts, " "); got != c.parts {
			t.Errorf("index files of %v: got %q want %q", c.in, got, c.parts)
		}
		missing, ok := s.Missing(FieldHeaders, c.in)
		if ok != !c.missing.Empty() || ok && missing != c.missing {
			t.Errorf("missing headers of %v: got %v, %v want %v", c.in, missing, ok, c.missing)
		}
	}
	if _, ok := s.SendersFile(s.Rows(KindData)[0]); ok {
		t.Error("senders are found where there are none")
	}
	if r, ok := s.SendersFile(s.Rows(KindData)[1]); !ok || r.Kind != KindSenders {
		t.Error("senders are not found")
	}
	if s.Rows(0) != nil || s.Rows(99) != nil || len(s.Coverage(77)) > 0 {
		t.Error("unknown kinds and groups must have nothing")
	}
}
