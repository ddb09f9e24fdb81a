package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"
)

// test runs `go test` with the given arguments. It prints the output of what failed, a line for each
// package, and in the end the slowest packages and every test that was skipped, with its reason: a
// test that never runs proves nothing.
func test(ctx context.Context, args []string) error {
	cmd := command(ctx, "go", append([]string{"test", "-json"}, args...)...)
	cmd.Stdout = nil
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	start := time.Now()
	if err := cmd.Start(); err != nil {
		return err
	}
	r := newTestReport(os.Stdout)
	readErr := r.read(out)
	err = cmd.Wait()
	r.summary(time.Since(start))
	return errors.Join(err, readErr)
}

// testEvent is a line of `go test -json`; `go doc test2json` has the meaning.
type testEvent struct {
	Action, Package, Test, Output string
	Elapsed                       float64 // seconds
}

// testReport follows a test run.
type testReport struct {
	w       io.Writer
	outputs map[string]*strings.Builder // by package and test, of those still running
	packs   []timedPackage
	skipped []string // lines about skipped tests
	bySkip  map[string]int
	tests   int // that ran to an end
	failed  int
}

// timedPackage is a package that has ended.
type timedPackage struct {
	name    string
	seconds float64
	cached  bool
}

func newTestReport(w io.Writer) *testReport {
	return &testReport{w: w, outputs: make(map[string]*strings.Builder), bySkip: make(map[string]int)}
}

// read takes events until the end. Lines that are no events are printed.
func (r *testReport) read(events io.Reader) error {
	lines := bufio.NewReader(events)
	for {
		line, err := lines.ReadString('\n')
		var e testEvent
		switch {
		case line == "":
		case json.Unmarshal([]byte(line), &e) != nil:
			fmt.Fprint(r.w, line)
		default:
			r.event(&e)
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read events of go test: %w", err)
		}
	}
}

func (r *testReport) event(e *testEvent) {
	key := e.Package + " " + e.Test
	switch e.Action {
	case "output":
		o := r.outputs[key]
		if o == nil {
			o = new(strings.Builder)
			r.outputs[key] = o
		}
		o.WriteString(e.Output)
	case "build-output":
		fmt.Fprint(r.w, e.Output)
	case "pass", "fail", "skip":
		text := ""
		if o := r.outputs[key]; o != nil {
			text = o.String()
			delete(r.outputs, key)
		}
		if e.Test == "" {
			r.ended(e, text)
			return
		}
		r.tests++
		switch e.Action {
		case "fail":
			r.failed++
			fmt.Fprint(r.w, text)
		case "skip":
			r.bySkip[e.Package]++
			r.skipped = append(r.skipped, fmt.Sprintf("%s %s: %s", e.Package, e.Test, skipReason(text)))
		}
	}
}

// ended prints the line of a package, or all of its output when it failed.
func (r *testReport) ended(e *testEvent, text string) {
	if e.Action == "fail" {
		// What a test wrote that never ended, as after a panic, says why.
		for key, o := range r.outputs {
			if strings.HasPrefix(key, e.Package+" ") {
				fmt.Fprint(r.w, o.String())
				delete(r.outputs, key)
			}
		}
		fmt.Fprint(r.w, text)
		if text == "" {
			fmt.Fprintf(r.w, "FAIL\t%s\n", e.Package)
		}
	} else {
		lines := strings.Split(strings.TrimSpace(text), "\n")
		line := lines[len(lines)-1]
		if n := r.bySkip[e.Package]; n > 0 {
			line += fmt.Sprintf("\t%d skipped", n)
		}
		fmt.Fprintln(r.w, line)
	}
	r.packs = append(r.packs, timedPackage{e.Package, e.Elapsed, strings.Contains(text, "(cached)")})
}

// skipReason is the text a test gave to Skip: what its output has besides the lines of the framework.
func skipReason(output string) string {
	var reasons []string
	for line := range strings.Lines(output) {
		line = strings.TrimSpace(line)
		if line != "" && !strings.HasPrefix(line, "===") && !strings.HasPrefix(line, "--- ") {
			reasons = append(reasons, line)
		}
	}
	return strings.Join(reasons, " ")
}

const slowestShown = 10

// summary ends the report.
func (r *testReport) summary(took time.Duration) {
	slices.SortStableFunc(r.packs, func(a, b timedPackage) int {
		if a.seconds > b.seconds {
			return -1
		}
		return 1
	})
	fmt.Fprintf(r.w, "\nslowest packages:\n")
	for _, p := range r.packs[:min(len(r.packs), slowestShown)] {
		note := ""
		if p.cached {
			note = " (cached)"
		}
		fmt.Fprintf(r.w, "%8.1fs  %s%s\n", p.seconds, p.name, note)
	}
	fmt.Fprintf(r.w, "skipped tests: %d\n", len(r.skipped))
	for _, line := range r.skipped {
		fmt.Fprintf(r.w, "  %s\n", line)
	}
	fmt.Fprintf(r.w, "%d tests of %d packages in %s, %d failed, %d skipped\n\n", r.tests, len(r.packs), took.Round(100*time.Millisecond), r.failed, len(r.skipped))
}
