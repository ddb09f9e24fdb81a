package engine

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/leani-go/leani/chain"
	"github.com/leani-go/leani/internal/corrupt"
	"github.com/leani-go/leani/keys"
)

// FuzzDecodeProfile proves that the row of a profile is refused or is the one encoding of what it says.
func FuzzDecodeProfile(f *testing.F) {
	for i := 1; i < len(testProfiles); i++ {
		f.Add(appendProfileValue(nil, &Profile{Groups: testProfiles[i], Description: testDescription(uint8(i))}))
	}
	f.Add([]byte{1, 200, 1, 1})
	f.Fuzz(func(t *testing.T, value []byte) {
		if p, err := decodeProfile(keys.Profile{ID: 1}, value); err == nil {
			if got := appendProfileValue(nil, p); !bytes.Equal(got, value) {
				t.Errorf("got %x want %x", got, value)
			}
		}
	})
}

// A description has one number, before and after the commit that stores it, in this process and the next; a
// number that was never used is given again.
func TestProfileID(t *testing.T) {
	fs := vfs.NewMem()
	e := mustOpen(t, testOptions(fs))
	id := func(description string, groups ...ProfileGroup) uint16 {
		t.Helper()
		id, err := e.ProfileID(groups, []byte(description))
		if err != nil {
			t.Fatal(err)
		}
		return id
	}
	a, b := id("a", ProfileGroup{FieldHeaders, Complete}), id("b")
	if a != 1 || b != 2 || id("a", ProfileGroup{FieldHeaders, Complete}) != a || id("b") != b {
		t.Fatalf("got %d and %d", a, b)
	}
	if _, err := e.ProfileID(nil, []byte("a")); err == nil {
		t.Error("one description has two meanings")
	}
	for _, bad := range [][]ProfileGroup{{{77, Complete}}, {{FieldBodies, 9}}, {{FieldBodies, Partial}, {FieldHeaders, Partial}}} {
		if _, err := e.ProfileID(bad, []byte("c")); err == nil {
			t.Errorf("groups %v are accepted", bad)
		}
	}
	if _, err := e.ProfileID(nil, nil); err == nil {
		t.Error("no description is accepted")
	}
	frames := func(profile uint16, from, to uint64) NewRow {
		p, err := e.NewFile(KindFrames)
		if err != nil {
			t.Fatal(err)
		}
		content := fmt.Appendf(nil, "%d %d %d", profile, from, to)
		_, _ = p.Write(bytes.Clone(content)) // Write may scribble on its input
		row := newRow(KindFrames, 0, chain.Range{From: from, To: to}, content)
		row.Profile = profile
		return NewRow{File: p, Row: row}
	}
	mustCommit(t, e, nil, frames(a, 4, 8))
	mustClose(t, e)

	e = mustOpen(t, testOptions(fs))
	defer func() { mustClose(t, e) }()
	if got := id("a", ProfileGroup{FieldHeaders, Complete}); got != a {
		t.Errorf("the profile has number %d after reopening, it had %d", got, a)
	}
	if got := id("other"); got != b {
		t.Errorf("got number %d want %d, which nothing uses", got, b)
	}
	// What the rules between rows refuse.
	broken := frames(a, 8, 9)
	broken.Row.ParentHash[0]++
	data := mustPending(t, e, KindData, 0, 0, 4)
	data.Row.Profile = a
	for what, row := range map[string]NewRow{
		"no description": frames(9, 0, 4), "profile 0": frames(0, 0, 4), "overlap": frames(a, 7, 9), "no link": broken, "data": data,
	} {
		if err := e.Commit(t.Context(), Edit{Add: []NewRow{row}}); !errors.Is(err, ErrInvalidEdit) {
			t.Errorf("%s: got %v", what, err)
		}
		_ = row.File.Abort()
	}
	mustCommit(t, e, nil, frames(b, 6, 12), frames(a, 8, 9), mustPending(t, e, KindData, 0, 0, 10))
	s := e.Acquire()
	defer s.Release()
	if got := s.PartialCoverage(FieldHeaders, a); len(got) != 1 || got[0].Range != (chain.Range{From: 4, To: 9}) {
		t.Errorf("coverage of headers: %v", got)
	}
	if got := s.Coverage(FieldHeaders); len(got) != 1 || got[0].Range != (chain.Range{From: 0, To: 10}) { // INV-07
		t.Errorf("partial material counts as complete: %v", got)
	}
	if len(s.Profiles()) != 2 || len(s.Frames(a)) != 2 || len(s.Frames(b)) != 1 || len(s.Frames(0)) != 0 || len(s.Frames(3)) != 0 {
		t.Errorf("profiles %v, files %v and %v", s.Profiles(), s.Frames(a), s.Frames(b))
	}
	mustCheck(t, e)
}

func TestProfilesAreBounded(t *testing.T) {
	e := mustOpen(t, testOptions(vfs.NewMem()))
	defer mustClose(t, e)
	for i := range MaximumProfiles {
		if _, err := e.ProfileID(nil, fmt.Append(nil, i)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := e.ProfileID(nil, []byte("one more")); err == nil {
		t.Error("the number of profiles is not bounded")
	}
	if _, err := e.ProfileID(nil, make([]byte, MaximumProfileBytes+1)); err == nil {
		t.Error("the size of a profile is not bounded")
	}
}

// Damage of the rows of profiles fails the open and is named.
func TestDamagedProfilesFailTheOpen(t *testing.T) {
	first := keys.Profile{ID: 1}
	for name, c := range map[string]struct {
		change func(*pebble.DB) error
		where  string
	}{
		"lost":       {func(db *pebble.DB) error { return db.Delete(first.Append(nil), pebble.Sync) }, "segment/frames/profile=1"},
		"cut short":  {set(first, []byte{1}), "profile/1"},
		"version":    {set(first, []byte{2, 0, 1}), "profile/1"},
		"twice":      {set(keys.Profile{ID: 2}, appendProfileValue(nil, &Profile{Description: testDescription(1)})), "profile/2"},
		"group lost": {set(first, appendProfileValue(nil, &Profile{Description: testDescription(1)})), "raw-coverage/headers/profile=1"},
	} {
		t.Run(name, func(t *testing.T) {
			fs := vfs.NewMem()
			e := mustOpen(t, testOptions(fs))
			mustCommit(t, e, nil, mustPending(t, e, KindFrames, 1, 0, 4))
			mustClose(t, e)
			changeDatabase(t, fs, c.change)
			_, err := Open(testOptions(fs))
			var located *corrupt.Error
			if !errors.As(err, &located) || !strings.Contains(located.File, c.where) {
				t.Errorf("open: got %v want corruption of %s", err, c.where)
			}
		})
	}
}

// A store from before frames files has no directory for them: it can be opened read-only.
func TestReadOnlyWithoutFramesDirectory(t *testing.T) {
	fs := vfs.NewMem()
	e := mustOpen(t, testOptions(fs))
	mustCommit(t, e, nil, mustPending(t, e, KindData, 0, 0, 4))
	dir := e.layout.kind(KindFrames)
	mustClose(t, e)
	if err := fs.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	opts := testOptions(fs)
	opts.ReadOnly = true
	mustClose(t, mustOpen(t, opts))
}
