package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"strings"
	"testing"

	"github.com/leani-go/leani/chain"
	"github.com/leani-go/leani/config"
	"github.com/leani-go/leani/internal/progress"
	"github.com/leani-go/leani/internal/shareddata"
)

// skipSlow leaves out a test that takes many seconds, where time is short or everything is slow.
func skipSlow(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("slow: left out with -short")
	}
	skipWithRace(t)
}

// skipWithRace leaves out a test in which the race detector finds nothing: what it repeats runs on one
// goroutine, or others run the same.
func skipWithRace(t *testing.T) {
	t.Helper()
	if raceEnabled {
		t.Skip("slow with the race detector, which finds nothing in it")
	}
}

// lab is a node in a directory of its own: settings, a folder of era files, a store. Its commands
// run in processes of their own, or it is opened within the test.
type lab struct {
	tb     testing.TB
	dir    string
	config string // path of the settings
}

// testChain is a chain of the test data.
type testChain struct {
	name    string // as era file names begin
	id      uint64
	genesis string // path, or empty
	blocks  chain.Range
	files   []string // paths of the era files
}

// newLab makes a node for a chain. It listens on a port of its own.
func newLab(tb testing.TB, c testChain) *lab {
	tb.Helper()
	dir := tb.TempDir()
	l := &lab{tb: tb, dir: dir, config: filepath.Join(dir, "leani.toml")}
	args := []string{"init", "--chain-name", c.name, "--chain-id", fmt.Sprint(c.id), "--rpc-bind", "127.0.0.1:0"}
	if c.genesis != "" {
		args = append(args, "--genesis", c.genesis)
	}
	l.must(args...)
	l.set("budgets", "source_concurrency", "2")
	l.set("budgets", "mapper_concurrency", "2")
	if err := os.Mkdir(l.era(), 0o755); err != nil {
		tb.Fatal(err)
	}
	for _, path := range c.files {
		l.link(path, filepath.Base(path))
	}
	if len(c.files) > 0 {
		l.catalog()
	}
	return l
}

func (l *lab) era() string  { return filepath.Join(l.dir, "era") }
func (l *lab) data() string { return filepath.Join(l.dir, "data") }

// link puts an era file into the folder under a name.
func (l *lab) link(path, name string) {
	l.tb.Helper()
	path, err := filepath.Abs(path)
	if err == nil {
		err = os.Symlink(path, filepath.Join(l.era(), name))
	}
	if err != nil {
		l.tb.Fatal(err)
	}
}

// catalog writes the digests of all era files.
func (l *lab) catalog() {
	l.tb.Helper()
	var rows bytes.Buffer
	for _, e := range readDir(l.tb, l.era()) {
		if strings.HasPrefix(e, "checksums") {
			continue
		}
		fmt.Fprintf(&rows, "%x  %s\n", sha256.Sum256(readFile(l.tb, filepath.Join(l.era(), e))), e)
	}
	writeFile(l.tb, filepath.Join(l.era(), "checksums_sha256.txt"), rows.Bytes())
}

// set gives a key of a table of the settings another value.
func (l *lab) set(table, key, value string) {
	l.tb.Helper()
	text := readFile(l.tb, l.config)
	text = regexp.MustCompile(`(?m)^`+key+` = .*\n`).ReplaceAll(text, nil)
	header := []byte("[" + table + "]\n")
	switch table {
	case "sources.history":
		header = []byte("[[sources.history]]\n")
	case "":
		header = []byte("config_version = 1\n")
	}
	before, after, found := bytes.Cut(text, header)
	if !found {
		l.tb.Fatalf("the settings have no table %s", table)
	}
	line := key + " = " + value + "\n"
	writeFile(l.tb, l.config, bytes.Join([][]byte{before, header, []byte(line), after}, nil))
}

// command prepares a command in a process of its own.
func (l *lab) command(args ...string) *exec.Cmd {
	cmd := exec.Command("leani", append([]string{"--config", l.config}, args...)...)
	cmd.Env = append(os.Environ(), "NO_COLOR=1")
	return cmd
}

// outcome is what a command left.
type outcome struct {
	code     int
	out, err string
}

// run runs a command to its end.
func (l *lab) run(args ...string) outcome {
	l.tb.Helper()
	var out, errs bytes.Buffer
	cmd := l.command(args...)
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		l.tb.Fatal(err)
	}
	return outcome{cmd.ProcessState.ExitCode(), out.String(), errs.String()}
}

// must runs a command that has to succeed, and gives its output.
func (l *lab) must(args ...string) string {
	l.tb.Helper()
	o := l.run(args...)
	if o.code != exitOK {
		l.tb.Fatalf("leani %s: code %d\n%s%s", strings.Join(args, " "), o.code, o.out, o.err)
	}
	return o.out
}

// fails runs a command that has to fail with code 1 and one error, and gives that.
func (l *lab) fails(args ...string) string {
	l.tb.Helper()
	o := l.run(args...)
	_, message, found := strings.Cut("\n"+o.err, "\nerror: ")
	if o.code != exitFailure || !found {
		l.tb.Fatalf("leani %s: code %d, want 1\n%s%s", strings.Join(args, " "), o.code, o.out, o.err)
	}
	return message
}

// fillArgs are those of history fill for a range.
func fillArgs(r chain.Range) []string {
	return []string{"history", "fill", "--from-block", fmt.Sprint(r.From), "--to-block", fmt.Sprint(r.To - 1)}
}

