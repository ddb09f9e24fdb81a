package main

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/leani-go/leani/chain"
	"github.com/leani-go/leani/ingest"
	"github.com/leani-go/leani/ingest/era"
	"github.com/leani-go/leani/internal/progress"
)

// A flip turns one bit of a file around, and back.
type flip struct {
	path string
	bit  int64
}

func (f flip) String() string {
	return fmt.Sprintf("%s byte %d bit %d", filepath.Base(f.path), f.bit/8, f.bit%8)
}

func (f flip) apply(tb testing.TB) {
	tb.Helper()
	file, err := os.OpenFile(f.path, os.O_RDWR, 0)
	if err != nil {
		tb.Fatal(err)
	}
	var b [1]byte
	if _, err := file.ReadAt(b[:], f.bit/8); err != nil {
		tb.Fatal(err)
	}
	b[0] ^= 1 << (f.bit % 8)
	if _, err := file.WriteAt(b[:], f.bit/8); err != nil {
		tb.Fatal(err)
	}
	if err := file.Close(); err != nil {
		tb.Fatal(err)
	}
}

// flipsOf picks bits of a file: count of them in even distances, each at a random place of its
// stretch, so that repeated runs look at other ones.
func flipsOf(tb testing.TB, path string, size int64, count int, rng *rand.Rand) []flip {
	tb.Helper()
	bits := size * 8
	var flips []flip
	for i := range int64(min(int64(count), bits)) {
		from, to := bits*i/int64(count), bits*(i+1)/int64(count)
		flips = append(flips, flip{path, from + rng.Int64N(max(1, to-from))})
	}
	return flips
}

// seeded is a source of randomness whose seed a failing test shows.
func seeded(tb testing.TB) *rand.Rand {
	tb.Helper()
	seed := rand.Uint64()
	tb.Cleanup(func() {
		if tb.Failed() {
			tb.Logf("seed %d", seed)
		}
	})
	return rand.New(rand.NewPCG(seed, 0))
}

// fileSize is the size of a file.
func fileSize(tb testing.TB, path string) int64 {
	tb.Helper()
	info, err := os.Stat(path)
	if err != nil {
		tb.Fatal(err)
	}
	return info.Size()
}

// sourceLab is a lab whose era files can be damaged, and what their stores look like undisturbed.
type sourceLab struct {
	*lab
	paths []string               // of the era files in the lab, parallel to bundledSpans
	good  map[chain.Range]string // digests of stores with these blocks
	node  *storedNode            // with nothing in it
}

func newSourceLab(t *testing.T) *sourceLab {
	t.Helper()
	c := bundled(t)
	originals := c.files
	c.files = nil
	l := &sourceLab{lab: newLab(t, c), good: map[chain.Range]string{}}
	for _, path := range originals {
		l.paths = append(l.paths, filepath.Join(l.era(), filepath.Base(path)))
		writeFile(t, l.paths[len(l.paths)-1], readFile(t, path))
	}
	l.catalog()
	l.renew(t)
	for _, s := range bundledSpans { // and of their first blocks alone
		for to := s.From + 1; to <= s.To; to++ {
			r := chain.Range{From: s.From, To: to}
			if err := l.node.fill(t.Context(), r, func(progress.Count) {}); err != nil {
				t.Fatal(err)
			}
			l.good[r] = verifyNode(t, l.node).Digest
			l.renew(t)
		}
	}
	t.Cleanup(func() {
		if err := l.node.close(); err != nil {
			t.Error(err)
		}
	})
	return l
}

// renew opens the node on a new data directory.
func (l *sourceLab) renew(t *testing.T) {
	t.Helper()
	if l.node != nil {
		if err := l.node.close(); err != nil {
			t.Error(err)
		}
	}
	l.set("", "data_dir", fmt.Sprintf("%q", t.TempDir()))
	var err error
	if l.node, err = l.tryOpen(false); err != nil {
		t.Fatal(err)
	}
}

// fill fills a span from files of which one is damaged, judges the error, and requires that the store
// holds nothing but good blocks; none of a file whose digest is wrong. It says which kind of error came.
func (l *sourceLab) fill(t *testing.T, i int, recounted bool) (string, error) {
	t.Helper()
	kind, err := judgeSource(l.node.fill(t.Context(), bundledSpans[i], func(progress.Count) {}), l.paths[i], recounted)
	v, viewErr := l.node.history.View()
	if viewErr != nil {
		t.Fatal(viewErr)
	}
	covered := v.Coverage()
	v.Close()
	if len(covered) == 0 { // the next one can use the store
		return kind, err
	}
	r := verifyNode(t, l.node)
	if len(covered) > 1 || l.good[covered[0]] == "" || r.Digest != l.good[covered[0]] || len(r.Problems) > 0 || !recounted {
		err = errors.Join(err, fmt.Errorf("the store holds %v with digest %s, problems %q", covered, r.Digest, r.Problems))
	}
	l.renew(t)
	return kind, err
}

