//go:build unix

package archive

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// openObject opens a file below a folder. Each component is opened relative to the one before, and none
// may be a symbolic link, so that nothing can be exchanged between looking and opening: what is checked is
// what is read. Only the folder itself may be behind links.
func openObject(folder, path string) (*os.File, error) {
	full := filepath.Join(folder, filepath.FromSlash(path))
	if err := checkPath(path); err != nil {
		return nil, &PathError{full, err}
	}
	const flags = unix.O_RDONLY | unix.O_CLOEXEC | unix.O_NOFOLLOW
	parent, err := unix.Open(folder, unix.O_RDONLY|unix.O_CLOEXEC|unix.O_DIRECTORY, 0)
	if err != nil {
		return nil, fmt.Errorf("open archive folder %s: %w", folder, err)
	}
	for {
		name, rest, deeper := strings.Cut(path, "/")
		mode := unix.O_NONBLOCK // does not wait for the other end of a pipe
		if deeper {
			mode = unix.O_DIRECTORY
		}
		fd, err := retryInterrupted(func() (int, error) { return unix.Openat(parent, name, flags|mode, 0) })
		if err != nil {
			link := isLink(parent, name)
			_ = unix.Close(parent)
			if link {
				return nil, &PathError{full, fmt.Errorf("%s %w", name, ErrSymlink)}
			}
			if deeper && errors.Is(err, unix.ENOTDIR) {
				return nil, &PathError{full, fmt.Errorf("%s is not a directory", name)}
			}
			return nil, fmt.Errorf("open archive object %s: %w", full, err)
		}
		_ = unix.Close(parent)
		if !deeper {
			return regularFile(os.NewFile(uintptr(fd), full))
		}
		parent, path = fd, rest
	}
}

// isLink tells whether a component that could not be opened is a symbolic link. Systems differ in the error
// that they give for one.
func isLink(parent int, name string) bool {
	var stat unix.Stat_t
	err := unix.Fstatat(parent, name, &stat, unix.AT_SYMLINK_NOFOLLOW)
	return err == nil && stat.Mode&unix.S_IFMT == unix.S_IFLNK
}

func retryInterrupted(open func() (int, error)) (int, error) {
	for {
		fd, err := open()
		if !errors.Is(err, unix.EINTR) {
			return fd, err
		}
	}
}
