package harness

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"
)

// Session is a process that a test speaks with in lines of JSON, each an object with one member: the name of a message and
// its value. It is used by one goroutine and ends with its test.
type Session struct {
	tb     testing.TB
	name   string
	cmd    *exec.Cmd
	stdin  io.WriteCloser
	lines  chan []byte // closed at the end of standard output
	exited chan struct{}
	err    error  // once exited
	taken  []byte // a line that Waits took, or nil

	mu     sync.Mutex
	stderr bytes.Buffer
}

// Script runs a script of a folder with Node.js; environment has lines NAME=value. NodeModules comes before.
func Script(tb testing.TB, dir, file string, environment ...string) *Session {
	tb.Helper()
	cmd := exec.CommandContext(context.Background(), "node", file)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), environment...)
	return StartSession(tb, filepath.Base(file), cmd)
}

// StartSession starts a prepared command. What it writes to standard error is shown when the test fails.
func StartSession(tb testing.TB, name string, cmd *exec.Cmd) *Session {
	tb.Helper()
	s := &Session{tb: tb, name: name, cmd: cmd, lines: make(chan []byte, 1<<12), exited: make(chan struct{})}
	ownGroup(cmd)
	cmd.Stderr = lockedWriter{s}
	var err error
	if s.stdin, err = cmd.StdinPipe(); err != nil {
		tb.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		tb.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		tb.Fatalf("start %s: %v", name, err)
	}
	go func() { // ends with the process
		defer close(s.exited)
		r := bufio.NewReaderSize(stdout, 1<<16)
		for {
			line, err := r.ReadBytes('\n')
			if line = bytes.TrimSpace(line); len(line) > 0 {
				s.lines <- line
			}
			if err != nil {
				break
			}
		}
		close(s.lines)
		s.err = cmd.Wait()
	}()
	tb.Cleanup(s.stop)
	return s
}

// Name is what the process is called in messages: the script's file.
func (s *Session) Name() string { return s.name }

// lockedWriter takes standard error.
type lockedWriter struct{ s *Session }

func (w lockedWriter) Write(p []byte) (int, error) {
	w.s.mu.Lock()
	defer w.s.mu.Unlock()
	return w.s.stderr.Write(p)
}

// Errors is what the process has written to standard error so far.
func (s *Session) Errors() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.stderr.String()
}

// stop ends what still runs and shows what went wrong.
func (s *Session) stop() {
	_ = s.stdin.Close()
	select {
	case <-s.exited:
	default:
		_ = killGroup(s.cmd)
		for range s.lines { // the reader must come to its end
		}
		<-s.exited
	}
	if text := s.Errors(); s.tb.Failed() && text != "" {
		s.tb.Logf("standard error of %s:\n%s", s.name, text)
	}
}

// Waits tells whether there is a message for Next, for which it waits a moment.
func (s *Session) Waits(moment time.Duration) bool {
	s.tb.Helper()
	if s.taken != nil {
		return true
	}
	select {
	case line, more := <-s.lines:
		if !more {
			<-s.exited
			s.tb.Fatalf("%s ended: %v", s.name, s.err)
		}
		s.taken = line
		return true
	case <-time.After(moment):
		return false
	}
}

// Next waits for the next message.
func (s *Session) Next() (name string, value json.RawMessage) {
	s.tb.Helper()
	if !s.Waits(Patience) {
		s.tb.Fatalf("%s says nothing", s.name)
	}
	var message map[string]json.RawMessage
	if err := json.Unmarshal(s.taken, &message); err != nil || len(message) != 1 {
		s.tb.Fatalf("%s says %.2000s: no object with one member: %v", s.name, s.taken, err)
	}
	s.taken = nil
	for name, value = range message {
	}
	return name, value
}

// Expect waits for the next message, which has to be of this name, and decodes its value unless into is nil.
func (s *Session) Expect(name string, into any) {
	s.tb.Helper()
	got, value := s.Next()
	if got != name {
		s.tb.Fatalf("%s says %s %.2000s, want %s", s.name, got, value, name)
	}
	if into == nil {
		return
	}
	if err := json.Unmarshal(value, into); err != nil {
		s.tb.Fatalf("%s says %s %.2000s: %v", s.name, got, value, err)
	}
}

// Tell sends a message.
func (s *Session) Tell(name string, value any) {
	s.tb.Helper()
	line, err := json.Marshal(map[string]any{name: value})
	if err == nil {
		_, err = s.stdin.Write(append(line, '\n'))
	}
	if err != nil {
		s.tb.Fatalf("tell %s: %v", s.name, err)
	}
}

// Ask sends a message and waits for the one of the same name.
func (s *Session) Ask(name string, value, into any) {
	s.tb.Helper()
	s.Tell(name, value)
	s.Expect(name, into)
}

// End closes standard input and waits until the process has ended with code 0 and without another message.
func (s *Session) End() {
	s.tb.Helper()
	if err := s.stdin.Close(); err != nil && !errors.Is(err, os.ErrClosed) {
		s.tb.Fatal(err)
	}
	select {
	case line, more := <-s.lines:
		if more {
			s.tb.Fatalf("%s says %.2000s instead of ending", s.name, line)
		}
	case <-time.After(Patience):
		s.tb.Fatalf("%s does not end", s.name)
	}
	<-s.exited
	if s.err != nil {
		s.tb.Fatalf("%s ended: %v", s.name, s.err)
	}
}
