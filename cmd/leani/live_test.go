package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/leani-go/leani/chain"
	"github.com/leani-go/leani/internal/progress"
)

// live makes the node follow a script of these lines.
func (l *lab) live(lines ...string) {
	l.tb.Helper()
	path := filepath.Join(l.dir, "events.jsonl")
	writeFile(l.tb, path, []byte(strings.Join(lines, "\n")))
	const none = "[sources.live]\nkind = \"disabled\"\n"
	text := string(readFile(l.tb, l.config))
	if !strings.Contains(text, none) {
		l.tb.Fatal("the settings have no live source to replace")
	}
	writeFile(l.tb, l.config, []byte(strings.Replace(text, none, "[sources.live]\nkind = \"scripted\"\npath = \"events.jsonl\"\n", 1)))
}

// livePipe makes the node follow a named pipe, and gives its path.
func (l *lab) livePipe() string {
	l.tb.Helper()
	l.live()
	path := filepath.Join(l.dir, "events.jsonl")
	if err := errors.Join(os.Remove(path), syscall.Mkfifo(path, 0o600)); err != nil {
		l.tb.Fatal(err)
	}
	return path
}

// teller writes lines to the pipe of a node that runs; it stays open until the test ends.
func teller(t *testing.T, path string) func(format string, args ...any) {
	t.Helper()
	events, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = events.Close() })
	return func(format string, args ...any) {
		t.Helper()
		if _, err := fmt.Fprintf(events, format+"\n", args...); err != nil {
			t.Fatal(err)
		}
	}
}

// TestLiveAnswers answers the queries of the lab chain as go-ethereum does, while its newest 256 blocks come from a
// live source and stay recent, then when a part of them is sealed, and after the fill of blocks beyond them.
//
// SRC-041 STO-012 INV-07
func TestLiveAnswers(t *testing.T) {
	skipSlow(t)
	t.Parallel()
	c := chainlab(t)
	l := newLab(t, c)
	border := c.blocks.To - 256
	l.live(fmt.Sprintf(`{"apply": {"era": %q, "fromBlock": %d, "toBlock": %d}}`, c.files[0], border-3, c.blocks.To-1),
		fmt.Sprintf(`{"finalized": {"number": %d}}`, c.blocks.To-100))
	n := l.open(false)
	if err := n.fill(t.Context(), chain.Range{From: c.blocks.From, To: border}, func(progress.Count) {}); err != nil {
		t.Fatal(err)
	}
	commits := 0
	if err := n.follow(t.Context(), func() { commits++ }); err != nil {
		t.Fatal(err)
	}
	if commits != 257 {
		t.Errorf("%d commits", commits)
	}
	queries := chainlabQueries(t)
	ask := func(what string, recent int) {
		t.Helper()
		asker, stop := serveWithin(t, n)
		checkAnswers(t, asker.url, queries, 4, 1)
		stop()
		snap := n.engine.Acquire()
		defer snap.Release()
		if got := len(snap.Hot()); got != recent {
			t.Errorf("%s: %d recent blocks want %d", what, got, recent)
		}
		if r := verifyNode(t, n); len(r.Problems) > 0 || r.Blocks != c.blocks.Len() {
			t.Errorf("%s: %d blocks, problems %q", what, r.Blocks, r.Problems)
		}
	}
	ask("recent", 256)
	if _, err := n.history.SealFinal(t.Context()); err != nil {
		t.Fatal(err)
	}
	ask("sealed in part", 99)
	// No source has the block above: nothing may go that would not come back.
	for _, r := range []chain.Range{{From: c.blocks.To, To: c.blocks.To + 1}, {From: c.blocks.From, To: c.blocks.To + 1}} {
		if err := n.fill(t.Context(), r, func(progress.Count) {}); err == nil {
			t.Errorf("a fill of %v, which no source has, succeeds", r)
		}
	}
	ask("kept", 99)
	// As before the first block that a source gives.
	if err := n.dropRecent(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := n.fill(t.Context(), c.blocks, func(progress.Count) {}); err != nil {
		t.Fatal(err)
	}
	ask("filled", 0)
}

// TestLiveKilled follows a script in a process that is killed: what was answered is there after the kill, the script is
// read again without harm, and goes on to its end.
//
// INV-30 STO-002
func TestLiveKilled(t *testing.T) {
	skipSlow(t)
	t.Parallel()
	c := chainlab(t)
	l := newLab(t, c)
	l.live(fmt.Sprintf(`{"apply": {"era": %q, "fromBlock": 0, "toBlock": 150}}`, c.files[0]), `{"undo": {"number": 140}}`,
		`{"finalized": {"number": 138}}`, fmt.Sprintf(`{"apply": {"era": %q, "fromBlock": 141, "toBlock": 300}}`, c.files[0]))
	until := func(s *server, least uint64) (head uint64) {
		t.Helper()
		asker := newClient(s.url)
		for start := time.Now(); head < least; {
			r, err := asker.call("eth_blockNumber", "[]")
			if err != nil || time.Since(start) > patience {
				t.Fatalf("head %d want %d: %v\n%s", head, least, err, s.log.String())
			}
			if r.Error == nil {
				if _, err := fmt.Sscanf(string(r.Result), `"0x%x"`, &head); err != nil {
					t.Fatal(err)
				}
			}
		}
		return head
	}
	for _, least := range []uint64{20, 145, 170} {
		s := l.serve()
		head := until(s, least)
		if err := s.kill(); err != nil {
			t.Fatal(err)
		}
		if got := l.verify(); len(got.Problems) > 0 {
			t.Fatalf("after a kill: %q", got.Problems)
		}
		// The undo may have come between answer and kill.
		if got := l.status().Head; got == nil || got.Number < min(head, 140) {
			t.Fatalf("head was %d, is %v", head, got)
		}
	}
	s := l.serve()
	until(s, 300)
	l.stopped(s)
	if got := l.status(); got.Blocks != 301 {
		t.Errorf("%d blocks", got.Blocks)
	}
}
