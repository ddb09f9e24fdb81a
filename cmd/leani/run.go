package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
)

// The exit codes. Scripts and supervisors rely on them.
const (
	exitOK          = 0
	exitFailure     = 1   // a runtime failure
	exitUsage       = 2   // an unknown command or flag, or a value that cannot be
	exitInvalid     = 3   // doctor: the settings are unreadable or invalid
	exitInterrupted = 130 // a second signal cut a running shutdown short
)

// process is what a command may use of the process it runs in. Tests replace its parts.
type process struct {
	program        string // as it was called
	stdin          io.Reader
	stdout, stderr io.Writer
	getenv         func(string) string
	now            func() time.Time
	// signals delivers SIGINT and SIGTERM until stop is called.
	signals func() (c <-chan os.Signal, stop func())
	// exit ends the process at once.
	exit func(code int)
	// backend does the work on data directories and segment files.
	backend backend
}

// run executes one command line, the program's name first, and returns its exit code.
func run(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	program := "leani"
	if len(args) > 0 && args[0] != "" {
		program, args = args[0], args[1:]
	}
	p := &process{
		program: program, stdin: stdin, stdout: stdout, stderr: stderr,
		getenv: os.Getenv, now: time.Now, signals: notifySignals, exit: os.Exit,
		backend: newBackend(),
	}
	return p.run(args)
}

func notifySignals() (<-chan os.Signal, func()) {
	c := make(chan os.Signal, 2)
	signal.Notify(c, os.Interrupt, syscall.SIGTERM)
	return c, func() { signal.Stop(c) }
}

// run executes a command line. The first signal cancels the context of the command, which then
// stops cleanly; a second one ends the process.
func (p *process) run(args []string) int {
	ctx, cancel := context.WithCancel(context.Background())
	signals, stop := p.signals()
	done := make(chan struct{})
	watcher := make(chan struct{})
	go func() { // ends with done; run waits for it
		defer close(watcher)
		select {
		case <-signals:
			cancel()
		case <-done:
			return
		}
		select {
		case <-signals:
			p.exit(exitInterrupted)
		case <-done:
		}
	}()
	defer func() {
		close(done)
		<-watcher
		stop()
		cancel()
	}()

	shown := *p
	shown.stdout = &escapingWriter{out: p.stdout}
	root := newCommand(&shown)
	root.SetArgs(args)
	if len(args) > 0 && args[0] == cobra.ShellCompRequestCmd {
		describePlainly(root)
	}
	cmd, err := root.ExecuteContextC(ctx)
	return p.report(cmd.CommandPath(), err)
}

// report prints the error of a command and picks the exit code.
func (p *process) report(command string, err error) int {
	var failure *failureError
	switch {
	case err == nil:
		return exitOK
	case errors.As(err, &failure):
		for line := range strings.SplitSeq(failure.Error(), "\n") {
			fmt.Fprintf(p.stderr, "error: %s\n", plain(line))
		}
		return failure.code
	}
	prefix := "error: "
	for line := range strings.SplitSeq(err.Error(), "\n") {
		fmt.Fprintf(p.stderr, "%s%s\n", prefix, plain(line))
		prefix = ""
	}
	fmt.Fprintf(p.stderr, "Run `%s --help` for usage.\n", command)
	return exitUsage
}

// failureError is an error of a command that ran, as opposed to one of its command line. Any
// error of the command tree that is not a failureError is a usage error.
type failureError struct {
	error
	code int
}

func (e *failureError) Unwrap() error { return e.error }

// usageError makes a command that already runs fail as if its command line were wrong.
type usageError struct{ error }

func (e *usageError) Unwrap() error { return e.error }

// failed marks what a command returns as a failure, unless it is a usage error or has a code
// already.
func failed(err error) error {
	var (
		usage   *usageError
		failure *failureError
	)
	if err == nil || errors.As(err, &usage) || errors.As(err, &failure) {
		return err
	}
	return &failureError{err, exitFailure}
}
