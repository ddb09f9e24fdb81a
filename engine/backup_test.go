package engine

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/leani-go/leani/chain"
	"github.com/leani-go/leani/engine/internal/crashfs"
	"github.com/leani-go/leani/keys"
)

const (
	backupDir   = "/backups/first"
	restoredDir = "/data/restored"
)

func optionsIn(dir string, fs vfs.FS) Options {
	o := testOptions(fs)
	o.Dir = dir
	return o
}

// rowsOf reads the whole database.
func rowsOf(t *testing.T, e *Engine) map[string]string {
	t.Helper()
	rows := map[string]string{}
	err := scanRange(e.db, nil, nil, func(key, value []byte) error {
		rows[string(key)] = string(value)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return rows
}

// verifyStore opens a directory and compares files and rows.
func verifyStore(t *testing.T, fs vfs.FS, dir string, files []modelFile, rows map[string]string) {
	t.Helper()
	e, err := Open(optionsIn(dir, fs))
	if err != nil {
		t.Fatalf("open %s: %v", dir, err)
	}
	defer mustClose(t, e)
	if got, err := readFiles(e); err != nil || !sameFiles(got, files) {
		t.Errorf("%s: got %v, %v want %v", dir, describe(got), err, describe(files))
	}
	if rows != nil {
		got := rowsOf(t, e)
		if len(got) != len(rows) {
			t.Errorf("%s: %d rows, want %d", dir, len(got), len(rows))
		}
		for k, v := range rows {
			if got[k] != v {
				t.Errorf("%s: %s differs", dir, keys.Print([]byte(k)))
			}
		}
	}
	if !e.Recovery().Empty() {
		t.Errorf("%s: recovery %+v", dir, e.Recovery())
	}
	mustCheck(t, e)
}

// A backup is made while commits go on, holds exactly one moment, opens as a store, and is not touched by
// what happens to the original. Restored, it is the store of that moment with all its rows.
//
// STO-022
func TestBackupAndRestore(t *testing.T) {
	for _, byCopy := range []bool{false, true} {
		fs := vfs.NewMem()
		e := mustOpen(t, testOptions(fs))
		mustCommit(t, e, nil, mustPending(t, e, KindData, 0, 0, 4), mustPending(t, e, KindIndex, 0, 0, 4), mustPending(t, e, KindSenders, 0, 0, 4))
		mustCommit(t, e, nil, mustPending(t, e, KindData, 0, 4, 8))
		held, err := readFiles(e)
		if err != nil {
			t.Fatal(err)
		}
		rows := rowsOf(t, e)
		counted := int64(0)
		report, err := e.Backup(t.Context(), backupDir, BackupOptions{Copy: byCopy, OnFile: func(n int64) { counted += n }})
		if err != nil {
			t.Fatal(err)
		}
		if report.Files != 4 || report.Generation != 2 || report.Rows != len(rows) || report.Bytes != counted || (report.Copied == 4) != byCopy {
			t.Errorf("report %+v", report)
		}
		if _, err := e.Backup(t.Context(), backupDir, BackupOptions{}); !errors.Is(err, ErrTargetExists) {
			t.Errorf("a second backup to the same place: %v", err)
		}
		// The original goes on, and loses everything.
		mustCommit(t, e, []*FileRow{
			rowAt(t, e, KindData, 0, 0), rowAt(t, e, KindIndex, 0, 0), rowAt(t, e, KindSenders, 0, 0), rowAt(t, e, KindData, 0, 4)},
			mustPending(t, e, KindData, 0, 20, 24))
		if err := e.reap(); err != nil {
			t.Fatal(err)
		}
		mustClose(t, e)

		verify := func(_ context.Context, row *FileRow, f *File) error { return checkContent(t.Context(), row, f) }
		restored, err := Restore(t.Context(), backupDir, restoredDir, RestoreOptions{FS: fs, ChainID: testChain, File: verify, BackupOptions: BackupOptions{Copy: byCopy}})
		if err != nil {
			t.Fatal(err)
		}
		if restored.Files != 4 || restored.Generation != 2 || len(restored.Quarantined) > 0 {
			t.Errorf("report %+v", restored)
		}
		verifyStore(t, fs, restoredDir, held, rows)
		verifyStore(t, fs, backupDir, held, rows)
		if _, err := Restore(t.Context(), backupDir, restoredDir, RestoreOptions{FS: fs}); !errors.Is(err, ErrTargetExists) {
			t.Errorf("restore over a store: %v", err)
		}
	}
}

// While a backup runs, replaced files are not deleted, and it holds one commit whatever is committed beside.
func TestBackupBesideCommits(t *testing.T) {
	opts := testOptions(vfs.NewMem())
	opts.noReaper = false
	e := mustOpen(t, opts)
	mustCommit(t, e, nil, mustPending(t, e, KindData, 0, 0, 1))
	stop := make(chan struct{})
	var group sync.WaitGroup
	group.Go(func() {
		for n := uint64(1); ; n++ {
			select {
			case <-stop:
				return
			default:
			}
			// Every commit replaces all files by one over one block more.
			s := e.Acquire()
			row, err := pendingOf(e, KindData, 0, chain.Range{From: 0, To: n + 1}, fmt.Appendf(nil, "to %d", n+1))
			if err == nil {
				err = e.Commit(context.Background(), Edit{Add: []NewRow{row}, Remove: s.Rows(KindData)})
			}
			s.Release()
			if err != nil {
				t.Error(err)
				return
			}
		}
	})
	for i := range 10 {
		dir := fmt.Sprintf("/backups/%d", i)
		report, err := e.Backup(t.Context(), dir, BackupOptions{Copy: i%2 == 0})
		if err != nil {
			t.Fatal(err)
		}
		n := report.Generation
		verifyStore(t, opts.FS, dir, []modelFile{{KindData, 0, chain.Range{From: 0, To: n}, map[bool]string{true: "data 0 0 1", false: fmt.Sprintf("to %d", n)}[n == 1]}}, nil)
	}
	close(stop)
	group.Wait()
	mustClose(t, e)
}

// An older backup put in place of a lost database does not cost newer files: they are quarantined, one whose
// name the backup uses for another content too, and files that are already there are kept.
//
// STO-022
func TestRestoreOverNewerFiles(t *testing.T) {
	fs := vfs.NewMem()
	e := mustOpen(t, testOptions(fs))
	mustCommit(t, e, nil, mustPending(t, e, KindData, 0, 0, 4))
	held, err := readFiles(e)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := e.Backup(t.Context(), backupDir, BackupOptions{}); err != nil {
		t.Fatal(err)
	}
	// Generation 2 is the one that a store at generation 1 takes for a commit in flight.
	mustCommit(t, e, nil, mustPending(t, e, KindData, 0, 4, 8))
	mustCommit(t, e, nil, mustPending(t, e, KindIndex, 0, 0, 8))
	all, err := readFiles(e)
	if err != nil {
		t.Fatal(err)
	}
	mustClose(t, e)
	if err := fs.RemoveAll(testDir + "/db"); err != nil {
		t.Fatal(err)
	}
	// A file with the name of one of the backup and other bytes.
	for _, change := range []string{"", "other bytes"} {
		if change != "" {
			if err := fs.RemoveAll(testDir + "/db"); err != nil {
				t.Fatal(err)
			}
			path := layout{fs: fs, dir: testDir}.file(KindData, fileName(keys.Segment{Kind: KindData, Generation: 1}, 4))
			if err := fs.Remove(path); err != nil {
				t.Fatal(err)
			}
			f, err := fs.Create(path, vfs.WriteCategoryUnspecified)
			if err != nil {
				t.Fatal(err)
			}
			_, _ = f.Write([]byte(change))
			_ = f.Close()
		}
		report, err := Restore(t.Context(), backupDir, testDir, RestoreOptions{FS: fs})
		if err != nil {
			t.Fatal(err)
		}
		if want := map[string]int{"": 2, "other bytes": 1}[change]; len(report.Quarantined) != want {
			t.Errorf("quarantined %v, want %d files", report.Quarantined, want)
		}
		verifyStore(t, fs, testDir, held, nil)
	}
	kept := quarantinedContents(t, fs)
	for _, f := range all[1:] {
		if !slices.Contains(kept, f.content) {
			t.Errorf("%v is gone", describe([]modelFile{f}))
		}
	}
	if !slices.Contains(kept, "other bytes") || len(kept) != 3 {
		t.Errorf("quarantine holds %q", kept)
	}
}

func quarantinedContents(t *testing.T, fs vfs.FS) (contents []string) {
	t.Helper()
	l := layout{fs: fs, dir: testDir}
	names, err := fs.List(l.quarantine())
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range names {
		f, err := fs.Open(fs.PathJoin(l.quarantine(), n))
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(f)
		_ = f.Close()
		if err != nil {
			t.Fatal(err)
		}
		contents = append(contents, string(content))
	}
	return contents
}

// A damaged backup, one of another chain, one of a newer format, or none is refused, and nothing is changed.
func TestRestoreRefuses(t *testing.T) {
	fs := vfs.NewMem()
	e := mustOpen(t, testOptions(fs))
	mustCommit(t, e, nil, mustPending(t, e, KindData, 0, 0, 4))
	if _, err := e.Backup(t.Context(), backupDir, BackupOptions{Copy: true}); err != nil {
		t.Fatal(err)
	}
	if _, err := Restore(t.Context(), testDir, restoredDir, RestoreOptions{FS: fs}); !errors.Is(err, ErrLocked) {
		t.Errorf("a store in use as backup: %v", err)
	}
	if _, err := Restore(t.Context(), backupDir, testDir, RestoreOptions{FS: fs}); !errors.Is(err, ErrTargetExists) {
		t.Errorf("over a store in use: %v", err)
	}
	mustClose(t, e)
	var other *ChainError
	if _, err := Restore(t.Context(), backupDir, restoredDir, RestoreOptions{FS: fs, ChainID: 5}); !errors.As(err, &other) {
		t.Errorf("another chain: %v", err)
	}
	if _, err := Restore(t.Context(), "/backups/none", restoredDir, RestoreOptions{FS: fs}); !errors.Is(err, ErrNoStore) {
		t.Errorf("no backup: %v", err)
	}
	path := layout{fs: fs, dir: backupDir}.file(KindData, fileName(keys.Segment{Kind: KindData, Generation: 1}, 4))
	content, err := fs.UnsafeGetFileDataBuffer(path)
	if err != nil {
		t.Fatal(err)
	}
	content[0] ^= 1
	var damaged *DamagedBackupError
	if _, err := Restore(t.Context(), backupDir, restoredDir, RestoreOptions{FS: fs, File: checkContent}); !errors.As(err, &damaged) {
		t.Errorf("damaged: %v", err)
	}
	if _, err := fs.Stat(restoredDir); err == nil {
		t.Error("a refused restore has made the directory")
	}
}

// A damaged file ends a backup that verifies, and leaves nothing; one that does not verify copies it.
//
// STO-022
func TestBackupVerifies(t *testing.T) {
	for _, copied := range []bool{false, true} {
		fs := vfs.NewMem()
		e := mustOpen(t, testOptions(fs))
		mustCommit(t, e, nil, mustPending(t, e, KindData, 0, 0, 4), mustPending(t, e, KindData, 0, 4, 8))
		verified := BackupOptions{Copy: copied, Verify: checkContent}
		if r, err := e.Backup(t.Context(), backupDir, verified); err != nil || r.Files != 2 {
			t.Fatalf("%+v, %v", r, err)
		}
		path := layout{fs: fs, dir: testDir}.file(KindData, fileName(keys.Segment{Kind: KindData, From: 4, Generation: 1}, 8))
		content, err := fs.UnsafeGetFileDataBuffer(path)
		if err != nil {
			t.Fatal(err)
		}
		content[0] ^= 1
		const other = "/backups/other"
		if _, err := e.Backup(t.Context(), other, verified); !errors.Is(err, ErrUnsound) || !strings.Contains(err.Error(), "000000000004-000000000008") {
			t.Errorf("damaged: %v", err)
		}
		for _, left := range []string{other, other + partialSuffix} {
			if _, err := fs.Stat(left); err == nil {
				t.Errorf("%s is there", left)
			}
		}
		ctx, cancel := context.WithCancel(t.Context())
		stopping := verified
		stopping.Verify = func(ctx context.Context, _ *FileRow, _ *File) error {
			cancel()
			return ctx.Err()
		}
		if _, err := e.Backup(ctx, other, stopping); !errors.Is(err, context.Canceled) || errors.Is(err, ErrUnsound) {
			t.Errorf("cancelled: %v", err)
		}
		if _, err := e.Backup(t.Context(), other, BackupOptions{Copy: copied}); err != nil {
			t.Errorf("not verified: %v", err)
		}
		mustClose(t, e)
	}
}

// backupScript makes a store, a backup, more commits, and restores the backup elsewhere and over the store
// whose database is lost.
type backupScript struct {
	fs    vfs.FS
	stage string      // what is done
	files []modelFile // acknowledged by the store that is backed up, at the backup
}

func (s *backupScript) run() error {
	s.stage = "fill"
	e, err := Open(testOptions(s.fs))
	if err != nil {
		return err
	}
	defer func() { _ = e.Close() }()
	commit := func(list ...modelFile) error {
		var edit Edit
		for _, f := range list {
			row, err := pendingOf(e, f.kind, f.level, f.blocks, []byte(f.content))
			if err != nil {
				return err
			}
			edit.Add = append(edit.Add, row)
		}
		return e.Commit(context.Background(), edit)
	}
	first := []modelFile{file(KindData, 0, 0, 4), file(KindSenders, 0, 0, 4), file(KindIndex, 0, 0, 4)}
	if err := commit(first...); err != nil {
		return err
	}
	s.files, s.stage = first, "back up"
	if _, err := e.Backup(context.Background(), backupDir, BackupOptions{}); err != nil {
		return err
	}
	s.stage = "go on"
	if err := commit(file(KindData, 0, 4, 9)); err != nil {
		return err
	}
	if err := e.Close(); err != nil {
		return err
	}
	s.stage = "restore"
	if _, err := Restore(context.Background(), backupDir, restoredDir, RestoreOptions{FS: s.fs}); err != nil {
		return err
	}
	s.stage = "lose the database"
	if err := s.fs.RemoveAll(testDir + "/db"); err != nil {
		return err
	}
	if err := syncDir(s.fs, testDir); err != nil {
		return err
	}
	s.stage = "restore over newer files"
	if _, err := Restore(context.Background(), backupDir, testDir, RestoreOptions{FS: s.fs}); err != nil {
		return err
	}
	s.stage = "done"
	return nil
}

// TestCrashInBackupAndRestore crashes at every single operation of a history with a backup and two restores.
// Whatever it was, the backup is absent or whole, the store that was backed up is as acknowledged, a restore
// that did not end shows no half of a store, and done again it ends with every file of the backup in place and
// every newer one in quarantine.
//
// STO-022 STO-002
func TestCrashInBackupAndRestore(t *testing.T) {
	whole := crashfs.New(vfs.NewCrashableMem(), nil)
	s := &backupScript{fs: whole.FS()}
	if err := s.run(); err != nil {
		t.Fatalf("%s: %v", s.stage, err)
	}
	n, seen := whole.Count(), map[string]int{}
	for at := 0; at < n; at++ {
		m := crashfs.New(vfs.NewCrashableMem(), rand.New(rand.NewPCG(uint64(at), 3)))
		m.StopAt = at
		s := &backupScript{fs: m.FS()}
		if err := s.run(); err == nil && m.Stopped() {
			t.Errorf("crash at %s: no error", m)
		}
		disk := m.Crash()
		seen[s.stage]++
		newer := []modelFile{file(KindData, 0, 4, 9)}
		switch s.stage {
		case "fill":
			continue // the other crash tests
		case "back up":
			verifyStore(t, disk, testDir, s.files, nil)
			if _, err := disk.Stat(backupDir); err == nil {
				verifyStore(t, disk, backupDir, s.files, nil)
				break
			}
			e := mustOpen(t, testOptions(disk))
			if _, err := e.Backup(t.Context(), backupDir, BackupOptions{}); err != nil {
				t.Errorf("a backup again: %v", err)
			}
			mustClose(t, e)
			verifyStore(t, disk, backupDir, s.files, nil)
		case "restore":
			verifyAgain(t, disk, restoredDir, s.files, nil)
			verifyStore(t, disk, testDir, append(slices.Clone(s.files), newer...), nil)
		case "restore over newer files":
			verifyAgain(t, disk, testDir, s.files, newer)
		default:
			verifyStore(t, disk, backupDir, s.files, nil)
		}
		if t.Failed() {
			t.Fatalf("%s: crash at %s", s.stage, m)
		}
	}
	t.Logf("crashes: %v", seen)
	for _, stage := range []string{"back up", "restore", "restore over newer files"} {
		if seen[stage] < 20 {
			t.Errorf("only %d crashes while it did: %s", seen[stage], stage)
		}
	}
}

// verifyAgain proves that a restore which was interrupted left no store but a whole one, and ends when it is
// done again.
func verifyAgain(t *testing.T, disk vfs.FS, dir string, files, newer []modelFile) {
	t.Helper()
	opts := optionsIn(dir, disk)
	opts.ReadOnly = true
	if e, err := Open(opts); err == nil {
		if got, err := readFiles(e); err != nil || !sameFiles(got, files) {
			t.Errorf("an interrupted restore shows %v, %v", describe(got), err)
		}
		mustClose(t, e)
	}
	_, err := Restore(t.Context(), backupDir, dir, RestoreOptions{FS: disk})
	if err != nil && !errors.Is(err, ErrTargetExists) { // it was complete
		t.Errorf("a restore again: %v", err)
	}
	verifyStore(t, disk, dir, files, nil)
	verifyStore(t, disk, backupDir, files, nil)
	if newer == nil {
		return
	}
	kept := strings.Join(quarantinedContents(t, disk), "\n")
	for _, f := range newer {
		if !strings.Contains(kept, f.content) {
			t.Errorf("%v is gone", describe([]modelFile{f}))
		}
	}
}

// A target without room fails the backup and not the store.
//
// STO-024
func TestBackupWithoutRoom(t *testing.T) {
	disk := new(crashfs.Full)
	disk.SetRoom(1 << 30)
	fs := disk.On(vfs.NewMem())
	e := mustOpen(t, testOptions(fs))
	row, err := pendingOf(e, KindData, 0, chain.Range{From: 0, To: 4}, bytes.Repeat([]byte("x"), 100_000))
	if err != nil {
		t.Fatal(err)
	}
	mustCommit(t, e, nil, row)
	for _, room := range []int64{0, 100, 50_000, 100_500, 101_000} {
		disk.SetRoom(room)
		if _, err := e.Backup(t.Context(), backupDir, BackupOptions{Copy: true}); err == nil {
			t.Errorf("room for %d bytes: no error", room)
		}
		disk.SetRoom(1 << 30)
		if err := e.Err(); err != nil {
			t.Fatalf("the store has failed: %v", err)
		}
	}
	if _, err := e.Backup(t.Context(), backupDir, BackupOptions{Copy: true}); err != nil {
		t.Error(err)
	}
	mustCommit(t, e, nil, mustPending(t, e, KindData, 0, 4, 8))
	mustClose(t, e)
}

// Compacting the database changes no row.
func TestCompactDatabase(t *testing.T) {
	e := mustOpen(t, testOptions(vfs.NewMem()))
	for n := range uint64(20) {
		mustCommit(t, e, nil, mustPending(t, e, KindData, 0, n, n+1))
	}
	rows := rowsOf(t, e)
	if err := e.CompactDatabase(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := rowsOf(t, e); !maps.Equal(got, rows) {
		t.Error("the rows differ")
	}
	mustCheck(t, e)
	mustClose(t, e)
	if err := e.CompactDatabase(t.Context()); !errors.Is(err, ErrClosed) {
		t.Errorf("closed: %v", err)
	}
}

// A backup of a store of which files are symbolic links, to another disk say, has the files.
func TestBackupOfSymbolicLinks(t *testing.T) {
	for _, byCopy := range []bool{false, true} {
		dir := t.TempDir()
		store, elsewhere, backup := filepath.Join(dir, "store"), filepath.Join(dir, "elsewhere"), filepath.Join(dir, "backup")
		e := mustOpen(t, optionsIn(store, vfs.Default))
		mustCommit(t, e, nil, mustPending(t, e, KindData, 0, 0, 4))
		held, err := readFiles(e)
		if err != nil {
			t.Fatal(err)
		}
		names, err := filepath.Glob(filepath.Join(store, "segments", "data", "*.seg"))
		if err != nil || len(names) != 1 {
			t.Fatal(names, err)
		}
		if err := errors.Join(os.Rename(names[0], elsewhere), os.Symlink(elsewhere, names[0])); err != nil {
			t.Fatal(err)
		}
		report, err := e.Backup(t.Context(), backup, BackupOptions{Copy: byCopy})
		if err != nil {
			t.Fatal(err)
		}
		if (report.Copied > 0) != byCopy {
			t.Errorf("copy %v: report %+v", byCopy, report)
		}
		mustClose(t, e)
		if err := errors.Join(os.RemoveAll(store), os.Remove(elsewhere)); err != nil {
			t.Fatal(err)
		}
		verifyStore(t, vfs.Default, backup, held, nil)
	}
}
