package harness

import (
	"bufio"
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"sync"
	"testing"
	"time"
)

// Record is a line that a program logs: an object. Raw is what stands there.
type Record struct {
	Message string `json:"msg"`
	// Level is pino's: 10 trace, 20 debug, 30 information, 40 warning, 50 error, 60 fatal.
	Level int             `json:"level"`
	Raw   json.RawMessage `json:"-"`
}

// Program is a process that is not spoken with; its log, lines of JSON on standard output, tells what it does. It is
// used by one goroutine and ends with its test.
type Program struct {
	tb     testing.TB
	name   string
	cmd    *exec.Cmd
	exited chan struct{} // closed once the process has ended
	seen   int           // records that Await is done with

	mu      sync.Mutex
	changed chan struct{} // closed and replaced when there is another record
	records []Record
	other   bytes.Buffer // what is no record, and standard error
}

// StartProgram starts a prepared command. What it logs is shown when the test fails.
func StartProgram(tb testing.TB, name string, cmd *exec.Cmd) *Program {
	tb.Helper()
	p := &Program{tb: tb, name: name, cmd: cmd, exited: make(chan struct{}), changed: make(chan struct{})}
	ownGroup(cmd)
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		tb.Fatal(err)
	}
	cmd.Stderr = programErrors{p}
	if err := cmd.Start(); err != nil {
		tb.Fatalf("start %s: %v", name, err)
	}
	go func() { // ends with the process
		defer close(p.exited)
		r := bufio.NewReaderSize(stdout, 1<<16)
		for {
			line, err := r.ReadBytes('\n')
			p.add(bytes.TrimSpace(line))
			if err != nil {
				break
			}
		}
		_ = cmd.Wait() // Interrupt looks at the state
	}()
	tb.Cleanup(p.stop)
	return p
}

// programErrors takes standard error.
type programErrors struct{ p *Program }

func (w programErrors) Write(b []byte) (int, error) {
	w.p.mu.Lock()
	defer w.p.mu.Unlock()
	return w.p.other.Write(b)
}

func (p *Program) add(line []byte) {
	if len(line) == 0 {
		return
	}
	r := Record{Raw: line}
	err := json.Unmarshal(line, &r)
	p.mu.Lock()
	defer p.mu.Unlock()
	if err != nil {
		p.other.Write(append(line, '\n'))
		return
	}
	p.records = append(p.records, r)
	close(p.changed)
	p.changed = make(chan struct{})
}

// Records are all that was logged so far.
func (p *Program) Records() []Record {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.records[:len(p.records):len(p.records)]
}

// Await waits for a record with a message, and with parts of text in its line, among those that were logged after the one
// that it gave last.
func (p *Program) Await(message string, parts ...string) Record {
	p.tb.Helper()
	for {
		p.mu.Lock()
		records, changed := p.records, p.changed
		p.mu.Unlock()
		for p.seen < len(records) {
			p.seen++
			if r := records[p.seen-1]; r.Message == message && contains(r.Raw, parts) {
				return r
			}
		}
		select {
		case <-changed:
		case <-p.exited:
			p.tb.Fatalf("%s ended: %s", p.name, p.cmd.ProcessState)
		case <-time.After(Patience):
			p.tb.Fatalf("%s does not log %q %q", p.name, message, parts)
		}
	}
}

// contains tells whether all parts stand in a line.
func contains(line []byte, parts []string) bool {
	for _, part := range parts {
		if !bytes.Contains(line, []byte(part)) {
			return false
		}
	}
	return true
}

// Until asks again and again whether something that nobody tells of is so, and waits until it is.
func (p *Program) Until(what string, so func() bool) {
	p.tb.Helper()
	poll, patience := time.NewTicker(pollEvery), time.After(Patience)
	defer poll.Stop()
	for !so() {
		select {
		case <-poll.C:
		case <-p.exited:
			p.tb.Fatalf("%s ended: %s; waiting for: %s", p.name, p.cmd.ProcessState, what)
		case <-patience:
			p.tb.Fatalf("%s: it never came true: %s", p.name, what)
		}
	}
}

// Interrupt asks the program to end, which has to do so with code 0.
func (p *Program) Interrupt() {
	p.tb.Helper()
	if err := p.cmd.Process.Signal(os.Interrupt); err != nil {
		p.tb.Fatalf("interrupt %s: %v", p.name, err)
	}
	select {
	case <-p.exited:
		if code := p.cmd.ProcessState.ExitCode(); code != 0 {
			p.tb.Fatalf("%s ended with code %d", p.name, code)
		}
	case <-time.After(Patience):
		p.tb.Fatalf("%s does not end", p.name)
	}
}

// stop ends what still runs and shows what went wrong.
func (p *Program) stop() {
	select {
	case <-p.exited:
	default:
		_ = killGroup(p.cmd)
		<-p.exited
	}
	if !p.tb.Failed() {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	const shown = 200
	records := p.records[max(0, len(p.records)-shown):]
	for _, r := range records {
		p.tb.Logf("%s: %.600s", p.name, r.Raw)
	}
	p.tb.Logf("%s: %s", p.name, p.other.String())
}
