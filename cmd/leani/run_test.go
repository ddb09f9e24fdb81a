package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/leani-go/leani/chain"
	"github.com/leani-go/leani/internal/progress"
)

// harness is a process under test: its output in buffers, its signals from a channel, its
// store a fake.
type harness struct {
	process
	out, err bytes.Buffer
	signal   chan os.Signal
	exited   chan int
	node     fakeNode
}

func newHarness(t *testing.T) *harness {
	t.Helper()
	h := &harness{signal: make(chan os.Signal, 2), exited: make(chan int, 1)}
	h.process = process{
		stdin: strings.NewReader(""), stdout: &h.out, stderr: &h.err,
		getenv: func(string) string { return "" }, now: time.Now,
		signals: func() (<-chan os.Signal, func()) { return h.signal, func() {} },
		exit:    func(code int) { h.exited <- code },
		backend: &h.node,
	}
	return h
}

// settings writes valid settings and gives the arguments that name them.
func (h *harness) settings(t *testing.T) []string {
	t.Helper()
	args := []string{"--config", filepath.Join(t.TempDir(), "leani.toml")}
	if code := h.run(append(args, "init")); code != exitOK {
		t.Fatalf("init: code %d, %s", code, h.err.String())
	}
	h.out.Reset()
	return args
}

// fakeNode is a backend and node whose methods do what a test sets.
type fakeNode struct {
	onFill   func(ctx context.Context, blocks chain.Range, observe func(progress.Count)) error
	onServe  func(ctx context.Context, ready func(string)) error
	failures []sourceFailure
	report   statusReport
	source   sourcesReport
	verified verifyReport
	segment  segmentReport
	opened   []nodeOptions
	closed   int
}

func (f *fakeNode) open(_ context.Context, o nodeOptions) (node, error) {
	f.opened = append(f.opened, o)
	return f, nil
}

func (f *fakeNode) fill(ctx context.Context, blocks chain.Range, observe func(progress.Count)) error {
	return f.onFill(ctx, blocks, observe)
}

func (f *fakeNode) sourceFailures() []sourceFailure { return f.failures }

func (f *fakeNode) keptPartial() uint64 { return 0 }

func (f *fakeNode) missing(blocks chain.Range) uint64 { return blocks.Len() }

func (f *fakeNode) sources(context.Context, nodeOptions) (sourcesReport, error) {
	return f.source, nil
}

func (f *fakeNode) serve(ctx context.Context, ready func(string)) error { return f.onServe(ctx, ready) }

func (f *fakeNode) prune(context.Context, pruneRequest) (pruneReport, error) {
	return pruneReport{}, errors.New("not part of this test")
}

func (f *fakeNode) createArchive(context.Context, archiveRequest, func(progress.Count)) (archiveReport, error) {
	return archiveReport{}, errors.New("not part of this test")
}

func (f *fakeNode) verifyArchive(context.Context, string, func(uint64) func(progress.Count)) (archiveVerifyReport, error) {
	return archiveVerifyReport{}, errors.New("not part of this test")
}

func (f *fakeNode) backup(context.Context, string, backupRequest) (backupReport, error) {
	return backupReport{}, errors.New("not part of this test")
}
func (f *fakeNode) compact(context.Context, func(string)) (compactReport, error) {
	return compactReport{}, errors.New("not part of this test")
}
func (f *fakeNode) restore(context.Context, nodeOptions, string, bool) (restoreReport, error) {
	return restoreReport{}, errors.New("not part of this test")
}
func (f *fakeNode) export(context.Context, exportRequest, func(progress.Count)) (exportReport, error) {
	return exportReport{}, errors.New("not part of this test")
}
func (f *fakeNode) prove(context.Context, chain.Range, func(progress.Count)) (provedReport, error) {
	return provedReport{}, errors.New("not part of this test")
}
func (f *fakeNode) status(context.Context) (statusReport, error) { return f.report, nil }

