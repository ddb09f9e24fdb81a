package harness

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
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
