package ingest

import (
	"context"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/leani-go/leani/chain"
)

// panicVariable makes the test binary run a fill whose source panics.
const panicVariable = "LEANI_TEST_PANIC_IN_WORKER"

func panicInWorker() {
	if os.Getenv(panicVariable) == "" {
		return
	}
	source := newFakeSource()
	source.pause = func(label string) {
		if strings.HasPrefix(label, "read") {
			panic("the source is broken")
		}
	}
	sink := &fakeSink{source: source, align: 1, pause: func(string) {}}
	_, _ = Fill(context.Background(), Options{Source: source, Sink: sink.open, Ranges: []chain.Range{{From: 0, To: 9}}})
	os.Exit(0) // swallowed
}

// A panic in a worker ends the process and shows where it came from.
func TestPanicIsNotSwallowed(t *testing.T) {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), panicVariable+"=1")
	out, err := cmd.CombinedOutput()
	if err == nil || !strings.Contains(string(out), "panic: the source is broken") || !strings.Contains(string(out), "(*run).work") {
		t.Fatalf("got %v: %s", err, out)
	}
}
