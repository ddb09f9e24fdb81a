package engine

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"unsafe"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/leani-go/leani/chain"
	"github.com/leani-go/leani/internal/corrupt"
	"github.com/leani-go/leani/keys"
)

// STO-003
func TestIdentityIsFixedAtCreation(t *testing.T) {
	fs := vfs.NewMem()
	e := mustOpen(t, testOptions(fs))
	first := e.identity
	if first.epoch == [epochLength]byte{} || first.secret == [secretLength]byte{} {
		t.Error("epoch or secret is not random")
	}
	mustClose(t, e)

	e = mustOpen(t, testOptions(fs))
	if e.identity != first {
		t.Errorf("identity after reopen: got %+v want %+v", e.identity, first)
	}
	if e.ChainID() != testChain || e.FormatVersion() != formatVersion || e.Epoch() != first.epoch {
		t.Error("accessors differ from the identity")
	}
	mustClose(t, e)

	other := mustOpen(t, testOptions(vfs.NewMem()))
	defer mustClose(t, other)
	if other.identity.epoch == first.epoch || other.identity.secret == first.secret {
		t.Error("two stores share an epoch or a secret")
	}
}

// STO-019
func TestSecondOpenFailsAtOnce(t *testing.T) {
	for name, opts := range map[string]Options{
		"memory": testOptions(vfs.NewMem()),
		"disk":   {Dir: t.TempDir(), ChainID: testChain},
	} {
		t.Run(name, func(t *testing.T) {
			e := mustOpen(t, opts)
			for _, readOnly := range []bool{false, true} {
				second := opts
				second.ReadOnly = readOnly
				if _, err := Open(second); !errors.Is(err, ErrLocked) {
					t.Errorf("second open, read-only %v: got %v want ErrLocked", readOnly, err)
				}
			}
			mustClose(t, e)
			mustClose(t, mustOpen(t, opts))
		})
	}
}

// TestSecondProcessFailsAtOnce opens the store of this process in another one.
//
// STO-019
func TestSecondProcessFailsAtOnce(t *testing.T) {
	const variable = "LEANI_TEST_OPEN_DIR"
	if dir := os.Getenv(variable); dir != "" {
		_, err := Open(Options{Dir: dir, ChainID: testChain})
		fmt.Printf("locked: %v\n", errors.Is(err, ErrLocked))
		os.Exit(0)
	}
	dir := t.TempDir()
	e := mustOpen(t, Options{Dir: dir, ChainID: testChain})
	defer mustClose(t, e)
	cmd := exec.Command(os.Args[0], "-test.run=^TestSecondProcessFailsAtOnce$")
	cmd.Env = append(os.Environ(), variable+"="+dir)
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "locked: true") {
		t.Errorf("second process: %v\n%s", err, out)
	}
}

// changeDatabase changes rows of a closed store behind the engine's back.
func changeDatabase(t *testing.T, fs vfs.FS, change func(db *pebble.DB) error) {
	t.Helper()
	db, err := pebble.Open(layout{fs: fs, dir: testDir}.database(), &pebble.Options{FS: fs, FormatMajorVersion: pebbleFormat, Logger: pebbleLogger{
		log: testOptions(fs).withDefaults().Logger, fail: func(err error) error { return err },
	}})
	if err != nil {
		t.Fatal(err)
	}
	if err := change(db); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
}

func set(k keys.Key, value []byte) func(db *pebble.DB) error {
	return func(db *pebble.DB) error { return db.Set(k.Append(nil), value, pebble.Sync) }
}

// STO-020
func TestNewerFormatIsRefused(t *testing.T) {
	fs := vfs.NewMem()
	mustClose(t, mustOpen(t, testOptions(fs)))
	changeDatabase(t, fs, set(keys.Meta{Name: keys.MetaFormatVersion}, binary.BigEndian.AppendUint32(nil, formatVersion+1)))
	_, err := Open(testOptions(fs))
	var newer *NewerFormatError
	if !errors.As(err, &newer) || newer.Store != formatVersion+1 || newer.Supported != formatVersion {
		t.Errorf("got %v want NewerFormatError", err)
	}
}

func TestOtherChainIsRefused(t *testing.T) {
	fs := vfs.NewMem()
	mustClose(t, mustOpen(t, testOptions(fs)))
	opts := testOptions(fs)
	opts.ChainID = 1
	var other *ChainError
	if _, err := Open(opts); !errors.As(err, &other) || other.Store != testChain || other.Want != 1 {
		t.Errorf("got %v want ChainError", err)
	}
	opts.ChainID = 0
	mustClose(t, mustOpen(t, opts))
}

func TestOpenWithoutStore(t *testing.T) {
	opts := testOptions(vfs.NewMem())
	opts.ReadOnly = true
	if _, err := Open(opts); !errors.Is(err, ErrNoStore) {
		t.Errorf("read-only open of nothing: got %v want ErrNoStore", err)
	}
	opts.ReadOnly = false
	opts.ChainID = 0
	if _, err := Open(opts); err == nil {
		t.Error("a store without a chain is created")
	}
	opts.Dir = ""
	if _, err := Open(opts); err == nil {
		t.Error("a store without a directory is opened")
	}
}

func TestReadOnly(t *testing.T) {
	fs := vfs.NewMem()
	e := mustOpen(t, testOptions(fs))
	mustCommit(t, e, nil, mustPending(t, e, KindData, 0, 0, 4))
	left := mustPending(t, e, KindData, 0, 4, 8).File.Path()
	_ = e.Close()

	opts := testOptions(fs)
	opts.ReadOnly = true
	e = mustOpen(t, opts)
	if got := e.Recovery().Unfinished; len(got) != 1 || got[0] != left {
		t.Errorf("unfinished files: got %v want %s", got, left)
	}
	if report := mustCheck(t, e); report.Files != 1 || len(report.Waiting) != 1 {
		t.Errorf("check: %+v", report)
	}
	if _, err := e.NewFile(KindData); !errors.Is(err, ErrReadOnly) {
		t.Errorf("begin: got %v", err)
	}
	if err := e.Commit(t.Context(), Edit{Remove: []*FileRow{rowAt(t, e, KindData, 0, 0)}}); !errors.Is(err, ErrReadOnly) {
		t.Errorf("commit: got %v", err)
	}
	mustClose(t, e)
	if _, err := fs.Stat(left); err != nil {
		t.Errorf("a read-only open removed a file: %v", err)
	}
}

