// Package shareddata finds the large chain data that tests read from outside the repository.
//
// The data is optional: it lies in a folder shared/data beside the checkout, and tests that
// need it are skipped where it is absent. Only tests import this package.
package shareddata

import (
	"os"
	"path/filepath"
	"testing"
)

// Path returns the path of a file or folder of the shared data, or skips the test when it is
// not there. The elements are joined below the data folder.
func Path(tb testing.TB, elem ...string) string {
	tb.Helper()
	root := Root(tb)
	path := filepath.Join(append([]string{root, "..", "shared", "data"}, elem...)...)
	if _, err := os.Stat(path); err != nil {
		tb.Skipf("shared chain data is absent: %v", err)
	}
	return path
}

// Root returns the root folder of the repository: the closest one above the working folder
// that holds a go.mod. It fails the test when there is none.
func Root(tb testing.TB) string {
	tb.Helper()
	dir, err := os.Getwd()
	if err != nil {
		tb.Fatal(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			tb.Fatal("no go.mod above the working folder")
		}
		dir = parent
	}
}
