package harness

import (
	"os/exec"
	"syscall"
	"time"
)

const (
	// Patience bounds waits for what is sure to come, so that a broken node or client fails its test. Nothing is measured
	// by it.
	Patience = 2 * time.Minute
	// installPatience bounds the download of packages.
	installPatience = 5 * time.Minute
	// pollEvery is how often a state is looked at that nobody tells of.
	pollEvery = 20 * time.Millisecond
)

// ownGroup puts a command into a process group of its own, all of which ends when its context does.
func ownGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if cmd.Cancel != nil {
		cmd.Cancel = func() error { return killGroup(cmd) }
		cmd.WaitDelay = 10 * time.Second
	}
}

// killGroup ends a command and what it has started.
func killGroup(cmd *exec.Cmd) error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