// A flipped bit anywhere in an era file stops the fill with an error that names the file, and the block
// or the place in it when the digest does not show the damage already. The store keeps what it had, and
// good blocks at most. (SRC-030)
func TestFlippedBitsOfSources(t *testing.T) {
	skipWithRace(t)
	t.Parallel()
	count := 40
	if *longTests {
		count = 2000
	}
	l, rng, outcomes := newSourceLab(t), seeded(t), map[string]int{}
	for i, path := range l.paths {
		for _, f := range flipsOf(t, path, fileSize(t, path), count, rng) {
			for _, recount := range []bool{false, true} {
				f.apply(t)
				if recount {
					l.catalog()
				}
				kind, err := l.fill(t, i, recount)
				f.apply(t)
				if recount {
					l.catalog()
				}
				if err != nil {
					t.Errorf("%v, digest recomputed %v: %v", f, recount, err)
				}
				outcomes[kind]++
			}
		}
	}
	t.Log(outcomes)
}

// flipContent writes an era file of which a bit of one record was turned around before it was
// compressed, so that no checksum of the file shows it.
func (l *sourceLab) flipContent(t *testing.T, path string, original []byte, victim int, rng *rand.Rand) (what string) {
	t.Helper()
	writeFile(t, path, rewriteSource(t, original, func(i int, plain []byte) {
		if i == victim {
			at, bit := rng.IntN(len(plain)), rng.IntN(8)
			plain[at] ^= 1 << bit
			what = fmt.Sprintf("%s, content of record %d, byte %d bit %d", filepath.Base(path), i, at, bit)
		}
	}))
	l.catalog()
	return what
}

// A bit of a body or of receipts that was flipped before compression is found by the roots of the
// header. (SRC-030)
func TestFlippedBitsOfBlocks(t *testing.T) {
	skipWithRace(t)
	t.Parallel()
	count := 60
	if *longTests {
		count = 2000
	}
	l, rng, outcomes := newSourceLab(t), seeded(t), map[string]int{}
	for i, path := range l.paths {
		original := readFile(t, path)
		for range count {
			what := l.flipContent(t, path, original, 2+rng.IntN(4), rng) // two headers come first
			kind, err := l.fill(t, i, true)
			if err == nil && kind == "no harm" {
				err = errors.New("the fill succeeded")
			}
			if err != nil {
				t.Errorf("%s: %v", what, err)
			}
			outcomes[kind]++
		}
		writeFile(t, path, original)
		l.catalog()
	}
	t.Log(outcomes)
}

// A header that was changed has another hash, so that it does not fit to the block above it, be that
// stored already or in the same file. Nothing but the digest of the file proves the uppermost header.
func TestFlippedBitsOfHeaders(t *testing.T) {
	skipWithRace(t)
	t.Parallel()
	l, rng := newSourceLab(t), seeded(t)
	for i, path := range l.paths {
		original := readFile(t, path)
		span := bundledSpans[i]
		upper := chain.Range{From: span.From + 1, To: span.To}
		if err := l.node.fill(t.Context(), upper, func(progress.Count) {}); err != nil {
			t.Fatal(err)
		}
		before := verifyNode(t, l.node).Digest
		for range 25 {
			what := l.flipContent(t, path, original, 0, rng)
			kind, err := judgeSource(l.node.fill(t.Context(), span, func(progress.Count) {}), path, true)
			if err == nil && kind == "no harm" {
				err = errors.New("the fill succeeded")
			}
			if r := verifyNode(t, l.node); r.Digest != before {
				err = errors.Join(err, errors.New("the store has changed"))
			}
			if err != nil {
				t.Errorf("%s: %v", what, err)
			}
		}
		writeFile(t, path, original)
		l.catalog()
	}
}

// judgeSource says which kind of error a fill from a damaged file gave, and what is wrong with it.
func judgeSource(err error, path string, recounted bool) (string, error) {
	var (
		digest *era.DigestError
		block  *ingest.BlockError
		record *era.CorruptError
		hole   *era.HoleError
	)
	switch {
	case err == nil && recounted:
		return "no harm", nil // a bit that decoding ignores; what was stored is compared
	case err == nil:
		return "none", errors.New("the fill succeeded")
	case errors.As(err, &hole):
		// The index claims other blocks. The folder is named with what it holds.
		return "hole", nil
	case !strings.Contains(err.Error(), path):
		return "nameless", fmt.Errorf("the error does not name the file: %w", err)
	case errors.As(err, &digest):
		if recounted {
			return "digest", fmt.Errorf("a digest that is right was refused: %w", err)
		}
		return "digest", nil
	case errors.As(err, &block):
		return "block", located(block.File, block.Offset, path)
	case errors.As(err, &record):
		return "record", located(record.File, record.Offset, path)
	}
	return "other", fmt.Errorf("unexpected kind of error: %w", err)
}

func located(file string, offset int64, path string) error {
	if info, err := os.Stat(path); err != nil || file != path || offset < 0 || offset > info.Size() {
		return fmt.Errorf("located in %s at %d of %s", file, offset, path)
	}
	return nil
}
