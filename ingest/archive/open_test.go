//go:build unix

package archive

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/leani-go/leani/chain"
)

// TestOpenObject: what may not be an object fails the read, whatever lies there. SEC-011
func TestOpenObject(t *testing.T) {
	folder := t.TempDir()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(os.MkdirAll(filepath.Join(folder, "a", "b"), 0o700))
	must(os.WriteFile(filepath.Join(folder, "a", "b", "file"), []byte("content"), 0o600))
	must(os.Symlink("b", filepath.Join(folder, "a", "link")))
	must(os.Symlink("file", filepath.Join(folder, "a", "b", "link")))
	must(os.Symlink("/dev/null", filepath.Join(folder, "outside")))
	must(os.Symlink("nowhere", filepath.Join(folder, "dangling")))
	must(unix.Mkfifo(filepath.Join(folder, "pipe"), 0o600))
	for path, want := range map[string]error{
		"a/b/file":     nil,
		"a/link/file":  ErrSymlink,    // ARC-022: in the middle
		"a/b/link":     ErrSymlink,    // ARC-022: at the end
		"outside":      ErrSymlink,    // ARC-022
		"dangling":     ErrSymlink,    // ARC-022
		"a/b":          ErrNotRegular, // ARC-024
		"pipe":         ErrNotRegular, // ARC-024; opening it does not wait for a writer
		"a/none":       os.ErrNotExist,
		"none/file":    os.ErrNotExist,
		"../file":      errors.ErrUnsupported, // stands for a path that is refused: ARC-021
		"/etc/passwd":  errors.ErrUnsupported, // ARC-020
		"a/b/file/x":   errors.ErrUnsupported, // a file is no folder
		"a/../a/b":     errors.ErrUnsupported,
		`a\b`:          errors.ErrUnsupported,
		"./a/b/file":   errors.ErrUnsupported,
		"a//b/file":    errors.ErrUnsupported,
		"a/link/../b/": errors.ErrUnsupported,
	} {
		f, err := openObject(folder, path)
		var refused *PathError
		switch {
		case want == nil:
			if err != nil {
				t.Error(path, err)
				continue
			}
			content, err := io.ReadAll(f)
			if string(content) != "content" || err != nil {
				t.Errorf("%s: %q, %v", path, content, err)
			}
			must(f.Close())
		case err == nil:
			t.Errorf("%s is opened", path)
			must(f.Close())
		case want == errors.ErrUnsupported:
			if !errors.As(err, &refused) {
				t.Errorf("%s: %v", path, err)
			}
		case !errors.Is(err, want), want != os.ErrNotExist && !errors.As(err, &refused):
			t.Errorf("%s: got %v, want %v", path, err, want)
		}
	}
	// The folder of the manifest itself may be behind a link.
	linked := filepath.Join(t.TempDir(), "linked")
	must(os.Symlink(folder, linked))
	f, err := openObject(linked, "a/b/file")
	must(err)
	must(f.Close())
}

// TestSameHandle exchanges the object, and a folder on the way to it, for others between the two passes: frames
// come from the file that was proved. ARC-023, ARC-041
func TestSameHandle(t *testing.T) {
	content := strings.Join(madeLines(1, 4), "\n")
	a := madeArchive(t, func(m map[string]any) {
		m["objects"].([]any)[0].(map[string]any)["path"] = "deep/object.jsonl"
	}, madeObject{1, 3, content})
	deep := filepath.Join(a.folder, "deep")
	if err := errors.Join(os.Mkdir(deep, 0o700), os.Rename(filepath.Join(a.folder, "object-0.jsonl"), filepath.Join(deep, "object.jsonl"))); err != nil {
		t.Fatal(err)
	}
	var got []chain.BlockRef
	err := a.Read(context.Background(), &a.manifest.Objects[0], chain.Range{From: 1, To: 4}, Budget{}, func(f *chain.Frame) error {
		if len(got) == 0 { // the second pass has begun
			other := t.TempDir()
			err := errors.Join(
				os.WriteFile(filepath.Join(other, "object.jsonl"), []byte(strings.Join(madeLines(5, 8), "\n")), 0o600),
				os.Rename(deep, filepath.Join(a.folder, "moved")), os.Symlink(other, deep))
			if err != nil {
				t.Fatal(err)
			}
		}
		got = append(got, f.BlockRef)
		return nil
	})
	if err != nil || len(got) != 3 || got[2].Hash != madeHash(3) {
		t.Errorf("%v, %v", got, err)
	}
	if _, _, err := read(a, 0, chain.Range{From: 1, To: 4}, Budget{}); !errors.Is(err, ErrSymlink) {
		t.Errorf("the next read: %v", err)
	}
}
