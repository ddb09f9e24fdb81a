package main

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

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
	if err := n.makeWay(t.Context(), chain.Range{From: c.blocks.From, To: c.blocks.To + 1}); err != nil {
		t.Fatal(err)
	}
	if err := n.fill(t.Context(), c.blocks, func(progress.Count) {}); err != nil {
		t.Fatal(err)
	}
	ask("filled", 0)
}
