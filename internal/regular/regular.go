// Package regular opens files that have to be regular ones: not a folder, and not a pipe, socket or device, whose reading
// may wait for somebody or never end.
package regular

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// ErrNotRegular is what an error of Open matches for anything but a regular file.
var ErrNotRegular = errors.New("not a regular file")

// Open opens a file for reading, and does not wait for the other end of a pipe. Symbolic links are followed. The error is a
// *fs.PathError.
func Open(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|nonblocking, 0)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil {
		err = Check(path, info)
	}
	if err != nil {
		_ = f.Close()
		return nil, err
	}
	return f, nil
}

// Check tells what a file is that is not regular, as a *fs.PathError that matches ErrNotRegular; nil for one that is.
func Check(path string, info fs.FileInfo) error {
	if info.Mode().IsRegular() {
		return nil
	}
	return &fs.PathError{Op: "open", Path: path, Err: fmt.Errorf("is %s, %w", kind(info.Mode()), ErrNotRegular)}
}

func kind(mode fs.FileMode) string {
	switch {
	case mode.IsDir():
		return "a folder"
	case mode&fs.ModeNamedPipe != 0:
		return "a pipe"
	case mode&fs.ModeSocket != 0:
		return "a socket"
	case mode&fs.ModeDevice != 0:
		return "a device"
	default:
		return "something else"
	}
}
