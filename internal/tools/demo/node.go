package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

const (
	// startTimeout bounds how long the node may take until it listens.
	startTimeout = 20 * time.Second
	// stopTimeout bounds how long it may take to stop.
	stopTimeout = 20 * time.Second
)

// arguments are those of a leani command on the demo's settings.
func (d *demo) arguments(args ...string) []string {
	return append([]string{"--config", filepath.Join(d.dir, "leani.toml")}, args...)
}

// leani runs a command to its end and shows it.
func (d *demo) leani(ctx context.Context, args ...string) error {
	args = d.arguments(args...)
	fmt.Printf("\n$ %s %s\n", d.typed, strings.Join(args, " "))
	cmd := exec.CommandContext(ctx, d.binary, args...)
	cmd.Args[0] = d.typed
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stdout
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("leani %s: %w", args[2], err)
	}
	return nil
}

// runningNode is a leani serve process.
type runningNode struct {
	url    string // of JSON-RPC over HTTP
	ws     string // of WebSockets
	cmd    *exec.Cmd
	exited chan error // receives once
}

// serve starts the node and waits until it listens.
func (d *demo) serve(ctx context.Context) (*runningNode, error) {
	args := d.arguments("--log-format", "json", "serve")
	fmt.Printf("\n$ %s %s &\n", d.typed, strings.Join(args, " "))
	cmd := exec.Command(d.binary, args...)
	setApart(cmd)
	log, err := cmd.StderrPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	n := &runningNode{cmd: cmd, exited: make(chan error, 1)}
	listening := make(chan [2]string, 1)
	go func() { // ends with the process
		readLog(log, listening)
		n.exited <- cmd.Wait()
	}()
	select {
	case urls := <-listening:
		n.url, n.ws = urls[0], urls[1]
		return n, nil
	case err := <-n.exited:
		return nil, fmt.Errorf("leani serve ended before it listened: %w", err)
	case <-time.After(startTimeout):
		return nil, n.stop(fmt.Errorf("leani serve did not listen within %s", startTimeout))
	case <-ctx.Done():
		return nil, n.stop(ctx.Err())
	}
}

// readLog shows the errors of the node's log, and sends the first two URLs it listens on.
func readLog(log io.Reader, listening chan<- [2]string) {
	lines := bufio.NewScanner(log)
	lines.Buffer(nil, 1<<20)
	var urls [2]string
	announced := 0
	for lines.Scan() {
		var record struct{ Level, Msg, URL string }
		if err := json.Unmarshal(lines.Bytes(), &record); err != nil || record.Level == "ERROR" {
			fmt.Println(lines.Text())
			continue
		}
		if record.Msg == "listening" && announced < len(urls) {
			urls[announced] = record.URL
			if announced++; announced == len(urls) {
				listening <- urls
			}
		}
	}
	_, _ = io.Copy(io.Discard, log) // the pipe must not fill up
}

// stop interrupts the node, waits for it, and gives the first error.
func (n *runningNode) stop(cause error) error {
	if err := n.cmd.Process.Signal(os.Interrupt); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return errors.Join(cause, err)
	}
	select {
	case err := <-n.exited:
		if err != nil {
			err = fmt.Errorf("leani serve: %w", err)
		}
		return errors.Join(cause, err)
	case <-time.After(stopTimeout):
		return errors.Join(cause, fmt.Errorf("leani serve did not stop within %s", stopTimeout), n.cmd.Process.Kill())
	}
}

// wait leaves the node running until it ends or the context does.
func (n *runningNode) wait(ctx context.Context) error {
	select {
	case err := <-n.exited:
		return fmt.Errorf("leani serve ended: %w", err)
	case <-ctx.Done():
		return n.stop(nil)
	}
}
