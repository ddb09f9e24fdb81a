//go:build !unix

package main

import "os/exec"

// setApart does nothing: Ctrl-C reaches the command at the same time as us.
func setApart(*exec.Cmd) {}