func TestRefusedEdits(t *testing.T) {
	e := mustOpen(t, testOptions(vfs.NewMem()))
	defer mustClose(t, e)
	mustCommit(t, e, nil,
		mustPending(t, e, KindData, 0, 10, 20), mustPending(t, e, KindData, 0, 20, 30), mustPending(t, e, KindSenders, 0, 10, 20),
		mustPending(t, e, KindIndex, 0, 10, 20), mustPending(t, e, KindIndex, 0, 20, 30))
	before, err := readFiles(e)
	if err != nil {
		t.Fatal(err)
	}
	data := rowAt(t, e, KindData, 0, 10)
	stale := *data
	stale.Generation++

	changed := func(n NewRow, change func(*FileRow)) NewRow {
		change(&n.Row)
		return n
	}
	pending := func(kind Kind, level uint8, from, to uint64) NewRow { return mustPending(t, e, kind, level, from, to) }
	for _, c := range []struct {
		name string
		edit Edit
		want error
	}{
		{"empty", Edit{}, ErrInvalidEdit},
		{"overlap", Edit{Add: []NewRow{pending(KindData, 0, 15, 25)}}, ErrInvalidEdit},
		{"overlap by one block", Edit{Add: []NewRow{pending(KindData, 0, 9, 11)}}, ErrInvalidEdit},
		{"same range", Edit{Add: []NewRow{pending(KindData, 0, 10, 20)}}, ErrInvalidEdit},
		{"two new files overlap", Edit{Add: []NewRow{pending(KindData, 0, 30, 35), pending(KindData, 0, 34, 36)}}, ErrInvalidEdit},
		{"parent does not link", Edit{Add: []NewRow{changed(pending(KindData, 0, 30, 35), func(r *FileRow) { r.ParentHash[0] ^= 1 })}}, ErrInvalidEdit},
		{"child does not link", Edit{Add: []NewRow{changed(pending(KindData, 0, 5, 10), func(r *FileRow) { r.LastHash[0] ^= 1 })}}, ErrInvalidEdit},
		{"empty range", Edit{Add: []NewRow{pending(KindData, 0, 40, 40)}}, ErrInvalidEdit},
		{"inverted range", Edit{Add: []NewRow{changed(pending(KindData, 0, 40, 41), func(r *FileRow) { r.To = 3 })}}, ErrInvalidEdit},
		{"number too high", Edit{Add: []NewRow{changed(pending(KindData, 0, 40, 41), func(r *FileRow) { r.To = 1 << 63 })}}, ErrInvalidEdit},
		{"profile", Edit{Add: []NewRow{changed(pending(KindData, 0, 40, 41), func(r *FileRow) { r.Profile = 1 })}}, ErrInvalidEdit},
		{"level of data", Edit{Add: []NewRow{pending(KindData, 1, 40, 41)}}, ErrInvalidEdit},
		{"senders of half a file", Edit{Add: []NewRow{pending(KindSenders, 0, 20, 25)}}, ErrInvalidEdit},
		{"senders of two files", Edit{Add: []NewRow{pending(KindSenders, 0, 10, 30)}}, ErrInvalidEdit},
		{"senders of nothing", Edit{Add: []NewRow{pending(KindSenders, 0, 50, 60)}}, ErrInvalidEdit},
		{"second senders", Edit{Add: []NewRow{pending(KindSenders, 0, 10, 20)}}, ErrInvalidEdit},
		{"index over half a file", Edit{Add: []NewRow{pending(KindIndex, 1, 10, 25)}}, ErrInvalidEdit},
		{"index from the middle", Edit{Add: []NewRow{pending(KindIndex, 1, 15, 30)}}, ErrInvalidEdit},
		{"index over a gap", Edit{Add: []NewRow{pending(KindIndex, 1, 10, 40)}}, ErrInvalidEdit},
		{"indexes of a level overlap", Edit{Add: []NewRow{pending(KindIndex, 0, 10, 30)}}, ErrInvalidEdit},
		{"data below an index", Edit{Remove: []*FileRow{data}}, ErrInvalidEdit},
		{"removed twice", Edit{Remove: []*FileRow{rowAt(t, e, KindSenders, 0, 10), rowAt(t, e, KindSenders, 0, 10)}}, ErrInvalidEdit},
		{"row without a file", Edit{Add: []NewRow{{Row: *data}}}, ErrInvalidEdit},
		{"empty file", Edit{Add: []NewRow{emptyFile(t, e)}}, ErrInvalidEdit},
		{"not live", Edit{Remove: []*FileRow{&stale}}, ErrStaleEdit},
		{"never existed", Edit{Remove: []*FileRow{{Kind: KindData, From: 77, Generation: 1}}}, ErrStaleEdit},
		{"kind never existed", Edit{Remove: []*FileRow{{Kind: 99}}}, ErrStaleEdit},
	} {
		if err := e.Commit(t.Context(), c.edit); !errors.Is(err, c.want) {
			t.Errorf("%s: got %v want %v", c.name, err, c.want)
		}
		for _, a := range c.edit.Add {
			if a.File == nil {
				continue
			}
			if err := a.File.Abort(); err != nil {
				t.Errorf("%s: abort: %v", c.name, err)
			}
		}
	}
	after, err := readFiles(e)
	if err != nil {
		t.Fatal(err)
	}
	if !sameFiles(before, after) {
		t.Errorf("refused edits changed the store: got %v want %v", describe(after), describe(before))
	}
	if report := mustCheck(t, e); report.Generation != 1 || len(report.Waiting) > 0 {
		t.Errorf("refused edits left something: %+v", report)
	}
	if err := e.Err(); err != nil {
		t.Errorf("refused edits failed the store: %v", err)
	}
}

