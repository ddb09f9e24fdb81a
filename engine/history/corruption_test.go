package history

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/leani-go/leani/chain"
	"github.com/leani-go/leani/codec"
	"github.com/leani-go/leani/engine"
	"github.com/leani-go/leani/internal/chainmodel"
	"github.com/leani-go/leani/internal/corrupt"
)

// damagedStore is a store with files of every kind and tier whose bytes a test changes.
type damagedStore struct {
	chain *modelChain
	has   []bool
	fs    *vfs.MemFS
	opts  Options
	store *Store
	files []storedFile
}

// storedFile is a file and its bytes, which the store reads from this memory.
type storedFile struct {
	row  *engine.FileRow
	path string
	raw  []byte
}

func newDamagedStore(t *testing.T, compression codec.Compression) *damagedStore {
	d := &damagedStore{chain: newModelChain(7, 0, 22), fs: vfs.NewMem(), opts: smallOptions(2)}
	d.opts.Compression = compression
	e, s, err := openSmall(d.fs, 0, d.opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(); err != nil && !errors.Is(err, engine.ErrClosed) {
			t.Error(err)
		}
	})
	d.store = s
	write(t, s, d.chain.blocks)
	if st, err := s.Compact(t.Context()); err != nil || st.IndexMerges == 0 {
		t.Fatal(st, err)
	}
	if err := s.FillSenders(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	d.has = d.chain.covered([]chain.Range{{From: 0, To: 22}})
	snap := e.Acquire()
	defer snap.Release()
	for _, kind := range []engine.Kind{engine.KindData, engine.KindIndex, engine.KindSenders} {
		for _, row := range snap.Rows(kind) {
			path := d.fs.PathJoin(testDir, "segments", row.String())
			raw, err := d.fs.UnsafeGetFileDataBuffer(path)
			if err != nil || len(raw) != int(row.Size) {
				t.Fatal(len(raw), row.Size, err)
			}
			d.files = append(d.files, storedFile{row, path, raw})
		}
	}
	return d
}

// about tells whether an error locates damage in the file.
func (f *storedFile) about(err error) bool {
	var c *corrupt.Error
	return errors.As(err, &c) && (c.File == f.row.String() || c.File == f.path) && c.Offset >= 0 && c.Offset <= f.row.Size
}

// askEach asks questions with cold caches, each in a view of its own, and accepts the right answer or
// an error that locates the damage. It counts the errors.
func (d *damagedStore) askEach(t *testing.T, f *storedFile, m *chainmodel.Model) (failed int) {
	t.Helper()
	s := New(d.store.Engine(), d.opts)
	r := chain.Range{From: d.chain.first, To: d.chain.end()}
	for _, ask := range []func(v *View) error{
		func(v *View) error { return d.chain.query(t.Context(), v, m, r) },
		func(v *View) error {
			n := r.From + uint64(m.Rand.IntN(len(d.chain.blocks)))
			return d.chain.query(t.Context(), v, m, chain.Range{From: n, To: n + 1})
		},
		func(v *View) error {
			return d.chain.lookUp(t.Context(), v, m, f.row.From+uint64(m.Rand.IntN(int(f.row.Blocks()))))
		},
	} {
		v, err := s.View()
		if err == nil {
			err = ask(v)
			v.Close()
		}
		if err == nil {
			continue
		}
		if failed++; !f.about(err) {
			t.Errorf("neither right nor located: %v", err)
		}
	}
	return failed
}