// status is what history status says.
func (l *lab) status() statusReport {
	l.tb.Helper()
	var r statusReport
	parseJSON(l.tb, l.must("history", "status", "--json"), &r)
	return r
}

// verify proves the store in a process of its own, and requires that nothing is wrong with it.
func (l *lab) verify() verifyReport {
	l.tb.Helper()
	var r verifyReport
	parseJSON(l.tb, l.must("db", "verify", "--json"), &r)
	if len(r.Problems) > 0 {
		l.tb.Fatalf("problems: %q", r.Problems)
	}
	return r
}

// clean requires that the data directory holds nothing but the store: no unfinished file, nothing
// in quarantine.
func (l *lab) clean() {
	l.tb.Helper()
	for _, kind := range []string{"data", "index", "senders"} {
		for _, name := range readDir(l.tb, filepath.Join(l.data(), "segments", kind)) {
			if !strings.HasSuffix(name, ".seg") {
				l.tb.Errorf("unfinished file segments/%s/%s", kind, name)
			}
		}
	}
	if names := readDir(l.tb, filepath.Join(l.data(), "quarantine")); len(names) > 0 {
		l.tb.Errorf("in quarantine: %v", names)
	}
}

// settings reads the settings file.
func (l *lab) settings() *config.Config {
	l.tb.Helper()
	cfg, err := config.Load(l.config)
	if err != nil {
		l.tb.Fatal(err)
	}
	return cfg
}

// tryOpen opens the node within the test. The caller closes it.
func (l *lab) tryOpen(readOnly bool) (*storedNode, error) {
	defer debug.SetMemoryLimit(math.MaxInt64) // the settings are about a process of its own
	n, err := stored{}.open(context.Background(), nodeOptions{settings: l.settings(), log: slog.New(slog.DiscardHandler), readOnly: readOnly})
	if err != nil {
		return nil, err
	}
	return n.(*storedNode), nil
}

// open opens the node within the test, which closes it at its end.
func (l *lab) open(readOnly bool) *storedNode {
	l.tb.Helper()
	n, err := l.tryOpen(readOnly)
	if err != nil {
		l.tb.Fatal(err)
	}
	l.tb.Cleanup(func() {
		if err := n.close(); err != nil {
			l.tb.Error(err)
		}
	})
	return n
}

// verifyNode proves an open node.
func verifyNode(tb testing.TB, n node) verifyReport {
	tb.Helper()
	r, err := n.verify(context.Background(), func(progress.Count) {})
	if err != nil {
		tb.Fatal(err)
	}
	return r
}

// The chains of the test data.

// bundledFiles is the folder of the era files that are part of the repository.
func bundledFiles(tb testing.TB) string {
	return filepath.Join(shareddata.Root(tb), "testdata", "era", "mainnet-mini")
}

// bundledSpans are the blocks in those files: two each over the Shanghai, Cancun and Prague
// activations.
var bundledSpans = []chain.Range{{From: 17034869, To: 17034871}, {From: 19426586, To: 19426588}, {From: 22431083, To: 22431085}}

// bundled is the chain of those files. Its blocks have gaps: fill the spans one by one.
func bundled(tb testing.TB) testChain {
	c := testChain{name: "mainnet", id: chain.MainnetChainID}
	for _, s := range bundledSpans {
		c.files = append(c.files, filepath.Join(bundledFiles(tb), fmt.Sprintf("mainnet-%d-%d-noproofs.ere", s.From, s.To-1)))
	}
	return c
}

// chainlab is a synthetic chain of 801 blocks like Mainnet's.
func chainlab(tb testing.TB) testChain {
	tb.Helper()
	return testChain{
		name: "chainlab", id: 424242, genesis: shareddata.Path(tb, "chainlab-800", "genesis.json.gz"),
		blocks: chain.Range{From: 0, To: 801},
		files:  []string{shareddata.Path(tb, "chainlab-800", "chainlab-00000-3b8d3ead-noproofs.ere")},
	}
}

// conformance is the chain of the JSON-RPC conformance suite; file is one of its era files.
func conformance(tb testing.TB, name, file string, blocks chain.Range) testChain {
	tb.Helper()
	genesis := shareddata.Path(tb, "execution-apis", "tests", "genesis.json")
	var g struct{ Config struct{ ChainID uint64 } }
	parseJSON(tb, string(readFile(tb, genesis)), &g)
	return testChain{name: name, id: g.Config.ChainID, genesis: genesis, blocks: blocks,
		files: []string{shareddata.Path(tb, "era", "rpc-compat-chain", file)}}
}

func readFile(tb testing.TB, path string) []byte {
	tb.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		tb.Fatal(err)
	}
	return b
}

func writeFile(tb testing.TB, path string, b []byte) {
	tb.Helper()
	if err := os.WriteFile(path, b, 0o644); err != nil {
		tb.Fatal(err)
	}
}

func readDir(tb testing.TB, path string) (names []string) {
	tb.Helper()
	entries, err := os.ReadDir(path)
	if err != nil {
		tb.Fatal(err)
	}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

func parseJSON(tb testing.TB, text string, v any) {
	tb.Helper()
	if err := json.Unmarshal([]byte(text), v); err != nil {
		tb.Fatalf("%v in %.200s", err, text)
	}
}
