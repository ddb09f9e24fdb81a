// Package shareddata finds the large chain data that tests read from outside the repository.
//
// The data is optional: it lies in a folder shared/data beside the checkout, and tests that
// need it are skipped where it is absent. Where it has to be there, RequireVariable makes them
// fail instead. Only tests import this package.
package shareddata

import (
	"os"
	"path/filepath"
	"testing"
)

// RequireVariable names the environment variable that, set to 1, makes tests fail whose data is
// absent: a test that is skipped unnoticed proves nothing.
const RequireVariable = "LEANI_REQUIRE_DATA"

// Path returns the path of a file or folder of the shared data. When it is not there, the test is
// skipped, or fails if RequireVariable is set. The elements are joined below the data folder.
func Path(tb testing.TB, elem ...string) string {
	tb.Helper()
	root := Root(tb)
	path := filepath.Join(append([]string{root, "..", "shared", "data"}, elem...)...)
	if _, err := os.Stat(path); err != nil {
		if os.Getenv(RequireVariable) == "1" {
			tb.Fatalf("shared chain data is absent, and %s is set: %v", RequireVariable, err)
		}
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
