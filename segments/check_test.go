package segments

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/leani-go/leani/codec"
	"github.com/leani-go/leani/internal/corrupt"
)

func checkFile(t *testing.T, raw []byte) Report {
	t.Helper()
	f, err := Open("f", 1, memorySource(raw), nil)
	if err != nil {
		t.Fatal(err)
	}
	r, err := CheckFile(t.Context(), f)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// A check of a sound file reads all of its pages.
func TestCheckFileOfSoundFiles(t *testing.T) {
	data, index := buildPair(t, largeModel()[:60], codec.Snappy)
	for _, raw := range [][]byte{data, index, example(t, KindData), example(t, KindIndex), example(t, KindSenders)} {
		r := checkFile(t, raw)
		if len(r.Problems) > 0 {
			t.Fatal(r.Problems)
		}
		if want := len(raw) - headerSize - trailerSize - len(storedFooter(raw)); r.Bytes != uint64(want) {
			t.Fatalf("read %d bytes, want %d", r.Bytes, want)
		}
	}
}

// A check goes on behind damage and names every damaged page once. (Pages of page tables are left out here:
// where one is damaged, those that it lists are not found.)
func TestCheckFileFindsAllDamage(t *testing.T) {
	data, index := buildPair(t, largeModel()[:60], codec.Snappy)
	for name, raw := range map[string][]byte{"data": data, "index": index} {
		t.Run(name, func(t *testing.T) {
			rng := testRand(t)
			pageAt := locatePages(t, raw)
			f, err := Open("f", 1, memorySource(raw), nil)
			if err != nil {
				t.Fatal(err)
			}
			tables := map[uint64]bool{}
			for _, c := range f.footer.columns {
				for _, e := range c.root {
					tables[e.offset] = true
				}
			}
			for range 20 {
				bad := slices.Clone(raw)
				want := map[int64]bool{}
				for range 1 + rng.IntN(20) {
					i := headerSize + rng.IntN(len(bad)-headerSize-trailerSize-len(storedFooter(bad)))
					if want[int64(pageAt[i])] || tables[pageAt[i]] {
						continue
					}
					bad[i] ^= 0x10
					want[int64(pageAt[i])] = true
				}
				got := map[int64]bool{}
				for _, err := range checkFile(t, bad).Problems {
					var damage *corrupt.Error
					if !errors.As(err, &damage) || got[damage.Offset] {
						t.Fatalf("%v is not damage, or named twice", err)
					}
					got[damage.Offset] = true
				}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Fatalf("pages with damage differ (want -, got +):\n%s", diff)
				}
			}
		})
	}
}

// Damage of every page is reported up to a limit.
func TestCheckFileStopsAtItsLimit(t *testing.T) {
	data, _ := buildPair(t, largeModel(), codec.None)
	end := len(data) - trailerSize - len(storedFooter(data))
	for i := headerSize; i < end; i += 512 {
		data[i] ^= 1
	}
	if n := len(checkFile(t, data).Problems); n != MaximumProblems {
		t.Fatalf("got %d problems, want %d", n, MaximumProblems)
	}
}

// What a check cannot blame on the file ends it.
func TestCheckFilePassesErrorsOn(t *testing.T) {
	data, index := buildPair(t, largeModel()[:20], codec.None)
	for _, raw := range [][]byte{data, index} {
		f, err := Open("f", 1, memorySource(raw), nil)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := CheckFile(ctx, f); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v, want %v", err, context.Canceled)
		}
		if err := Dump(ctx, io.Discard, f); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v, want %v", err, context.Canceled)
		}
		f.src = &failing{memorySource(raw), 3}
		if r, err := CheckFile(t.Context(), f); !errors.Is(err, errBroken) || len(r.Problems) > 0 {
			t.Errorf("got %v and %v, want %v", r.Problems, err, errBroken)
		}
	}
}

var errBroken = errors.New("broken disk")

// failing is a source that fails after a number of reads.
type failing struct {
	Source
	reads int
}

func (s *failing) ReadAt(b []byte, at int64) (int, error) {
	if s.reads--; s.reads < 0 {
		return 0, errBroken
	}
	return s.Source.ReadAt(b, at)
}

// The dumps of the examples are golden; that of a damaged file says which page is bad and goes on.
func TestDump(t *testing.T) {
	for kind := KindData; kind <= KindSenders; kind++ {
		raw := example(t, kind)
		checkGolden(t, fmt.Sprintf("dump-%s.txt", kind), dump(t, raw))
		last := locatePages(t, raw)[len(raw)-trailerSize-len(storedFooter(raw))-1]
		raw[last+codec.PageHeader] ^= 1 // digests
		if got := dump(t, raw); strings.Count(got, codec.ErrPageChecksum.Error()) != 1 || !strings.Contains(got, "bytes by column") {
			t.Errorf("the dump of a damaged file:\n%s", got)
		}
	}
	// A damaged page table hides pages, but not those of other columns.
	raw := forge(t, example(t, KindData), columnHeaders, -1, func([]byte) {})
	for _, r := range locatePages(t, raw) {
		if table := 0x27c; int(r) == table {
			raw[r+codec.PageHeader] ^= 1
			break
		}
	}
	if got := dump(t, raw); !strings.Contains(got, "corrupt example page 0 offset 636: page checksum differs") || !strings.Contains(got, "pages of words") {
		t.Errorf("the dump of a file with a damaged page table:\n%s", got)
	}
}

func dump(t *testing.T, raw []byte) string {
	t.Helper()
	f, err := Open("example", 1, memorySource(raw), nil)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := Dump(t.Context(), &out, f); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// checkGolden compares with a file in testdata, or rewrites it.
func checkGolden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s differs; run the test with -update\n%s", path, cmp.Diff(string(want), got))
	}
}
