package bench

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// dropFile asks the system to forget the pages of a file.
func dropFile(f *os.File) error {
	if err := f.Sync(); err != nil { // dirty pages stay
		return err
	}
	return unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_DONTNEED)
}

// DropFileCache makes the operating system forget the content of all files below a folder, so that the
// next reads come from the device. It needs no privileges and leaves other files alone.
func DropFileCache(folder string) error {
	err := filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		f, err := os.Open(path)
		if err != nil {
			return err
		}
		return errors.Join(dropFile(f), f.Close())
	})
	if err != nil {
		return fmt.Errorf("drop file cache: %w", err)
	}
	return nil
}