// TestFlippedBits changes single bits of stored files of every kind and tier. Each question gets the
// right answer, because what answers it was not touched, or an error that names the file and the place;
// Verify finds every flip and names the file; a merge or repack does not carry damage on.
//
// INV-10
func TestFlippedBits(t *testing.T) {
	t.Parallel()
	flips := 700
	if testing.Short() || raceEnabled {
		flips = 150
	}
	for _, compression := range []codec.Compression{codec.None, codec.Snappy} {
		d := newDamagedStore(t, compression)
		rng := rand.New(rand.NewPCG(uint64(compression), 1))
		m := &chainmodel.Model{Rand: rng, Addresses: d.chain.model.Addresses, Topics: d.chain.model.Topics}
		if err := d.chain.verifyAgainst(t.Context(), d.store, d.has); err != nil {
			t.Fatal(err)
		}
		noticed := map[engine.Kind]int{}
		for i := range flips {
			// Small files as often as large ones; the ends, where header and trailer lie, more often.
			f := &d.files[rng.IntN(len(d.files))]
			at := rng.IntN(len(f.raw))
			switch i % 8 {
			case 0:
				at = rng.IntN(16)
			case 1:
				at = len(f.raw) - 1 - rng.IntN(32)
			}
			bit := byte(1) << rng.IntN(8)
			f.raw[at] ^= bit
			if d.askEach(t, f, m) > 0 {
				noticed[f.row.Kind]++
			}
			d.verifyFinds(t, f, at)
			f.raw[at] ^= bit
			if t.Failed() {
				t.Fatalf("flip of bit %d of byte %d of %d of %s", bit, at, len(f.raw), f.row)
			}
		}
		for _, kind := range []engine.Kind{engine.KindData, engine.KindIndex, engine.KindSenders} {
			if noticed[kind] == 0 {
				t.Errorf("no question met a flip in a %s file", kind)
			}
		}
		t.Logf("flips noticed by questions: %v of %d", noticed, flips)
		if err := d.chain.verifyAgainst(t.Context(), d.store, d.has); err != nil {
			t.Fatal(err)
		}
	}
}

// verifyFinds proves that Verify reports a damaged byte.
func (d *damagedStore) verifyFinds(t *testing.T, f *storedFile, at int) {
	t.Helper()
	r, err := d.store.Verify(t.Context(), VerifyOptions{Workers: 1})
	if err != nil {
		t.Errorf("verify: %v", err)
		return
	}
	found := false
	for _, p := range r.Problems {
		if !f.about(p) {
			t.Errorf("verify reports %v", p)
			continue
		}
		var c *corrupt.Error
		_ = errors.As(p, &c)
		found = found || c.Page == corrupt.NoPage || int64(at) >= c.Offset // a page starts at or before its damage
	}
	if !found {
		t.Errorf("verify does not find it: %v", r.Problems)
	}
}

