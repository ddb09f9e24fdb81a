package ingest

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

// A write that fails names the directory and not the file, whose name is another each time and means nothing: what is told
// again and again is recognized as the same.
func TestTemporaryWriteFailure(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "temporary")
	file, err := NewTemporary(dir, 100).create(t.Context(), 10)
	if err != nil {
		t.Fatal(err)
	}
	if err := file.File.Close(); err != nil {
		t.Fatal(err)
	}
	_, err = file.WriteAt([]byte("x"), 0)
	var path *fs.PathError
	if !errors.As(err, &path) || path.Path != dir || !errors.Is(err, os.ErrClosed) {
		t.Errorf("got %v", err)
	}
}
