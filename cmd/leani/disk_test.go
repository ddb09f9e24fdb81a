package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
)

// Only one process has a data directory: while a node serves, any other command fails at once and says
// why. (STO-019)
func TestTwoNodesOnOneStore(t *testing.T) {
	t.Parallel()
	l := newLab(t, bundled(t))
	l.must(fillArgs(bundledSpans[0])...)
	s := l.serve()
	for _, args := range [][]string{
		{"serve"}, fillArgs(bundledSpans[1]), {"history", "status"}, {"db", "verify"}, {"db", "inspect"}, {"db", "keys"},
		{"db", "compact"}, {"db", "backup", "--out", l.dir + "/copy"}, {"history", "verify"},
		{"history", "prune", "--before-block", "1"}, {"history", "export", "--from-block", "1", "--to-block", "2", "--out", l.dir + "/out"},
	} {
		if message := l.fails(args...); !strings.Contains(message, "data directory is in use by another process") || !strings.Contains(message, "stop the other process") {
			t.Errorf("%v: %s", args, message)
		}
	}
	l.stopped(s)
	l.must(fillArgs(bundledSpans[1])...)
}

// A disk that takes no more bytes fails the fill with the cause, and keeps what was committed. With room
// again the next fill goes on. (STO-024, STO-005)
func TestFullDisk(t *testing.T) {
	skipSlow(t)
	t.Parallel()
	c := chainlab(t)
	l := newLab(t, c)
	l.smallSegments()
	if err := os.Mkdir(l.data(), 0o755); err != nil {
		t.Fatal(err)
	}
	mount := func(flags uintptr, size string) error {
		return syscall.Mount("tmpfs", l.data(), "tmpfs", flags, "size="+size)
	}
	if err := mount(0, "24m"); errors.Is(err, syscall.EPERM) || errors.Is(err, syscall.EACCES) {
		t.Skip("only the superuser mounts a small disk")
	} else if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(l.data(), syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	message := l.fails(fillArgs(c.blocks)...)
	if !strings.Contains(message, "no space left on device: what was committed is kept; free space and run the command again") || strings.Count(message, "\n") > 1 {
		t.Errorf("got %s", message)
	}
	before := l.afterKill(c.blocks, 0)
	if before == 0 || before == c.blocks.Len() {
		t.Errorf("%d blocks on a full disk", before)
	}
	t.Logf("%d blocks; %s", before, message)
	l.fails(fillArgs(c.blocks)...) // still full
	l.afterKill(c.blocks, before)
	if err := mount(syscall.MS_REMOUNT, "256m"); err != nil {
		t.Fatal(err)
	}
	l.must(fillArgs(c.blocks)...)
	if got, want := l.verify().Digest, filled(t, c).verify().Digest; got != want {
		t.Errorf("digest %s, want %s", got, want)
	}
	l.clean()
}

// The same with a limit of the size of files, which needs no rights: the database cannot be made, or a
// segment not be written.
func TestFileSizeLimit(t *testing.T) {
	skipWithRace(t)
	t.Parallel()
	l := newLab(t, bundled(t))
	for _, kib := range []int{0, 1, 100, 5000} {
		args := append([]string{"--config", l.config}, fillArgs(bundledSpans[1])...)
		cmd := exec.Command("bash", append([]string{"-c", fmt.Sprintf(`ulimit -f %d; exec leani "$@"`, kib), "bash"}, args...)...)
		out, err := cmd.CombinedOutput()
		if code := cmd.ProcessState.ExitCode(); code == exitOK && kib > 1000 {
			continue // there was room for everything
		} else if code != exitFailure || !strings.Contains(string(out), "file too large") {
			t.Errorf("limit of %d KiB: %v, code %d: %s", kib, err, code, out)
		}
	}
	for _, s := range bundledSpans {
		l.must(fillArgs(s)...)
	}
	l.verify()
	l.clean()
}