func emptyFile(t *testing.T, e *Engine) NewRow {
	t.Helper()
	p, err := e.NewFile(KindData)
	if err != nil {
		t.Fatal(err)
	}
	return NewRow{File: p, Row: newRow(KindData, 0, chain.Range{From: 40, To: 41}, nil)}
}

func TestPendingFileLife(t *testing.T) {
	e := mustOpen(t, testOptions(vfs.NewMem()))
	defer mustClose(t, e)

	refused := mustPending(t, e, KindSenders, 0, 0, 4)
	if err := e.Commit(t.Context(), Edit{Add: []NewRow{refused}}); !errors.Is(err, ErrInvalidEdit) {
		t.Fatalf("senders without data: %v", err)
	}
	if _, err := refused.File.Write([]byte("more")); err == nil {
		t.Error("a sealed file can be written")
	}
	mustCommit(t, e, nil, mustPending(t, e, KindData, 0, 0, 4), refused) // valid together

	if err := refused.File.Abort(); err != nil {
		t.Errorf("abort after commit: %v", err)
	}
	if err := e.Commit(t.Context(), Edit{Add: []NewRow{refused}}); !errors.Is(err, ErrInvalidEdit) {
		t.Errorf("a file is committed twice: %v", err)
	}
	twice := mustPending(t, e, KindData, 0, 4, 8)
	if err := e.Commit(t.Context(), Edit{Add: []NewRow{twice, twice}}); !errors.Is(err, ErrInvalidEdit) {
		t.Errorf("a file is added twice: %v", err)
	}
	if err := twice.File.Abort(); err != nil {
		t.Error(err)
	}
	if err := twice.File.Abort(); err != nil {
		t.Errorf("second abort: %v", err)
	}

	other := mustOpen(t, testOptions(vfs.NewMem()))
	defer mustClose(t, other)
	foreign := mustPending(t, other, KindData, 0, 4, 8)
	if err := e.Commit(t.Context(), Edit{Add: []NewRow{foreign}}); !errors.Is(err, ErrInvalidEdit) {
		t.Errorf("a file of another store is committed: %v", err)
	}
	if err := foreign.File.Abort(); err != nil {
		t.Error(err)
	}
	if _, err := e.NewFile(0); err == nil {
		t.Error("a file of no kind is begun")
	}
	mustCheck(t, e)
}

func TestCommitObeysContext(t *testing.T) {
	e := mustOpen(t, testOptions(vfs.NewMem()))
	defer mustClose(t, e)
	row := mustPending(t, e, KindData, 0, 0, 4)

	if err := e.lockCommit(context.Background()); err != nil { // another commit is running
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- e.Commit(ctx, Edit{Add: []NewRow{row}}) }()
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("waiting commit: got %v", err)
	}
	e.unlockCommit()
	if err := e.Commit(ctx, Edit{Add: []NewRow{row}}); !errors.Is(err, context.Canceled) {
		t.Errorf("commit with an ended context: got %v", err)
	}
	mustCommit(t, e, nil, row)
}

func TestCloseReportsWhatIsInUse(t *testing.T) {
	e := mustOpen(t, testOptions(vfs.NewMem()))
	mustCommit(t, e, nil, mustPending(t, e, KindData, 0, 0, 4))
	s := e.Acquire()
	f, err := s.Open(s.Rows(KindData)[0])
	if err != nil {
		t.Fatal(err)
	}
	p := mustPending(t, e, KindData, 0, 4, 8)
	err = e.Close()
	if err == nil || !strings.Contains(err.Error(), "1 snapshots") || !strings.Contains(err.Error(), "1 files") {
		t.Errorf("close: got %v", err)
	}
	if _, err := readAll(f); err != nil {
		t.Errorf("an open file must stay readable: %v", err)
	}
	_ = f.Close()
	if _, err := s.Open(s.Rows(KindData)[0]); !errors.Is(err, ErrClosed) {
		t.Errorf("open after close: %v", err)
	}
	s.Release()
	if err := p.File.Abort(); err != nil {
		t.Errorf("abort after close: %v", err)
	}
	if err := e.Commit(t.Context(), Edit{Add: []NewRow{p}}); !errors.Is(err, ErrClosed) {
		t.Errorf("commit after close: %v", err)
	}
	if err := e.Close(); !errors.Is(err, ErrClosed) {
		t.Errorf("second close: %v", err)
	}
}

