package engine

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/leani-go/leani/internal/corrupt"
)

// TestDamagedTables: an open that meets a damaged table of the database says in one line that the store is damaged.
func TestDamagedTables(t *testing.T) {
	fs := vfs.NewMem()
	e := mustOpen(t, testOptions(fs))
	mustCommit(t, e, nil, mustPending(t, e, KindData, 0, 0, 4))
	mustClose(t, e)
	db := layout{fs: fs, dir: testDir}.database()
	names, err := fs.List(db)
	if err != nil {
		t.Fatal(err)
	}
	tables := 0
	for _, n := range names {
		if !strings.HasSuffix(n, ".sst") {
			continue
		}
		tables++
		path := fs.PathJoin(db, n)
		f, err := fs.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(f)
		if err = errors.Join(err, f.Close()); err != nil {
			t.Fatal(err)
		}
		content[20] ^= 1
		writeFile(t, fs, path, string(content))
	}
	if tables == 0 {
		t.Fatal("no tables")
	}
	_, err = Open(testOptions(fs))
	if !corrupt.Is(err) || strings.Contains(fmt.Sprint(err), "\n") {
		t.Errorf("got %v", err)
	}
}

// TestBackupWithin: a backup is not written into the store that it is of.
func TestBackupWithin(t *testing.T) {
	fs := vfs.NewMem()
	e := mustOpen(t, testOptions(fs))
	defer mustClose(t, e)
	for _, dir := range []string{"backup", "db/backup", "segments/data/backup", "a/b/c"} {
		if _, err := e.Backup(t.Context(), fs.PathJoin(testDir, dir), BackupOptions{}); !errors.Is(err, ErrTargetWithin) {
			t.Errorf("%s: %v", dir, err)
		}
	}
	if _, err := e.Backup(t.Context(), testDir+"-backup", BackupOptions{}); err != nil {
		t.Error(err)
	}
}
