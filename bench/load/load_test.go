package load

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestLoad is a small run: every answer and every stream of notifications is as the blocks say, through reorganizations and beside
// clients that do not read, and the node keeps its memory.
//
// RPC-180 RPC-182 RPC-183 RPC-189 RPC-192 RPC-197 RPC-198 INV-22 INV-23 INV-32
func TestLoad(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: left out with -short")
	}
	dir := t.TempDir()
	program := filepath.Join(dir, "leani")
	if out, err := exec.Command("go", "build", "-o", program, "github.com/leani-go/leani/cmd/leani").CombinedOutput(); err != nil {
		t.Fatalf("build leani: %v\n%s", err, out)
	}
	report, err := Run(t.Context(), Options{
		Leani: program, Dir: filepath.Join(dir, "node"), Seed: 2, History: 40, MemoryBytes: 256 << 20,
		Askers: 8, Sockets: 8, Subscriptions: 32, Blocks: 30, Pause: 50 * time.Millisecond, ReorgEvery: 6,
	})
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	if err := report.Write(&text); err != nil {
		t.Fatal(err)
	}
	t.Log(text.String())
	cut := 0
	for what, n := range report.Drops {
		if strings.HasPrefix(what, "WebSocket") {
			cut += n
		}
	}
	if report.Answers == 0 || report.Notifications == 0 || cut != 2 {
		t.Errorf("%d answers, %d notifications, cut off: %v", report.Answers, report.Notifications, report.Drops)
	}
}