// TestDamagedFilesFailTheOpen proves that an open of a damaged store fails, names every damaged
// file, and changes nothing.
func TestDamagedFilesFailTheOpen(t *testing.T) {
	fs := vfs.NewMem()
	e := mustOpen(t, testOptions(fs))
	mustCommit(t, e, nil,
		mustPending(t, e, KindData, 0, 0, 4), mustPending(t, e, KindData, 0, 4, 8), mustPending(t, e, KindData, 0, 8, 12))
	l := e.layout
	missing, short := l.file(KindData, rowAt(t, e, KindData, 0, 0).Name()), l.file(KindData, rowAt(t, e, KindData, 0, 8).Name())
	mustClose(t, e)

	saved, err := fs.UnsafeGetFileDataBuffer(missing)
	if err != nil {
		t.Fatal(err)
	}
	content := string(saved)
	if err := fs.Remove(missing); err != nil {
		t.Fatal(err)
	}
	writeFile(t, fs, short, "short")
	writeFile(t, fs, l.file(KindData, "left.tmp"), "unfinished")
	writeFile(t, fs, l.file(KindData, "notes.txt"), "foreign")

	_, err = Open(testOptions(fs))
	if !corrupt.Is(err) || !strings.Contains(err.Error(), missing) || !strings.Contains(err.Error(), short) {
		t.Fatalf("open: got %v", err)
	}
	for _, path := range []string{l.file(KindData, "left.tmp"), l.file(KindData, "notes.txt")} {
		if _, err := fs.Stat(path); err != nil {
			t.Errorf("the failed open touched %s: %v", path, err)
		}
	}

	// Put back, the store opens.
	writeFile(t, fs, missing, content)
	writeFile(t, fs, short, "data 0 8 12")
	e = mustOpen(t, testOptions(fs))
	defer mustClose(t, e)
	mustCheck(t, e)
	if q := e.Recovery().Quarantined; len(q) != 1 {
		t.Errorf("quarantined: %v", q)
	}
}

