//go:build unix

package main

import (
	"os/exec"
	"syscall"
)

// setApart gives a command a process group of its own, so that Ctrl-C reaches it only through us.
func setApart(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }
