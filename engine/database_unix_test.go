//go:build unix

package engine

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/leani-go/leani/internal/regular"
)

// A pipe in place of any file of the database is told: nobody waits for the other end of it.
func TestPipeInDatabase(t *testing.T) {
	o := optionsIn(filepath.Join(t.TempDir(), "store"), vfs.Default)
	mustClose(t, mustOpen(t, o))
	files, err := filepath.Glob(filepath.Join(o.Dir, "db", "*"))
	if err != nil || len(files) < 3 {
		t.Fatal(files, err)
	}
	for _, path := range files {
		aside := filepath.Join(t.TempDir(), "aside")
		if err := errors.Join(os.Rename(path, aside), syscall.Mkfifo(path, 0o600)); err != nil {
			t.Fatal(err)
		}
		for _, readOnly := range []bool{false, true} {
			o.ReadOnly = readOnly
			e, err := Open(o)
			if err == nil {
				mustClose(t, e)
			}
			if !errors.Is(err, regular.ErrNotRegular) || !strings.Contains(err.Error(), path) {
				t.Errorf("%s: got %v", path, err)
			}
		}
		if err := os.Rename(aside, path); err != nil {
			t.Fatal(err)
		}
	}
	o.ReadOnly = false
	mustClose(t, mustOpen(t, o))
}
