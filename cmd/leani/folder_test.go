package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/leani-go/leani/chain"
	"github.com/leani-go/leani/internal/shareddata"
)

// The name of the chain picks files by the start of their names, and nothing else in a name counts: what
// a file holds follows from its index.
func TestNamesOfEraFiles(t *testing.T) {
	skipWithRace(t)
	t.Parallel()
	all := chain.Range{From: 0, To: 55}
	c := conformance(t, "blocks0-54-", "blocks0-54--unknown-00000-d226371d-noproofs.ere", all)
	folder := shareddata.Path(t, "era", "rpc-compat-chain")
	l := newLab(t, c)
	l.must(fillArgs(all)...)
	want := l.verify().Digest

	t.Run("prefix", func(t *testing.T) {
		for _, name := range readDir(t, folder) {
			if name != filepath.Base(c.files[0]) {
				l.link(filepath.Join(folder, name), name)
			}
		}
		l.catalog()
		for _, step := range []struct{ name, message string }{
			{"unknown", `none of its 4 files is a readable file of chain "unknown"; their names must begin with "unknown-"`},
			{"blocks0-54", ""}, // blocks0-54- is the beginning of blocks0-54--unknown
			{"blocks0-54--unknown", ""},
			{"blocks0-54-", ""},
			{"blocks0-35-", "both hold [0, 36)"}, // the same blocks as era1 and as ere
			{"blocks36-54-", "no file holds blocks 0 to 35"},
		} {
			l := l.again()
			l.set("chain", "name", fmt.Sprintf("%q", step.name))
			if step.message != "" {
				if message := l.fails(fillArgs(all)...); !strings.Contains(message, step.message) {
					t.Errorf("chain %q: %s", step.name, message)
				}
				continue
			}
			l.must(fillArgs(all)...)
			if got := l.verify().Digest; got != want {
				t.Errorf("chain %q: digest %s, want %s", step.name, got, want)
			}
		}
	})

	t.Run("odd", func(t *testing.T) {
		l := newLab(t, testChain{name: c.name, id: c.id, genesis: c.genesis})
		l.link(c.files[0], "blocks0-54--été (1).bin")
		l.catalog()
		message := l.fails(fillArgs(all)...) // a name with a space does not fit into a row of the catalog
		if !strings.Contains(message, "checksums_sha256.txt: line 1: 3 fields, want a digest and a file name") {
			t.Error(message)
		}
		if err := os.Remove(filepath.Join(l.era(), "blocks0-54--été (1).bin")); err != nil {
			t.Fatal(err)
		}
		l.link(c.files[0], "blocks0-54--été-99999-mainnet.era1")
		l.catalog()
		l.must(fillArgs(all)...)
		if got := l.verify().Digest; got != want {
			t.Errorf("digest %s, want %s", got, want)
		}
	})

	t.Run("two files", func(t *testing.T) { // era1 below the merge, EraE above it
		l := newLab(t, testChain{name: "lab", id: c.id, genesis: c.genesis})
		l.link(filepath.Join(folder, "blocks0-35--unknown-00000-7c27d1f9.era1"), "lab-b")
		l.link(filepath.Join(folder, "blocks36-54--unknown-00000-d226371d-noproofs.ere"), "lab-a")
		l.catalog()
		l.must(fillArgs(all)...)
		if got := l.verify().Digest; got != want {
			t.Errorf("digest %s, want %s", got, want)
		}
	})
}

// again is the lab with an empty store.
func (l *lab) again() *lab {
	l.tb.Helper()
	out := &lab{tb: l.tb, dir: l.dir, config: filepath.Join(l.tb.TempDir(), "leani.toml")}
	writeFile(l.tb, out.config, readFile(l.tb, l.config))
	out.set("", "data_dir", fmt.Sprintf("%q", l.tb.TempDir()))
	out.set("sources.history", "endpoint", fmt.Sprintf("%q", "file://"+l.era()+"/"))
	return out
}

// A store filled piece by piece, from the inside of files and in any order, is the same as one filled at
// once; what is there already is not read again.
func TestPartialFills(t *testing.T) {
	skipWithRace(t)
	t.Parallel()
	all := chain.Range{From: 0, To: 55}
	c := conformance(t, "blocks0-54-", "blocks0-54--unknown-00000-d226371d-noproofs.ere", all)
	source := readSource(t, c.files[0])
	want := filled(t, c).verify().Digest
	l := newLab(t, c)
	for _, r := range []chain.Range{{From: 40, To: 41}, {From: 3, To: 11}, {From: 7, To: 20}, {From: 20, To: 20 + 1}, {From: 54, To: 55}} {
		l.must(fillArgs(r)...)
		l.checkBlocks(source, r, 1)
	}
	if got := l.status().Coverage; len(got) != 3 || got[0] != (blockSpan{3, 20}) || got[1] != (blockSpan{40, 40}) || got[2] != (blockSpan{54, 54}) {
		t.Errorf("coverage %v", got)
	}
	l.verify()
	if out := l.must(fillArgs(all)...); !strings.Contains(out, "Blocks 0 to 54 are stored: 35 blocks") {
		t.Error(out)
	}
	l.checkBlocks(source, all, 1)
	if r := l.verify(); r.Digest != want {
		t.Errorf("digest %s, want %s", r.Digest, want)
	}
	if out := l.must(fillArgs(all)...); !strings.Contains(out, "Blocks 0 to 54 are stored already") {
		t.Error(out)
	}
	l.clean()
}

// A file without receipts cannot give complete history. The error names the file and says so, and the
// store stays empty.
func TestFileWithoutReceipts(t *testing.T) {
	t.Parallel()
	path := shareddata.Path(t, "era", "sepolia", "sepolia-00000-deadbeef-noreceipts.ere")
	l := newLab(t, testChain{name: "sepolia", id: 11155111, files: []string{path}})
	message := l.fails("history", "fill", "--from-block", "0", "--to-block", "0")
	if !strings.Contains(message, filepath.Base(path)+": block 0: ") || !strings.Contains(message, "the file holds no receipts") {
		t.Error(message)
	}
	if s := l.status(); s.Head != nil || s.Blocks != 0 {
		t.Errorf("the store holds %+v", s)
	}
	l.clean()
}
