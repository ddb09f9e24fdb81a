package harness

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/leani-go/leani/internal/shareddata"
)

// built is the binary of this test process.
type built struct {
	dir  string // removed by Main
	once sync.Once
	err  error
}

// binary is written by Main alone, before any test runs.
var binary *built

// Main runs the tests of a package that starts nodes: call it in TestMain. It makes a place for the binary, which the first
// node builds, and removes it.
func Main(m *testing.M) int {
	dir, err := os.MkdirTemp("", "leani-clients-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() { _ = os.RemoveAll(dir) }() // what stays is in the folder for temporary files
	binary = &built{dir: dir}
	return m.Run()
}

// path builds the binary once and says where it is.
func (b *built) path(tb testing.TB) string {
	tb.Helper()
	if b == nil {
		tb.Fatal("TestMain has to call harness.Main")
	}
	path := filepath.Join(b.dir, "leani")
	root := shareddata.Root(tb)
	b.once.Do(func() {
		if b.err = lookAtSources(root); b.err != nil {
			return
		}
		cmd := exec.Command("go", "build", "-o", path, "./cmd/leani")
		cmd.Dir = root
		if out, err := cmd.CombinedOutput(); err != nil {
			b.err = fmt.Errorf("build leani: %w\n%s", err, out)
		}
	})
	if b.err != nil {
		tb.Fatal(b.err)
	}
	return path
}

// lookAtSources opens the folders of the repository. The go command remembers which folders and files a test has opened, and
// takes its result out of the cache only while they are the same: it cannot know otherwise that the test is about a
// binary made of packages that the test does not import, and about scripts.
func lookAtSources(root string) error {
	return filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		name := entry.Name()
		if err == nil && entry.IsDir() && path != root && (name == "node_modules" || name == "data" || name == "bin" || strings.HasPrefix(name, ".")) {
			return filepath.SkipDir
		}
		return err
	})
}
