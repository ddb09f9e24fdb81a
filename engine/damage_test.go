package engine

import (
	"encoding/binary"
	"errors"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/leani-go/leani/chain"
	"github.com/leani-go/leani/internal/corrupt"
	"github.com/leani-go/leani/keys"
)

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
// name the row. RPC-133: neighbours that do not link are never read as one range.
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