func writeFile(t *testing.T, fs vfs.FS, path, content string) {
	t.Helper()
	f, err := fs.Create(path, vfs.WriteCategoryUnspecified)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Write([]byte(content)); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestDamagedRowsFailTheOpen changes rows behind the engine's back: each open must fail and
// name the row.
func TestDamagedRowsFailTheOpen(t *testing.T) {
	prepare := func(t *testing.T) (*vfs.MemFS, *FileRow) {
		fs := vfs.NewMem()
		e := mustOpen(t, testOptions(fs))
		defer mustClose(t, e)
		mustCommit(t, e, nil, mustPending(t, e, KindData, 0, 0, 4), mustPending(t, e, KindData, 0, 4, 8))
		return fs, rowAt(t, e, KindData, 0, 4)
	}
	row := func(r FileRow, change func(*FileRow)) []byte {
		change(&r)
		return appendSegmentValue(nil, &r)
	}
	for _, c := range []struct {
		name   string
		change func(r *FileRow) func(db *pebble.DB) error
		where  string
	}{
		{"row cut short", func(r *FileRow) func(*pebble.DB) error {
			return set(r.key(), appendSegmentValue(nil, r)[:20])
		}, "segment/data/profile=0/level=0/from=4"},
		{"row version", func(r *FileRow) func(*pebble.DB) error {
			v := appendSegmentValue(nil, r)
			v[0] = 9
			return set(r.key(), v)
		}, "segment/data/profile=0/level=0/from=4"},
		{"row flags", func(r *FileRow) func(*pebble.DB) error {
			v := appendSegmentValue(nil, r)
			v[1] = 1
			return set(r.key(), v)
		}, "segment/data/profile=0/level=0/from=4"},
		{"overlap", func(r *FileRow) func(*pebble.DB) error {
			first := keys.Segment{Kind: KindData, From: 0, Generation: 1}
			return set(first, row(newRow(KindData, 0, chain.Range{From: 0, To: 5}, nil), func(r *FileRow) { r.Size = 10 }))
		}, "segment/data/profile=0/level=0/from=4"},
		{"broken link", func(r *FileRow) func(*pebble.DB) error {
			return set(r.key(), row(*r, func(r *FileRow) { r.ParentHash[5] ^= 1 }))
		}, "segment/data/profile=0/level=0/from=4"},
		{"future generation", func(r *FileRow) func(*pebble.DB) error {
			return set(keys.Meta{Name: keys.MetaGeneration}, binary.BigEndian.AppendUint64(nil, 0))
		}, "segment/data/profile=0/level=0/from=0"},
		{"row lost", func(r *FileRow) func(*pebble.DB) error {
			return func(db *pebble.DB) error { return db.Delete(r.key().Append(nil), pebble.Sync) }
		}, "raw-coverage/headers"},
		{"coverage lost", func(r *FileRow) func(*pebble.DB) error {
			return func(db *pebble.DB) error {
				return db.Delete(keys.RawCoverage{Field: FieldBodies}.Append(nil), pebble.Sync)
			}
		}, "raw-coverage/bodies"},
		{"coverage too wide", func(r *FileRow) func(*pebble.DB) error {
			run := CoverageRun{Field: FieldReceipts, Completeness: Complete, Range: chain.Range{From: 0, To: 9}}
			return set(run.key(), appendCoverageValue(nil, run))
		}, "raw-coverage/receipts"},
		{"coverage invented", func(r *FileRow) func(*pebble.DB) error {
			run := CoverageRun{Field: FieldSenders, Completeness: Complete, Range: chain.Range{From: 0, To: 9}}
			return set(run.key(), appendCoverageValue(nil, run))
		}, "raw-coverage/senders"},
		{"live and retired", func(r *FileRow) func(*pebble.DB) error {
			return set(keys.Retired(r.key()), appendTombstoneValue(nil, tombstoneOf(r)))
		}, "retired/data"},
		{"unknown kind", func(r *FileRow) func(*pebble.DB) error {
			return set(keys.Segment{Kind: 77}, appendSegmentValue(nil, r))
		}, "segment/0x4d"},
		{"secret lost", func(r *FileRow) func(*pebble.DB) error {
			return func(db *pebble.DB) error { return db.Delete(keys.Meta{Name: keys.MetaSecret}.Append(nil), pebble.Sync) }
		}, "meta/secret"},
		{"version lost", func(r *FileRow) func(*pebble.DB) error {
			return func(db *pebble.DB) error {
				return db.Delete(keys.Meta{Name: keys.MetaFormatVersion}.Append(nil), pebble.Sync)
			}
		}, "meta/epoch"},
		{"version zero", func(r *FileRow) func(*pebble.DB) error {
			return set(keys.Meta{Name: keys.MetaFormatVersion}, make([]byte, 4))
		}, "meta/format-version"},
		{"version too long", func(r *FileRow) func(*pebble.DB) error {
			return set(keys.Meta{Name: keys.MetaFormatVersion}, make([]byte, 5))
		}, "meta/format-version"},
	} {
		t.Run(c.name, func(t *testing.T) {
			fs, r := prepare(t)
			changeDatabase(t, fs, c.change(r))
			_, err := Open(testOptions(fs))
			var located *corrupt.Error
			if !errors.As(err, &located) || !strings.Contains(located.File, c.where) {
				t.Errorf("open: got %v want corruption of %s", err, c.where)
			}
		})
	}
}

// TestCheckFindsWhatChangesUnderAnOpenStore changes both tiers below a running engine.
func TestCheckFindsWhatChangesUnderAnOpenStore(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(t *testing.T, fs *vfs.MemFS, e *Engine)
		where  string
	}{
		{"file gone", func(t *testing.T, fs *vfs.MemFS, e *Engine) {
			if err := fs.Remove(e.layout.file(KindData, rowAt(t, e, KindData, 0, 0).Name())); err != nil {
				t.Fatal(err)
			}
		}, "000000000000-000000000004.l0"},
		{"file shorter", func(t *testing.T, fs *vfs.MemFS, e *Engine) {
			writeFile(t, fs, e.layout.file(KindData, rowAt(t, e, KindData, 0, 0).Name()), "x")
		}, "000000000000-000000000004.l0"},
		{"content changed", func(t *testing.T, fs *vfs.MemFS, e *Engine) {
			b, err := fs.UnsafeGetFileDataBuffer(e.layout.file(KindData, rowAt(t, e, KindData, 0, 0).Name()))
			if err != nil {
				t.Fatal(err)
			}
			b[3] ^= 1
		}, "000000000000-000000000004.l0"},
		{"foreign file", func(t *testing.T, fs *vfs.MemFS, e *Engine) {
			writeFile(t, fs, e.layout.file(KindIndex, "x"), "x")
		}, "segments/index/x"},
		{"temporary file of somebody else", func(t *testing.T, fs *vfs.MemFS, e *Engine) {
			writeFile(t, fs, e.layout.file(KindIndex, "x.tmp"), "x")
		}, "segments/index/x.tmp"},
		{"row changed", func(t *testing.T, _ *vfs.MemFS, e *Engine) {
			r := *rowAt(t, e, KindData, 0, 0)
			r.Logs++
			if err := set(r.key(), appendSegmentValue(nil, &r))(e.db); err != nil {
				t.Fatal(err)
			}
		}, "segment/data/profile=0/level=0/from=0"},
		{"row lost", func(t *testing.T, _ *vfs.MemFS, e *Engine) {
			if err := e.db.Delete(rowAt(t, e, KindData, 0, 0).key().Append(nil), pebble.Sync); err != nil {
				t.Fatal(err)
			}
		}, "segment/data/profile=0/level=0/from=0"},
		{"row of a reserved family", func(t *testing.T, _ *vfs.MemFS, e *Engine) {
			if err := e.db.Set([]byte{byte(keys.FamilyJob), 1}, nil, pebble.Sync); err != nil {
				t.Fatal(err)
			}
		}, "job/0x01"},
		{"row of no family", func(t *testing.T, _ *vfs.MemFS, e *Engine) {
			if err := e.db.Set([]byte{0xee, 1}, nil, pebble.Sync); err != nil {
				t.Fatal(err)
			}
		}, "family-0xee/0x01"},
		{"coverage changed", func(t *testing.T, _ *vfs.MemFS, e *Engine) {
			run := CoverageRun{Field: FieldIndex, Completeness: Complete, Range: chain.Range{From: 0, To: 1}}
			if err := set(run.key(), appendCoverageValue(nil, run))(e.db); err != nil {
				t.Fatal(err)
			}
		}, "raw-coverage/index"},
		{"fact lost", func(t *testing.T, _ *vfs.MemFS, e *Engine) {
			if err := e.db.Delete(keys.Meta{Name: keys.MetaEpoch}.Append(nil), pebble.Sync); err != nil {
				t.Fatal(err)
			}
		}, "meta"},
	} {
		t.Run(c.name, func(t *testing.T) {
			fs := vfs.NewMem()
			e := mustOpen(t, testOptions(fs))
			defer mustClose(t, e)
			mustCommit(t, e, nil, mustPending(t, e, KindData, 0, 0, 4))
			mustCheck(t, e)
			c.change(t, fs, e)
			report, err := e.Check(t.Context(), CheckOptions{File: checkContent})
			if err != nil {
				t.Fatal(err)
			}
			if report.Clean() {
				t.Fatal("check finds nothing")
			}
			for _, p := range report.Problems {
				if strings.Contains(p.Where, c.where) {
					return
				}
			}
			t.Errorf("no problem is located at %s: %v", c.where, report.Problems)
		})
	}
}