// Work that meets a damaged file names it, leaves it, and goes on with others: damage is not packed into
// new files that are whole, and one bad file does not stop the rest.
//
// INV-10
func TestDamageIsNotCarriedOn(t *testing.T) {
	t.Parallel()
	c := newModelChain(8, 0, 32)
	whole := c.covered([]chain.Range{{From: 0, To: 32}})
	for kind, step := range map[engine.Kind]int{
		engine.KindData:  2, // half of a full file: to be packed
		engine.KindIndex: 4, // full files, whose indexes are to be merged
	} {
		rng := rand.New(rand.NewPCG(uint64(kind), 2))
		refused := 0
		for range 40 / stride() {
			fs := vfs.NewMem()
			e, s, err := openSmall(fs, 0, smallOptions(4))
			if err != nil {
				t.Fatal(err)
			}
			for i := 0; i < len(c.blocks); i += step {
				write(t, s, c.blocks[i:i+step])
			}
			snap := e.Acquire()
			rows := snap.Rows(kind)
			f := storedFile{row: rows[rng.IntN(len(rows))]}
			if f.raw, err = fs.UnsafeGetFileDataBuffer(fs.PathJoin(testDir, "segments", f.row.String())); err != nil {
				t.Fatal(err)
			}
			at, bit := rng.IntN(len(f.raw)), byte(1)<<rng.IntN(8)
			f.raw[at] ^= bit
			st, err := s.Compact(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			after := e.Acquire()
			switch live := slices.Contains(after.Rows(kind), f.row); {
			case len(st.Problems) > 0 && (!f.about(st.Problems[0]) || !live):
				t.Errorf("compact: %v, the damaged file is still live: %v", st.Problems, live)
			case len(st.Problems) > 0:
				refused++
			case live:
				t.Error("compact left a file alone and does not say why")
			default: // what is damaged is not part of the content: header, digests, senders' places
				if err := c.verifyAgainst(t.Context(), s, whole); err != nil {
					t.Errorf("damage was carried on: %v", err)
				}
			}
			after.Release()
			snap.Release()
			if err := e.Close(); err != nil {
				t.Fatal(err)
			}
			if t.Failed() {
				t.Fatalf("flip of bit %d of byte %d of %s", bit, at, f.row)
			}
		}
		if refused == 0 {
			t.Errorf("%s files: no flip was met", kind)
		}
	}
}

// What a store has read before it answers from memory, whatever became of the file: the bytes were
// checked when they were read.
func TestReadPagesOutliveDamage(t *testing.T) {
	d := newDamagedStore(t, codec.None)
	if err := askAll(t.Context(), d.store, d.chain, d.has); err != nil {
		t.Fatal(err)
	}
	for i := range d.files {
		clear(d.files[i].raw)
	}
	if err := askAll(t.Context(), d.store, d.chain, d.has); err != nil {
		t.Error(err)
	}
	if err := askAll(t.Context(), New(d.store.Engine(), d.opts), d.chain, d.has); !corrupt.Is(err) {
		t.Errorf("with a cold cache: %v", err)
	}
}

// TestDamagedFilesAtOpen changes files between two opens: one that is missing, longer or shorter than
// its row says refuses the open by name and changes nothing; one that nobody knows is moved aside; a
// temporary one is removed.
//
// STO-015
func TestDamagedFilesAtOpen(t *testing.T) {
	d := newDamagedStore(t, codec.None)
	if err := d.store.Engine().Close(); err != nil {
		t.Fatal(err)
	}
	open := func() (*engine.Engine, *Store, error) { return openSmall(d.fs, 0, d.opts) }
	for i := range d.files {
		f := &d.files[i]
		saved := slices.Clone(f.raw)
		for name, content := range map[string][]byte{
			"missing": nil, "empty": {}, "shorter": saved[:len(saved)-1], "half": saved[:len(saved)/2], "longer": append(slices.Clone(saved), 0),
		} {
			replaceFile(t, d.fs, f.path, content)
			e, _, err := open()
			if err == nil {
				_ = e.Close()
			}
			if !f.about(err) {
				t.Errorf("%s %s: %v", name, f.row, err)
			}
			if _, statErr := d.fs.Stat(f.path); (statErr == nil) != (content != nil) {
				t.Errorf("%s %s: the refused open changed it", name, f.row)
			}
		}
		replaceFile(t, d.fs, f.path, saved)
	}
	foreign := map[string]string{
		"data/notes.txt": "a note", "index/000000000000-000000000022.l9.p0.g99999999.seg": "from the future",
		"senders/old.seg": "who knows",
		"data/x.tmp":      "half a file",
	}
	for name, content := range foreign {
		replaceFile(t, d.fs, d.fs.PathJoin(testDir, "segments", name), []byte(content))
	}
	e, s, err := open()
	if err != nil {
		t.Fatal(err)
	}
	r := e.Recovery()
	if len(r.Quarantined) != 3 || len(r.Unfinished) != 1 || len(r.Uncommitted) != 0 {
		t.Errorf("recovery %+v", r)
	}
	for name, content := range foreign {
		if strings.HasSuffix(name, ".tmp") {
			continue
		}
		path := d.fs.PathJoin(testDir, "quarantine", strings.Replace(name, "/", "-", 1))
		if raw, err := d.fs.UnsafeGetFileDataBuffer(path); err != nil || string(raw) != content {
			t.Errorf("%s in quarantine: %q %v", name, raw, err)
		}
	}
	if err := d.chain.verifyAgainst(t.Context(), s, d.has); err != nil {
		t.Error(err)
	}
	if err := e.Close(); err != nil {
		t.Error(err)
	}
}

// replaceFile gives a file new content; nil removes it.
func replaceFile(t *testing.T, fs vfs.FS, path string, content []byte) {
	t.Helper()
	err := fs.Remove(path)
	if content != nil {
		var f vfs.File
		if f, err = fs.Create(path, vfs.WriteCategoryUnspecified); err == nil {
			_, err = f.Write(slices.Clone(content))
			err = errors.Join(err, f.Sync(), f.Close())
		}
	}
	if err != nil {
		t.Fatal(fmt.Errorf("replace %s: %w", path, err))
	}
}
