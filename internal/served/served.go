// Package served runs `leani serve` as a process of its own: it starts a command, finds out where it listens, keeps what it logs, and
// stops it.
//
// It knows the log of the node and nothing else of it: settings, scripts and questions are the business of who uses it. It is for tests and
// tools that need a whole node, and not part of one.
package served

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"
)

// maxLine bounds a line of the log.
const maxLine = 1 << 20

// Process is a `leani serve` that listens. Its methods are safe for concurrent use but for Stop, which is called once.
type Process struct {
	// HTTP and WebSocket are the URLs of its listeners.
	HTTP, WebSocket string
	// Exited is closed once the process has ended.
	Exited <-chan struct{}

	cmd *exec.Cmd
	mu  sync.Mutex
	log bytes.Buffer // guarded by mu
}

// Start starts a prepared `leani --log-format json serve`, of which it reads the standard error, and waits until it listens, for
// patience at most. When it does not it is ended; the error then has the log.
func Start(cmd *exec.Cmd, patience time.Duration) (*Process, error) {
	stderr, err := cmd.StderrPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return nil, fmt.Errorf("start serve: %w", err)
	}
	exited, listening := make(chan struct{}), make(chan string)
	p := &Process{cmd: cmd, Exited: exited}
	go func() { // ends with the process
		defer close(exited)
		lines := bufio.NewScanner(stderr)
		lines.Buffer(nil, maxLine)
		left := 2 // listeners
		for lines.Scan() {
			p.mu.Lock()
			p.log.Write(append(lines.Bytes(), '\n'))
			p.mu.Unlock()
			var record struct{ Msg, URL string }
			if left > 0 && json.Unmarshal(lines.Bytes(), &record) == nil && record.Msg == "listening" {
				left--
				listening <- record.URL // Start takes them until it has ended the process
			}
		}
		_, _ = io.Copy(io.Discard, stderr) // behind a line that is too long: the process must not wait for a reader
		_ = cmd.Wait()                     // Stop looks at the state
	}()
	overdue := time.After(patience)
	for p.HTTP == "" || p.WebSocket == "" {
		select {
		case url := <-listening:
			if strings.HasPrefix(url, "ws") {
				p.WebSocket = url
			} else {
				p.HTTP = url
			}
		case <-exited:
			return nil, fmt.Errorf("serve ended before it listened: %s\n%s", cmd.ProcessState, p.Log())
		case <-overdue:
			_ = cmd.Process.Kill()
			for {
				select {
				case <-listening: // too late
				case <-exited:
					return nil, fmt.Errorf("serve does not listen\n%s", p.Log())
				}
			}
		}
	}
	return p, nil
}

// Log is what it has logged so far.
func (p *Process) Log() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.log.String()
}

// PID is the number of the process.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Stop interrupts the process and waits for its end, which has to be its answer to that and to be well; one that does not end within
// patience is killed.
func (p *Process) Stop(patience time.Duration) error {
	select {
	case <-p.Exited:
		return fmt.Errorf("serve ended by itself: %s", p.cmd.ProcessState)
	default:
	}
	err := p.cmd.Process.Signal(os.Interrupt)
	select {
	case <-p.Exited:
	case <-time.After(patience):
		err = errors.Join(errors.New("serve does not end"), err, p.cmd.Process.Kill())
		<-p.Exited
	}
	if code := p.cmd.ProcessState.ExitCode(); code != 0 {
		err = errors.Join(err, fmt.Errorf("serve ended: %s", p.cmd.ProcessState))
	}
	return err
}
