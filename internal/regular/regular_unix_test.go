//go:build unix

package regular

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// What is no regular file is refused at once and called what it is; a link to a file is followed.
func TestOpen(t *testing.T) {
	dir := t.TempDir()
	file, pipe, link := filepath.Join(dir, "file"), filepath.Join(dir, "pipe"), filepath.Join(dir, "link")
	if err := errors.Join(os.WriteFile(file, []byte("content"), 0o600), unix.Mkfifo(pipe, 0o600), os.Symlink("file", link)); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{file, link} {
		f, err := Open(path)
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(f)
		if string(content) != "content" || err != nil || f.Close() != nil {
			t.Errorf("%s: %q, %v", path, content, err)
		}
	}
	for path, what := range map[string]string{pipe: "is a pipe", dir: "is a folder", "/dev/null": "is a device"} {
		_, err := Open(path)
		var located *fs.PathError
		if !errors.Is(err, ErrNotRegular) || !errors.As(err, &located) || located.Path != path || !strings.Contains(err.Error(), what) {
			t.Errorf("%s: %v", path, err)
		}
	}
	if _, err := Open(filepath.Join(dir, "none")); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
}
