package harness

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/gofrs/flock"
)

// RequireVariable names the environment variable that, set to 1, makes tests fail for want of Node.js, npm or the
// registry, instead of being skipped.
const RequireVariable = "LEANI_REQUIRE_NODE"

// stampName is the file inside node_modules that says for which lock file it was installed.
const stampName = ".leani-installed"

// NodeModules installs the npm packages of a folder exactly as its package-lock.json says, unless that is done. Test
// processes that want the same folder wait for each other. Without Node.js, npm or their registry the test is
// skipped, or fails if RequireVariable is set.
func NodeModules(tb testing.TB, dir string) {
	tb.Helper()
	NeedNode(tb)
	lock, err := os.ReadFile(filepath.Join(dir, "package-lock.json"))
	if err != nil {
		tb.Fatal(err)
	}
	sum := sha256.Sum256(lock)
	want := []byte(hex.EncodeToString(sum[:]))
	modules := filepath.Join(dir, "node_modules")
	stamp := filepath.Join(modules, stampName)
	installed := func() bool {
		got, err := os.ReadFile(stamp)
		return err == nil && bytes.Equal(got, want)
	}
	if installed() {
		return
	}

	ctx, cancel := context.WithTimeout(context.Background(), installPatience)
	defer cancel()
	held := flock.New(filepath.Join(dir, ".node_modules.lock"))
	if ok, err := held.TryLockContext(ctx, pollEvery); err != nil || !ok {
		tb.Fatalf("wait for another installation in %s: %v", dir, err)
	}
	defer func() { _ = held.Unlock() }()
	if installed() {
		return
	}
	cmd := exec.CommandContext(ctx, "npm", "ci", "--no-audit", "--no-fund", "--ignore-scripts")
	cmd.Dir = dir
	ownGroup(cmd)
	out, err := cmd.CombinedOutput()
	if err != nil {
		absent(tb, "npm ci in %s: %v\n%s", dir, err, out)
	}
	if err := os.WriteFile(stamp, want, 0o644); err != nil {
		tb.Fatal(err)
	}
}

// NeedNode skips a test where Node.js or npm is not installed, or fails it if RequireVariable is set.
func NeedNode(tb testing.TB) {
	tb.Helper()
	for _, name := range []string{"node", "npm"} {
		if _, err := exec.LookPath(name); err != nil {
			absent(tb, "%s is not installed: %v", name, err)
		}
	}
}

// absent skips a test that cannot run here, or fails it where it has to.
func absent(tb testing.TB, format string, args ...any) {
	tb.Helper()
	if os.Getenv(RequireVariable) == "1" {
		tb.Fatalf(RequireVariable+" is set: "+format, args...)
	}
	tb.Skipf(format, args...)
}
