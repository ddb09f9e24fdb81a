//go:build !unix

package archive

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// openObject opens a file below a folder. No component may be a symbolic link. The file that was opened is
// compared with what lies at the path afterwards, so that an exchange in between is noticed.
func openObject(folder, path string) (*os.File, error) {
	full := filepath.Join(folder, filepath.FromSlash(path))
	if err := checkPath(path); err != nil {
		return nil, &PathError{full, err}
	}
	f, err := os.Open(full)
	if err != nil {
		return nil, fmt.Errorf("open archive object %s: %w", full, err)
	}
	opened, err := f.Stat()
	for at, names := folder, strings.Split(path, "/"); err == nil && len(names) > 0; names = names[1:] {
		at = filepath.Join(at, names[0])
		var info os.FileInfo
		if info, err = os.Lstat(at); err != nil {
			break
		}
		if info.Mode()&os.ModeSymlink != 0 || len(names) == 1 && !os.SameFile(info, opened) {
			err = &PathError{full, fmt.Errorf("%s %w", names[0], ErrSymlink)}
		}
	}
	if err != nil {
		_ = f.Close()
		return nil, err
	}
	return regularFile(f)
}
