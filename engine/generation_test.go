package engine

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/leani-go/leani/internal/corrupt"
)

// storedGeneration gives the bytes of the generation file, to read and to damage.
func storedGeneration(t *testing.T, fs *vfs.MemFS, l layout) []byte {
	t.Helper()
	raw, err := fs.UnsafeGetFileDataBuffer(l.generation())
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// storeOfCommits makes a store with n commits and closes it.
func storeOfCommits(t *testing.T, fs vfs.FS, n int) layout {
	t.Helper()
	e := mustOpen(t, testOptions(fs))
	for i := range uint64(n) {
		mustCommit(t, e, nil, mustPending(t, e, KindData, 0, 4*i, 4*i+4))
	}
	l := e.layout
	mustClose(t, e)
	return l
}

// copyDir copies the files of a directory over those of another one.
func copyDir(t *testing.T, from, to *vfs.MemFS, dir string) {
	t.Helper()
	if err := to.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	ok, err := vfs.Clone(from, to, dir, dir)
	if err != nil || !ok {
		t.Fatalf("copy %s: %v, %v", dir, ok, err)
	}
}

// TestOlderDatabase puts an older copy of the database below newer files. The open must fail and
// change nothing, read-only too; without the generation file, which the operator may remove to
// accept the loss, the files that the copy does not know are kept aside, the next generation
// included.
//
// STO-024 INV-10
func TestOlderDatabase(t *testing.T) {
	t.Parallel()
	older, fs := vfs.NewMem(), vfs.NewMem()
	l := storeOfCommits(t, fs, 2)
	if ok, err := vfs.Clone(fs, older, l.dir, l.dir); err != nil || !ok {
		t.Fatal(ok, err)
	}
	e := mustOpen(t, testOptions(fs))
	mustCommit(t, e, nil, mustPending(t, e, KindData, 0, 8, 12))
	mustCommit(t, e, nil, mustPending(t, e, KindData, 0, 12, 16))
	mustClose(t, e)
	copyDir(t, older, fs, l.database())

	for _, readOnly := range []bool{false, true} {
		opts := testOptions(fs)
		opts.ReadOnly = readOnly
		_, err := Open(opts)
		var lost *LostCommitsError
		if !errors.As(err, &lost) || !corrupt.Is(err) || *lost != (LostCommitsError{Database: 2, Written: 4}) {
			t.Errorf("open read-only %v: got %v", readOnly, err)
		}
	}
	if names, err := fs.List(l.kind(KindData)); err != nil || len(names) != 4 {
		t.Errorf("data files after refused opens: %v, %v", names, err)
	}

	if err := fs.Remove(l.generation()); err != nil {
		t.Fatal(err)
	}
	e = mustOpen(t, testOptions(fs))
	defer mustClose(t, e)
	if r := e.Recovery(); len(r.Quarantined) != 2 || len(r.Uncommitted) != 0 {
		t.Errorf("recovery without the generation file: %+v", r)
	}
	if s, err := parseGenerationFile(storedGeneration(t, fs, l)); err != nil || s.generation != 2 {
		t.Errorf("the generation file made anew: %+v, %v", s, err)
	}
	mustCheck(t, e)
}

// TestGenerationFileDamage flips every byte of the slots, one by one: with one slot damaged the store
// opens, because a crash may tear one; with both it does not.
func TestGenerationFileDamage(t *testing.T) {
	t.Parallel()
	fs := vfs.NewMem()
	l := storeOfCommits(t, fs, 3)
	raw := storedGeneration(t, fs, l)
	pristine := bytes.Clone(raw)
	if len(raw) != slotCount*slotDistance {
		t.Fatalf("%d bytes", len(raw))
	}
	for i := range int64(slotCount) {
		for at := i * slotDistance; at < i*slotDistance+slotLength; at++ {
			raw[at] ^= 0x10
			e := mustOpen(t, testOptions(fs))
			mustCheck(t, e)
			mustClose(t, e)
			copy(storedGeneration(t, fs, l), pristine)
			raw = storedGeneration(t, fs, l)
		}
	}
	raw[5], raw[slotDistance+30] = raw[5]^1, raw[slotDistance+30]^1
	if _, err := Open(testOptions(fs)); !corrupt.Is(err) || !strings.Contains(err.Error(), "no slot") {
		t.Errorf("both slots damaged: got %v", err)
	}
	other := vfs.NewMem()
	storeOfCommits(t, other, 1)
	copy(raw, storedGeneration(t, other, l))
	if _, err := Open(testOptions(fs)); !corrupt.Is(err) || !strings.Contains(err.Error(), "of store") {
		t.Errorf("the generation file of another store: got %v", err)
	}
}

// TestGenerationSlots writes consecutive generations to slots in turn, so that the one before the
// newest is never being written.
func TestGenerationSlots(t *testing.T) {
	t.Parallel()
	fs := vfs.NewMem()
	l := storeOfCommits(t, fs, 5)
	var got []uint64
	raw := storedGeneration(t, fs, l)
	for i := range syncedSlots {
		s, ok := parseSlot(raw[i*slotDistance:][:slotLength])
		if !ok || int(s.offset()) != i*slotDistance {
			t.Errorf("slot %d: %+v, %v", i, s, ok)
		}
		got = append(got, s.generation)
	}
	if !slices.Equal(got, []uint64{4, 5}) {
		t.Errorf("slots: got generations %v", got)
	}
	e := mustOpen(t, testOptions(fs))
	defer mustClose(t, e)
	raw = storedGeneration(t, fs, l)
	if len(raw) != slotCount*slotDistance || !bytes.Equal(raw[hotOffset:], make([]byte, slotDistance)) {
		t.Error("commits of files wrote the slot of commits without")
	}
	raw[slotDistance] ^= 1 // of generation 5
	report, err := e.Check(t.Context(), CheckOptions{})
	if err != nil || len(report.Problems) != 1 || report.Problems[0].Where != l.generation() {
		t.Errorf("check of a damaged slot: %+v, %v", report, err)
	}
}

// TestTornWitness tears the slot that the last commit wrote, of stores in which commits with and without files follow
// one another in any way, and loses what was not synced: the store opens, and the commit with files before the last is
// still vouched for.
//
// STO-002
func TestTornWitness(t *testing.T) {
	t.Parallel()
	const commits = 6
	for pattern := range 1 << commits {
		fs := vfs.NewMem()
		e := mustOpen(t, testOptions(fs))
		l := e.layout
		marked, hot := hotBlocks(1000, commits+1), 0
		var synced []uint64 // generations of commits with files
		var before []byte   // the file ahead of the last commit
		for i := range commits {
			before = bytes.Clone(storedGeneration(t, fs, l))
			if pattern>>i&1 == 0 {
				mustHot(t, e, HotEdit{Apply: applyOf(marked[hot : hot+1])})
				hot++
				continue
			}
			mustCommit(t, e, nil, mustPending(t, e, KindData, 0, uint64(10*i), uint64(10*i+4)))
			synced = append(synced, e.catalog().generation)
		}
		mustClose(t, e)
		raw := storedGeneration(t, fs, l)
		for at := range int64(slotCount) {
			slot := raw[at*slotDistance:][:slotLength]
			if !bytes.Equal(slot, before[at*slotDistance:][:slotLength]) { // the last commit wrote it
				slot[slotLength-1] ^= 1
			}
		}
		clear(raw[hotOffset:]) // never synced
		want := uint64(0)
		if last := pattern>>(commits-1)&1 == 1; last && len(synced) > 1 {
			want = synced[len(synced)-2]
		} else if !last && len(synced) > 0 {
			want = synced[len(synced)-1]
		}
		if s, err := parseGenerationFile(raw); err != nil || s.generation != want {
			t.Errorf("commits %06b: the witness says %d, %v, want %d", pattern, s.generation, err, want)
		}
		e, err := Open(testOptions(fs))
		if err != nil {
			t.Errorf("commits %06b: %v", pattern, err)
			continue
		}
		if got := e.catalog().generation; got != commits {
			t.Errorf("commits %06b: generation %d", pattern, got)
		}
		mustCheck(t, e)
		mustClose(t, e)
	}
}

// FuzzGenerationFile reads any bytes as a generation file. What it accepts is a slot that is written
// there byte for byte.
func FuzzGenerationFile(f *testing.F) {
	s := slot{epoch: [epochLength]byte{1, 2, 3}, generation: 4}
	next := slot{epoch: s.epoch, generation: 5}
	whole := make([]byte, slotCount*slotDistance)
	s.append(whole[s.offset():s.offset()])
	next.append(whole[next.offset():next.offset()])
	f.Add(whole)
	f.Add(whole[:slotLength])
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, raw []byte) {
		got, err := parseGenerationFile(raw)
		if err != nil {
			return
		}
		for at := 0; at < slotCount*slotDistance && at+slotLength <= len(raw); at += slotDistance {
			if bytes.Equal(got.append(nil), raw[at:at+slotLength]) {
				return
			}
		}
		t.Errorf("%+v is not what the file says", got)
	})
}
