//go:build unix

package main

import (
	"os"
	"syscall"
)

// makePipe makes a named pipe, and tells whether there are any.
func makePipe(path string) (bool, error) {
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		return false, &os.PathError{Op: "mkfifo", Path: path, Err: err}
	}
	return true, nil
}
