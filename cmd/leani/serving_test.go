package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// patience bounds waits for what is sure to come, so that a broken node fails its test. Nothing is
// measured by it.
const patience = 2 * time.Minute

// server is a leani serve process.
type server struct {
	cmd    *exec.Cmd
	url    string
	ws     string        // the URL for WebSockets
	exited chan struct{} // closed once err and log are final
	err    error
	log    bytes.Buffer
}

// startServer starts a prepared `leani serve` with JSON logs and waits until it listens.
func startServer(cmd *exec.Cmd) (*server, error) {
	stderr, err := cmd.StderrPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	s := &server{cmd: cmd, exited: make(chan struct{})}
	listening := make(chan string, 1)
	go func() { // ends with the process
		lines := bufio.NewScanner(stderr)
		for lines.Scan() {
			s.log.Write(append(lines.Bytes(), '\n'))
			var record struct{ Msg, URL string }
			if json.Unmarshal(lines.Bytes(), &record) == nil && record.Msg == "listening" {
				if strings.HasPrefix(record.URL, "http") {
					s.url = record.URL
				} else {
					listening <- record.URL
				}
			}
		}
		s.err = cmd.Wait()
		close(s.exited)
	}()
	select {
	case s.ws = <-listening: // the last one
		return s, nil
	case <-s.exited:
		return nil, fmt.Errorf("serve ended before it listened: %w\n%s", s.err, s.log.String())
	case <-time.After(patience):
		return nil, errors.Join(errors.New("serve does not listen"), s.kill())
	}
}

// stop sends SIGINT and gives the exit code.
func (s *server) stop() (int, error) {
	if err := s.cmd.Process.Signal(syscall.SIGINT); err != nil {
		return 0, err
	}
	select {
	case <-s.exited:
		return s.cmd.ProcessState.ExitCode(), nil
	case <-time.After(patience):
		return 0, errors.Join(errors.New("serve does not stop"), s.kill())
	}
}

// kill ends the process at once and waits for it.
func (s *server) kill() error {
	err := s.cmd.Process.Kill()
	<-s.exited
	if errors.Is(err, os.ErrProcessDone) {
		return nil
	}
	return err
}

// serve starts the node of a lab in a process of its own. The test stops it if nothing else does.
func (l *lab) serve(environment ...string) *server {
	l.tb.Helper()
	cmd := l.command("--log-format", "json", "serve")
	cmd.Env = append(cmd.Env, environment...)
	s, err := startServer(cmd)
	if err != nil {
		l.tb.Fatal(err)
	}
	l.tb.Cleanup(func() { _ = s.kill() })
	return s
}

// stopped stops a node that has to end with code 0.
func (l *lab) stopped(s *server) {
	l.tb.Helper()
	if code, err := s.stop(); code != exitOK || err != nil {
		l.tb.Fatalf("serve ended with code %d, %v\n%s", code, err, s.log.String())
	}
}

// client puts questions to a node.
type client struct {
	url  string
	http *http.Client
}

// newClient makes a client for several goroutines.
func newClient(url string) *client {
	return &client{url, &http.Client{Timeout: patience, Transport: &http.Transport{MaxIdleConnsPerHost: 16}}}
}

// reply is the answer to a call.
type reply struct {
	Result json.RawMessage
	Error  *struct {
		Code    int
		Message string
		Data    json.RawMessage
	}
}

// post sends a request body and gives that of the response.
func (c *client) post(body string) ([]byte, error) {
	response, err := c.http.Post(c.url, "application/json", strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	defer func() { _ = response.Body.Close() }()
	return io.ReadAll(response.Body)
}

// call calls a method; params is a JSON array.
func (c *client) call(method, params string) (reply, error) {
	var r reply
	text, err := c.post(fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":%q,"params":%s}`, method, params))
	if err == nil {
		err = json.Unmarshal(text, &r)
	}
	if err != nil {
		return r, fmt.Errorf("%s %s: %w", method, params, err)
	}
	return r, nil
}

// serveWithin serves an open node within the test, without the work in the background, until stop is
// called.
func serveWithin(tb testing.TB, n *storedNode) (c *client, stop func()) {
	tb.Helper()
	fetched, err := n.openFetchedHistory(tb.Context())
	if err != nil {
		tb.Fatal(err)
	}
	s, err := n.newServer(1, fetched)
	if err != nil {
		tb.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- s.Serve(listener) }()
	c = newClient("http://" + listener.Addr().String())
	return c, func() {
		tb.Helper()
		c.http.CloseIdleConnections()
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if err := errors.Join(s.Shutdown(ctx), <-served, fetched.close()); err != nil {
			tb.Error(err)
		}
	}
}

// The commands of scripts.

// serversKey finds the nodes that a script has started.
type serversKey struct{}

func servers(ts *testscript.TestScript) map[string]*server {
	return ts.Value(serversKey{}).(map[string]*server)
}

// serveCommand is the script command `serve ARGS...`: start `leani ARGS... serve` and wait until it
// listens. $URL is where.
func serveCommand(ts *testscript.TestScript, neg bool, args []string) {
	if neg {
		ts.Fatalf("usage: serve args...")
	}
	cmd := exec.Command("leani", append(append([]string{"--log-format", "json"}, args...), "serve")...)
	cmd.Dir = ts.MkAbs(".")
	cmd.Env = append(os.Environ(), "LEANI_CONFIG="+ts.Getenv("LEANI_CONFIG"))
	s, err := startServer(cmd)
	ts.Check(err)
	ts.Defer(func() { _ = s.kill() })
	ts.Setenv("URL", s.url)
	servers(ts)[s.url] = s
}

// stopCommand is the script command `stop`: interrupt the node at $URL and require exit code 0. Its
// log can be matched as standard error.
func stopCommand(ts *testscript.TestScript, neg bool, args []string) {
	s := servers(ts)[ts.Getenv("URL")]
	if neg || len(args) > 0 || s == nil {
		ts.Fatalf("usage: stop, after serve")
	}
	code, err := s.stop()
	ts.Check(err)
	_, _ = s.log.WriteTo(ts.Stderr())
	if code != exitOK {
		ts.Fatalf("exit code %d, want 0", code)
	}
}

// askCommand is the script command `ask METHOD PARAMS`: call a method of the node at $URL. The result
// is standard output, an error standard error.
func askCommand(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) != 2 {
		ts.Fatalf("usage: ask method params")
	}
	r, err := newClient(ts.Getenv("URL")).call(args[0], args[1])
	ts.Check(err)
	if r.Error != nil {
		fmt.Fprintf(ts.Stderr(), "%d %s %s\n", r.Error.Code, r.Error.Message, r.Error.Data)
	} else {
		fmt.Fprintf(ts.Stdout(), "%s\n", r.Result)
	}
	if neg != (r.Error != nil) {
		ts.Fatalf("%s %s: got %s, error %v", args[0], args[1], r.Result, r.Error)
	}
}
