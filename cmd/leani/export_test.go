package main

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"

	"github.com/leani-go/leani/chain"
	"github.com/leani-go/leani/internal/shareddata"
)

// Stored history comes out of the store as the era files that go-ethereum wrote of the same blocks, byte for byte:
// before, across and after the merge.
func TestExportEqualsGeth(t *testing.T) {
	skipWithRace(t)
	t.Parallel()
	all := chain.Range{From: 0, To: 55}
	folder := shareddata.Path(t, "era", "rpc-compat-chain")
	c := conformance(t, "unknown", "blocks0-54--unknown-00000-d226371d-noproofs.ere", all)
	l := newLab(t, testChain{name: c.name, id: c.id, genesis: c.genesis})
	l.link(filepath.Join(folder, "blocks0-54--unknown-00000-d226371d-noproofs.ere"), "unknown-00000-d226371d-noproofs.ere")
	l.catalog()
	l.must(fillArgs(all)...)
	export := func(name, from, to string, more ...string) []byte {
		t.Helper()
		out := filepath.Join(l.dir, name)
		l.must(append([]string{"history", "export", "--from-block", from, "--to-block", to, "--out", out}, more...)...)
		for _, n := range readDir(t, out) {
			if strings.HasSuffix(n, ".ere") {
				return readFile(t, filepath.Join(out, n))
			}
		}
		t.Fatalf("no file in %s", out)
		return nil
	}
	for name, span := range map[string][2]string{
		"blocks0-54--unknown-00000-d226371d-noproofs.ere":  {"0", "54"},
		"blocks0-35--unknown-00000-953f35de-noproofs.ere":  {"0", "35"},
		"blocks36-54--unknown-00000-d226371d-noproofs.ere": {"36", "54"},
	} {
		if got, want := export("out-"+span[0]+"-"+span[1], span[0], span[1]), readFile(t, filepath.Join(folder, name)); !bytes.Equal(got, want) {
			t.Errorf("%s: %d bytes, want %d", name, len(got), len(want))
		}
	}
	// Total difficulties follow from the headers before, or are given.
	want := export("part", "20", "30")
	l.must("history", "prune", "--before-block", "10")
	if message := l.fails("history", "export", "--from-block", "20", "--to-block", "30", "--out", filepath.Join(l.dir, "none")); !strings.Contains(message, "without blocks 0 to 19: give --parent-difficulty") {
		t.Errorf("got %s", message)
	}
	if got := export("wrong", "20", "30", "--parent-difficulty", "1"); len(got) != len(want) || bytes.Equal(got, want) {
		t.Error("the total difficulty that is given does not count")
	}
	l.must("history", "export", "--from-block", "40", "--to-block", "54", "--out", filepath.Join(l.dir, "after")) // needs none
}