func TestLostDatabaseKeepsSegmentFiles(t *testing.T) {
	fs := vfs.NewMem()
	e := mustOpen(t, testOptions(fs))
	mustCommit(t, e, nil, mustPending(t, e, KindData, 0, 0, 4)) // generation 1, as the next store's first commit
	l := e.layout
	mustClose(t, e)
	if err := fs.RemoveAll(l.database()); err != nil {
		t.Fatal(err)
	}
	e = mustOpen(t, testOptions(fs))
	defer mustClose(t, e)
	if names, err := fs.List(l.quarantine()); err != nil || len(names) != 1 {
		t.Errorf("quarantine: got %v, %v want the file of the lost store", names, err)
	}
	mustCheck(t, e)
}

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

func TestInspect(t *testing.T) {
	e := mustOpen(t, testOptions(vfs.NewMem()))
	defer mustClose(t, e)
	mustCommit(t, e, nil, mustPending(t, e, KindData, 0, 0, 4), mustPending(t, e, KindData, 0, 4, 8), mustPending(t, e, KindIndex, 0, 0, 8))
	held := e.Acquire()
	mustCommit(t, e, []*FileRow{rowAt(t, e, KindIndex, 0, 0)}, mustPending(t, e, KindIndex, 1, 0, 8))
	inv, err := e.Inspect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if inv.Generation != 2 || inv.Snapshots != 1 || inv.RetiredFiles != 1 || inv.RetiredBytes == 0 || inv.ChainID != testChain {
		t.Errorf("inventory: %+v", inv)
	}
	families := map[keys.Family]int{}
	for _, f := range inv.Families {
		families[f.Family] = f.Keys
	}
	want := map[keys.Family]int{keys.FamilyMeta: 5, keys.FamilySegment: 3, keys.FamilyRetired: 1, keys.FamilyRawCoverage: 4}
	if fmt.Sprint(families) != fmt.Sprint(want) {
		t.Errorf("families: got %v want %v", families, want)
	}
	if len(inv.Files) != 2 || inv.Files[0].Files != 2 || inv.Files[0].Blocks != 8 || inv.Files[1].Level != 1 {
		t.Errorf("files: %+v", inv.Files)
	}
	held.Release()
	if err := e.reap(); err != nil {
		t.Fatal(err)
	}
	mustCommit(t, e, nil, mustPending(t, e, KindData, 0, 8, 9))
	n := 0
	if err := e.ScanKeys(t.Context(), []byte{byte(keys.FamilyRetired)}, func([]byte, int) error { n++; return nil }); err != nil || n != 0 {
		t.Errorf("tombstones after the next commit: got %d, %v want none", n, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := e.Check(ctx, CheckOptions{File: checkContent}); !errors.Is(err, context.Canceled) {
		t.Errorf("check with an ended context: %v", err)
	}
}

// TestMemoryPerSegment bounds what a segment costs in memory: the row, rounded up to its
// allocation size, and a pointer.
func TestMemoryPerSegment(t *testing.T) {
	const sizeClass = 192 // runtime/sizeclasses.go: the class of 177 to 192 bytes
	if got := unsafe.Sizeof(FileRow{}); got > sizeClass {
		t.Errorf("row: got %d bytes want at most %d", got, sizeClass)
	}
	if total := sizeClass + unsafe.Sizeof((*FileRow)(nil)); total > 200 {
		t.Errorf("a segment costs %d bytes of memory, the budget is 200", total)
	}
}

// TestRealFileSystem runs a short life on the file system of the machine.
func TestRealFileSystem(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new", "store")
	opts := Options{Dir: dir, ChainID: testChain}
	e := mustOpen(t, opts)
	mustCommit(t, e, nil, mustPending(t, e, KindData, 0, 0, 4), mustPending(t, e, KindIndex, 0, 0, 4))
	mustCommit(t, e, []*FileRow{rowAt(t, e, KindIndex, 0, 0)}, mustPending(t, e, KindIndex, 1, 0, 4))
	_ = mustPending(t, e, KindData, 0, 4, 8)
	_ = e.Close()
	if err := os.WriteFile(filepath.Join(dir, "segments", "senders", "note"), []byte("x"), 0o644); err != nil {
		t.Fatal(err)
	}
	e = mustOpen(t, opts)
	if r := e.Recovery(); len(r.Unfinished) != 1 || len(r.Quarantined) != 1 {
		t.Errorf("recovery: %+v", r)
	}
	if report := mustCheck(t, e); report.Files != 2 || len(report.Waiting) > 0 {
		t.Errorf("check: %+v", report)
	}
	mustClose(t, e)
}
