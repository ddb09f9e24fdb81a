package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
)

// peakFileVariable names the file in which a leani process of a test leaves its peak memory.
const peakFileVariable = "LEANI_TEST_PEAK"

// writePeak writes the most memory that this process has had resident, in bytes.
func writePeak(path string) error {
	// Not getrusage: that of a child starts with the peak of the process that started it.
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return err
	}
	_, after, _ := bytes.Cut(status, []byte("VmHWM:"))
	var kib int64
	if _, err := fmt.Sscanf(string(after), "%d kB", &kib); err != nil {
		return fmt.Errorf("read VmHWM of /proc/self/status: %w", err)
	}
	return os.WriteFile(path, fmt.Append(nil, kib<<10), 0o644)
}

// peakOf reads what writePeak wrote.
func peakOf(tb testing.TB, path string) (peak int64) {
	tb.Helper()
	if _, err := fmt.Sscan(string(readFile(tb, path)), &peak); err != nil {
		tb.Fatal(err)
	}
	return peak
}

// memoryOverhead is what a process may take beyond budgets.memory_bytes; docs/configuration.md promises
// it.
const memoryOverhead = 128 << 20

// withinBudget compares the peak of a process with the budget of the settings.
func (l *lab) withinBudget(what string, peak int64) {
	l.tb.Helper()
	budget := int64(l.settings().Budgets.MemoryBytes)
	l.tb.Logf("%s: peak %d MiB, budget %d MiB", what, peak>>20, budget>>20)
	if peak > budget+memoryOverhead && !raceEnabled { // the race detector takes memory itself
		l.tb.Errorf("%s: peak of %d MiB, the budget is %d MiB and the overhead %d MiB", what, peak>>20, budget>>20, int64(memoryOverhead)>>20)
	}
}

// measured runs a command that has to succeed and to stay within its budget.
func (l *lab) measured(what string, args ...string) {
	l.tb.Helper()
	path := filepath.Join(l.tb.TempDir(), "peak")
	cmd := l.command(args...)
	cmd.Env = append(cmd.Env, peakFileVariable+"="+path)
	if out, err := cmd.CombinedOutput(); err != nil {
		l.tb.Fatalf("%s: %v\n%s", what, err, out)
	}
	l.withinBudget(what, peakOf(l.tb, path))
}

// serveMeasured starts a node whose peak stoppedMeasured compares with its budget.
func (l *lab) serveMeasured(when string) *server {
	l.tb.Helper()
	return l.serve(peakFileVariable + "=" + l.peakFile(when))
}

func (l *lab) peakFile(when string) string { return filepath.Join(l.dir, "peak "+when) }

func (l *lab) stoppedMeasured(s *server, when string) {
	l.tb.Helper()
	l.stopped(s)
	l.withinBudget("serve "+when, peakOf(l.tb, l.peakFile(when)))
}

// A node with little memory stays within it, also when many ask at once. TestChainlab is the
// large version. (STO-016, INV-22)
func TestMemoryOfSmallNode(t *testing.T) {
	t.Parallel()
	l := newLab(t, bundled(t))
	l.set("budgets", "memory_bytes", fmt.Sprint(leastMemory))
	for _, s := range bundledSpans {
		l.measured("fill", fillArgs(s)...)
	}
	e := l.examine(bundledSpans)
	s := l.serveMeasured("small")
	c := newClient(s.url)
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			for range 4 {
				if wrong, refused := e.sit(c); len(wrong) > 0 || refused > 0 {
					t.Errorf("%d refused, wrong: %q", refused, wrong)
				}
			}
		})
	}
	group.Wait()
	l.stoppedMeasured(s, "small")
}
