package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/zeebo/blake3"

	"github.com/leani-go/leani/chain"
	"github.com/leani-go/leani/config"
	"github.com/leani-go/leani/ingest/archive"
	"github.com/leani-go/leani/internal/progress"
	"github.com/leani-go/leani/internal/shareddata"
)

// useArchives gives the node archives as its only history sources, the first one first.
func (l *lab) useArchives(manifests ...string) {
	l.tb.Helper()
	text := string(readFile(l.tb, l.config))
	before, rest, found := strings.Cut(text, "[[sources.history]]\n")
	_, after, found2 := strings.Cut(rest, "[sources.live]\n")
	if !found || !found2 {
		l.tb.Fatal("the settings have no sources")
	}
	for i, path := range manifests {
		before += fmt.Sprintf("[[sources.history]]\nid = \"archive-%d\"\nkind = \"archive\"\npriority = %d\ntrust = \"trusted_dataset\"\nmanifest = %q\n\n", i, i, path)
	}
	writeFile(l.tb, l.config, []byte(before+"[sources.live]\n"+after))
}

// createArgs are those of archive create for a range.
func createArgs(r chain.Range, out string, more ...string) []string {
	return append([]string{"archive", "create", "--from-block", fmt.Sprint(r.From), "--to-block", fmt.Sprint(r.To - 1), "--out", out}, more...)
}

// TestArchiveRoundTrip: what goes into an archive comes out of it. A store that is filled from an archive of
// another store holds the same history, byte for byte, and writes the same archive.
func TestArchiveRoundTrip(t *testing.T) {
	t.Parallel()
	type chainOfTest struct {
		testChain
		objectBlocks string
	}
	var chains []chainOfTest
	for i, s := range bundledSpans {
		c := bundled(t)
		c.files, c.blocks = c.files[i:i+1], s
		chains = append(chains, chainOfTest{c, []string{"1", "2", "1000"}[i]})
	}
	if !testing.Short() && !raceEnabled {
		if _, err := os.Stat(filepath.Join(shareddata.Root(t), "..", "shared", "data")); err == nil {
			// Ommers, receipts with state roots, transactions of all types and forks up to BPO2.
			chains = append(chains, chainOfTest{conformance(t, "blocks0-54-", "blocks0-54--unknown-00000-d226371d-noproofs.ere", chain.Range{From: 0, To: 55}), "7"})
			mainnet := testChain{name: "mainnet", id: 1, blocks: chain.Range{From: 0, To: 2000}}
			mainnet.files = []string{shareddata.Path(t, "era", "mainnet", "mainnet-00000-a6860fef-noproofs.ere")}
			chains = append(chains, chainOfTest{mainnet, "1000"})
		}
	}
	for _, c := range chains {
		t.Run(fmt.Sprintf("%s/%d", c.name, c.blocks.From), func(t *testing.T) {
			first := newLab(t, c.testChain)
			first.must(fillArgs(c.blocks)...)
			out := filepath.Join(t.TempDir(), "archive")
			first.must(createArgs(c.blocks, out, "--object-blocks", c.objectBlocks)...)
			manifest := filepath.Join(out, "manifest.json")
			var found archiveVerifyReport
			parseJSON(t, first.must("archive", "verify", manifest, "--json"), &found)
			if found.Proved != c.blocks.Len() || found.Frames != c.blocks.Len() || len(found.Problems) != 0 {
				t.Errorf("%+v", found)
			}

			bare := c.testChain
			bare.files = nil
			second := newLab(t, bare)
			second.useArchives(manifest)
			second.must(fillArgs(c.blocks)...)
			if got, want := second.verify(), first.verify(); got.Digest != want.Digest || got.Blocks != want.Blocks {
				t.Errorf("digest %s of %d blocks, want %s of %d", got.Digest, got.Blocks, want.Digest, want.Blocks)
			}
			second.checkBlocks(readSource(t, c.files[0]), c.blocks, 64)
			again := filepath.Join(t.TempDir(), "archive")
			second.must(createArgs(c.blocks, again, "--object-blocks", c.objectBlocks)...)
			for _, name := range readDir(t, out) {
				if !bytes.Equal(readFile(t, filepath.Join(out, name)), readFile(t, filepath.Join(again, name))) {
					t.Errorf("%s differs", name)
				}
			}
			second.clean()
		})
	}
}