func (f *fakeNode) verify(context.Context, func(progress.Count)) (verifyReport, error) {
	return f.verified, nil
}

func (f *fakeNode) inspect(_ context.Context, out io.Writer) error {
	_, err := io.WriteString(out, "inspected\n")
	return err
}

func (f *fakeNode) keys(_ context.Context, out io.Writer) error {
	_, err := io.WriteString(out, "meta version\n")
	return err
}

func (f *fakeNode) close() error { f.closed++; return nil }

func (f *fakeNode) dumpSegment(_ context.Context, path string, out io.Writer) error {
	_, err := io.WriteString(out, "dump of "+path+"\n")
	return err
}

func (f *fakeNode) checkSegment(context.Context, string) (segmentReport, error) {
	return f.segment, nil
}

// CLI-023: one signal ends serve cleanly, with code 0 and the node closed after it.
func TestServeStopsOnSignal(t *testing.T) {
	h := newHarness(t)
	args := h.settings(t)
	h.node.onServe = func(ctx context.Context, ready func(string)) error {
		ready("http://127.0.0.1:8545")
		h.signal <- os.Interrupt
		<-ctx.Done()
		if h.node.closed != 0 {
			t.Error("closed before serve returned")
		}
		return nil
	}
	if code := h.run(append(args, "serve")); code != exitOK || h.node.closed != 1 {
		t.Errorf("code %d, closed %d times: %s", code, h.node.closed, h.err.String())
	}
	for _, want := range []string{"http://127.0.0.1:8545", "api.bind"} {
		if !strings.Contains(h.err.String(), want) {
			t.Errorf("the log does not name %s:\n%s", want, h.err.String())
		}
	}
}

// CLI-008: a second signal cuts a running shutdown short with code 130, for any command.
func TestSecondSignal(t *testing.T) {
	h := newHarness(t)
	args := h.settings(t)
	h.node.onFill = func(ctx context.Context, _ chain.Range, _ func(progress.Count)) error {
		h.signal <- os.Interrupt
		<-ctx.Done()
		h.signal <- os.Interrupt
		if code := <-h.exited; code != exitInterrupted {
			t.Errorf("exit code %d", code)
		}
		return ctx.Err() // a real process is gone by now
	}
	h.run(append(args, "history", "fill", "--from", "0", "--to", "9"))
}

// An interrupted fill says how far it came and how to go on, and fails.
func TestInterruptedFill(t *testing.T) {
	h := newHarness(t)
	args := h.settings(t)
	h.node.onFill = func(ctx context.Context, blocks chain.Range, observe func(progress.Count)) error {
		if blocks != (chain.Range{From: 5, To: 10}) {
			t.Errorf("got range %v", blocks)
		}
		observe(progress.Count{Blocks: 3, Bytes: 10})
		h.signal <- os.Interrupt
		<-ctx.Done()
		return ctx.Err()
	}
	code := h.run(append(args, "history", "fill", "--from-block", "5", "--to-block", "9", "--json"))
	if !strings.HasPrefix(h.out.String(), `{"event":"interrupted","blocks":3,`) {
		t.Errorf("got %s", h.out.String())
	}
	if code != exitFailure || !strings.HasPrefix(h.err.String(), "error: interrupted after 3 blocks") || !strings.Contains(h.err.String(), "run the command again") {
		t.Errorf("code %d: %s", code, h.err.String())
	}
}