// A manifest is named relative to the settings file, wherever the process runs: ARC-002. ARC-003: without a manifest, or with one
// for another kind of source, the settings are refused.
func TestArchiveSettings(t *testing.T) {
	t.Parallel()
	c := bundled(t)
	c.files, c.blocks = c.files[:1], bundledSpans[0]
	l := newLab(t, c)
	l.must(fillArgs(c.blocks)...)
	l.must(createArgs(c.blocks, filepath.Join(l.dir, "frames"))...)
	if err := os.Rename(l.data(), l.data()+"-1"); err != nil {
		t.Fatal(err)
	}
	settings := readFile(t, l.config)
	l.useArchives("frames/manifest.json")
	if got := l.settings().Sources.History[0].Manifest; got != filepath.Join(l.dir, "frames", "manifest.json") {
		t.Error(got)
	}
	cmd := l.command(fillArgs(c.blocks)...)
	cmd.Dir = t.TempDir()
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if got := l.status().Blocks; got != c.blocks.Len() {
		t.Errorf("%d blocks", got)
	}
	text := readFile(t, l.config)
	for name, changed := range map[string][]byte{
		"no manifest":            bytes.Replace(text, []byte("manifest = \"frames/manifest.json\"\n"), nil, 1),
		"manifest of era source": bytes.Replace(settings, []byte("kind = \"era_e\"\n"), []byte("kind = \"era_e\"\nmanifest = \"m.json\"\n"), 1),
	} {
		writeFile(t, l.config, changed)
		if _, err := config.Load(l.config); err == nil || !strings.Contains(err.Error(), "sources.history[0].manifest") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestArchiveDamage: a frame that breaks off, a parent that does not fit and the like end the reading of an object. What
// came before is stored, and a later source, or the next run, goes on right behind it: ARC-046, ARC-047.
func TestArchiveDamage(t *testing.T) {
	t.Parallel()
	c := bundled(t)
	c.files, c.blocks = c.files[:1], bundledSpans[0]
	first := newLab(t, c)
	first.must(fillArgs(c.blocks)...)
	good := filepath.Join(t.TempDir(), "good")
	first.must(createArgs(c.blocks, good)...)
	bad := filepath.Join(t.TempDir(), "bad")
	copyWithBrokenFrame(t, good, bad)

	bare := c
	bare.files = nil
	l := newLab(t, bare)
	l.useArchives(filepath.Join(bad, "manifest.json"))
	if message := l.fails(fillArgs(c.blocks)...); !strings.Contains(message, "block 17034870") || !strings.Contains(message, "line 2") {
		t.Error(message)
	}
	if got := l.status(); got.Blocks != 1 || len(got.Coverage) != 1 || got.Coverage[0].To != 17034869 {
		t.Errorf("%+v", got)
	}
	// Another run, with the good archive.
	l.useArchives(filepath.Join(good, "manifest.json"))
	if out := l.must(fillArgs(c.blocks)...); !strings.Contains(out, "1 block,") {
		t.Error(out)
	}
	if got, want := l.verify().Digest, first.verify().Digest; got != want {
		t.Errorf("digest %s, want %s", got, want)
	}
	// The same run, with both.
	both := newLab(t, bare)
	both.useArchives(filepath.Join(bad, "manifest.json"), filepath.Join(good, "manifest.json"))
	both.must(fillArgs(c.blocks)...)
	if got, want := both.verify().Digest, first.verify().Digest; got != want {
		t.Errorf("digest %s, want %s", got, want)
	}
}

// What a live source applied goes into an archive once it is final: an archive says that its blocks are.
func TestArchiveOfFinalBlocks(t *testing.T) {
	t.Parallel()
	c := bundled(t)
	s := bundledSpans[0]
	l := newLab(t, c)
	l.live(fmt.Sprintf(`{"apply": {"era": %q, "fromBlock": %d, "toBlock": %d}}`, c.files[0], s.From, s.To-1),
		fmt.Sprintf(`{"finalized": {"number": %d}}`, s.From))
	n := l.open(false)
	if err := n.follow(t.Context(), func() {}); err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(t.TempDir(), "archive")
	req := archiveRequest{span: blockSpan{s.From, s.To - 1}, out: out, objectBlocks: 10}
	if _, err := n.createArchive(t.Context(), req, func(progress.Count) {}); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("Block %d is not final yet", s.To-1)) {
		t.Error(err)
	}
	req.span.To = s.From
	if r, err := n.createArchive(t.Context(), req, func(progress.Count) {}); err != nil || r.Blocks != 1 {
		t.Errorf("%+v, %v", r, err)
	}
}

// copyWithBrokenFrame copies an archive of one object of two blocks and cuts its second frame short. Length and digest in the
// manifest are those of the broken object.
func copyWithBrokenFrame(tb testing.TB, from, to string) {
	tb.Helper()
	if err := os.Mkdir(to, 0o755); err != nil {
		tb.Fatal(err)
	}
	m, err := archive.LoadManifest(filepath.Join(from, archive.ManifestName))
	if err != nil {
		tb.Fatal(err)
	}
	o := &m.Objects[0]
	content := readFile(tb, filepath.Join(from, o.Path))
	content = append(content[:len(content)-1000], '\n')
	o.Bytes, o.BLAKE3 = int64(len(content)), blake3.Sum256(content)
	writeFile(tb, filepath.Join(to, o.Path), content)
	writeFile(tb, filepath.Join(to, archive.ManifestName), m.Append(nil))
}