// CLI-001, CLI-003: success has code 0 and its result on standard output; a failure has code 1
// and a line with error, and the node is closed in both cases.
func TestFill(t *testing.T) {
	for _, c := range []struct {
		name     string
		err      error
		json     bool
		code     int
		out, log string
	}{
		{"done", nil, false, exitOK, "Blocks 0 to 9 are stored: 10 blocks, 1.0 MiB", ""},
		{"done, JSON", nil, true, exitOK, `{"event":"done","blocks":10,"bytes":1048576,"totalBlocks":10,`, ""},
		{"failed, JSON", errors.New("bad root"), true, exitFailure, `{"event":"error","reason":"bad root","blocks":10,`, "error: bad root\n"},
		{"failed", errors.New("read era file x: block 4: bad root"), false, exitFailure, "", "error: read era file x: block 4: bad root\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := newHarness(t)
			args := append(h.settings(t), "history", "fill", "--from-block", "0", "--to-block", "9")
			if c.json {
				args = append(args, "--json")
			}
			h.node.onFill = func(_ context.Context, _ chain.Range, observe func(progress.Count)) error {
				observe(progress.Count{Blocks: 10, Bytes: 1 << 20})
				return c.err
			}
			code := h.run(args)
			if code != c.code || !strings.Contains(h.out.String(), c.out) || !strings.HasSuffix(h.err.String(), c.log) || h.node.closed != 1 {
				t.Errorf("code %d, closed %d times\nout %s\nerr %s", code, h.node.closed, h.out.String(), h.err.String())
			}
		})
	}
}

// The commands that look open the node read-only and print what it says.
func TestLookingCommands(t *testing.T) {
	for _, c := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"history", "status"}, exitOK, "blocks        0 to 9\nblocks        20 to 29\nin all        20 blocks"},
		{[]string{"history", "status", "--json"}, exitOK, `"fromBlock": 20`},
		{[]string{"db", "inspect"}, exitOK, "inspected\n"},
		{[]string{"db", "keys"}, exitOK, "meta version\n"},
		{[]string{"db", "verify"}, exitFailure, "data/7: bad root\n20 blocks in 3 files, 2.0 KiB: 1 problem\n"},
		{[]string{"db", "verify", "--json"}, exitFailure, `"data/7: bad root"`},
		{[]string{"segment", "dump", "f.seg"}, exitOK, "dump of f.seg\n"},
		{[]string{"segment", "check", "f.seg"}, exitOK, "f.seg: data, blocks 0 to 9, 12 pages, 4.0 KiB: 0 problems\n"},
		{[]string{"segment", "check", "f.seg", "--json"}, exitOK, `"problems": []`},
	} {
		h := newHarness(t)
		h.node.report = statusReport{ChainID: 1, Head: &blockName{29, "0xab"}, Coverage: []blockSpan{{0, 9}, {20, 29}}, Blocks: 20}
		h.node.verified = verifyReport{Blocks: 20, Files: 3, Bytes: 2048, Problems: []string{"data/7: bad root"}}
		h.node.segment = segmentReport{Kind: "data", Blocks: blockSpan{0, 9}, Bytes: 4096, Pages: 12}
		code := h.run(append(h.settings(t), c.args...))
		if code != c.code || !strings.Contains(h.out.String(), c.want) {
			t.Errorf("%v: code %d\nout %s\nerr %s", c.args, code, h.out.String(), h.err.String())
		}
		for _, o := range h.node.opened {
			if !o.readOnly {
				t.Errorf("%v: not opened read-only", c.args)
			}
		}
		if h.node.closed != len(h.node.opened) {
			t.Errorf("%v: opened %d times, closed %d times", c.args, len(h.node.opened), h.node.closed)
		}
	}
}

// An empty store is no failure.
func TestStatusOfAnEmptyStore(t *testing.T) {
	h := newHarness(t)
	h.node.report = statusReport{ChainID: 1}
	if code := h.run(append(h.settings(t), "history", "status")); code != exitOK || h.out.String() != "chain id 1: no blocks yet\n" {
		t.Errorf("code %d: %s%s", code, h.out.String(), h.err.String())
	}
	h.out.Reset()
	if code := h.run(append(h.settings(t), "history", "status", "--json")); code != exitOK || !strings.Contains(h.out.String(), `"coverage": []`) {
		t.Errorf("code %d: %s%s", code, h.out.String(), h.err.String())
	}
}
