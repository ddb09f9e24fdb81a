package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/leani-go/leani/chain"
	"github.com/leani-go/leani/engine/history"
	"github.com/leani-go/leani/internal/progress"
)

// exam is a set of questions with the answers of an undisturbed node.
type exam struct {
	questions []string
	answers   []string
}

// ask adds a question.
func (e *exam) ask(tb testing.TB, c *client, method, format string, args ...any) json.RawMessage {
	tb.Helper()
	q := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":%q,"params":%s}`, method, fmt.Sprintf(format, args...))
	text, err := c.post(q)
	if err != nil {
		tb.Fatal(err)
	}
	var r reply
	parseJSON(tb, string(text), &r)
	e.questions, e.answers = append(e.questions, q), append(e.answers, string(text))
	return r.Result
}

// newExam asks an undisturbed node for everything about some blocks.
func newExam(tb testing.TB, c *client, runs []chain.Range) *exam {
	tb.Helper()
	e := new(exam)
	e.ask(tb, c, "eth_blockNumber", `[]`)
	e.ask(tb, c, "eth_chainId", `[]`)
	for _, run := range runs {
		e.ask(tb, c, "eth_getLogs", `[{"fromBlock":"%#x","toBlock":"%#x"}]`, run.From, run.To-1)
		e.ask(tb, c, "eth_getLogs", `[{"fromBlock":"%#x","toBlock":"%#x"}]`, run.From-1, run.To-1) // not retained
		for n := run.From; n < run.To; n++ {
			e.block(tb, c, n, run)
		}
	}
	return e
}

// block asks for everything about one block.
func (e *exam) block(tb testing.TB, c *client, n uint64, run chain.Range) {
	tb.Helper()
	var block struct {
		Hash         string
		Transactions []struct{ Hash string }
	}
	parseJSON(tb, string(e.ask(tb, c, "eth_getBlockByNumber", `["%#x",true]`, n)), &block)
	e.ask(tb, c, "eth_getBlockByHash", `[%q,false]`, block.Hash)
	e.ask(tb, c, "eth_getBlockReceipts", `["%#x"]`, n)
	for i := 0; i < len(block.Transactions); i += 1 + len(block.Transactions)/3 {
		e.ask(tb, c, "eth_getTransactionByHash", `[%q]`, block.Transactions[i].Hash)
		e.ask(tb, c, "eth_getTransactionReceipt", `[%q]`, block.Transactions[i].Hash)
		e.ask(tb, c, "eth_getTransactionByBlockNumberAndIndex", `["%#x","%#x"]`, n, i)
	}
	var logs []struct {
		Address string
		Topics  []string
	}
	parseJSON(tb, string(e.ask(tb, c, "eth_getLogs", `[{"blockHash":%q}]`, block.Hash)), &logs)
	for i := 0; i < len(logs); i += 1 + len(logs)/3 {
		e.ask(tb, c, "eth_getLogs", `[{"fromBlock":"%#x","toBlock":"%#x","address":%q}]`, run.From, run.To-1, logs[i].Address)
		for k, topic := range logs[i].Topics {
			e.ask(tb, c, "eth_getLogs", `[{"fromBlock":"%#x","toBlock":"%#x","topics":[%s%q]}]`,
				run.From, run.To-1, strings.Repeat("null,", k), topic)
		}
	}
}

// of is an exam with the same questions and the answers of another undisturbed node.
func (e *exam) of(tb testing.TB, c *client) *exam {
	tb.Helper()
	out := &exam{questions: e.questions}
	for _, q := range e.questions {
		text, err := c.post(q)
		if err != nil {
			tb.Fatal(err)
		}
		out.answers = append(out.answers, string(text))
	}
	return out
}

// sit puts all questions to a node and gives the answers that are neither the right ones nor internal
// errors, and how many were errors.
func (e *exam) sit(c *client) (wrong []string, refused int) {
	for i, q := range e.questions {
		text, err := c.post(q)
		if err != nil {
			wrong = append(wrong, fmt.Sprintf("%s: %v", q, err))
			continue
		}
		if string(text) == e.answers[i] {
			continue
		}
		var r reply
		if err := json.Unmarshal(text, &r); err == nil && r.Error != nil && r.Error.Code == -32603 {
			refused++
			continue
		}
		wrong = append(wrong, fmt.Sprintf("%s\ngot  %.300s\nwant %.300s", q, text, e.answers[i]))
	}
	return wrong, refused
}

// examine gives an exam about the store.
func (l *lab) examine(runs []chain.Range) *exam {
	l.tb.Helper()
	n, err := l.tryOpen(true)
	if err != nil {
		l.tb.Fatal(err)
	}
	asker, stop := serveWithin(l.tb, n)
	e := newExam(l.tb, asker, runs)
	stop()
	if err := n.close(); err != nil {
		l.tb.Fatal(err)
	}
	if len(e.questions) < 30 {
		l.tb.Fatalf("%d questions", len(e.questions))
	}
	return e
}

// copyTo makes a node with a copy of the store. Segment files are shared: nothing writes into those.
func (l *lab) copyTo(dir string) *lab {
	l.tb.Helper()
	out := &lab{tb: l.tb, dir: dir, config: filepath.Join(dir, "leani.toml")}
	writeFile(l.tb, out.config, readFile(l.tb, l.config))
	err := filepath.WalkDir(l.data(), func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(l.data(), path)
		if err != nil {
			return err
		}
		to := filepath.Join(out.data(), name)
		switch {
		case d.IsDir():
			return os.MkdirAll(to, 0o755)
		case strings.HasSuffix(name, ".seg"):
			return os.Link(path, to)
		}
		b, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(to, b, 0o644)
	})
	if err != nil {
		l.tb.Fatal(err)
	}
	return out
}

// files lists the segment files of the store.
func (l *lab) files(elem ...string) (paths []string) {
	l.tb.Helper()
	dir := filepath.Join(append([]string{l.data()}, elem...)...)
	for _, name := range readDir(l.tb, dir) {
		paths = append(paths, filepath.Join(dir, name))
	}
	return paths
}

// A flipped bit anywhere in a segment file is found by db verify, which names the file, and never makes
// an answer wrong: queries that touch it get an internal error.
func TestFlippedBitsOfSegments(t *testing.T) {
	skipWithRace(t)
	t.Parallel()
	count := 10
	if *longTests {
		count = 300
	}
	l := newLab(t, bundled(t))
	for _, s := range bundledSpans {
		l.must(fillArgs(s)...)
	}
	l.fillSenders()
	l.flipSegments(t, l.examine(bundledSpans), count)
}

// The same with more logs in an index than a query would rather scan.
func TestFlippedBitsOfLargerSegments(t *testing.T) {
	skipSlow(t)
	t.Parallel()
	count := 6
	if *longTests {
		count = 200
	}
	c := chainlab(t)
	c.blocks = chain.Range{From: 100, To: 112}
	l := filled(t, c)
	l.flipSegments(t, l.examine([]chain.Range{c.blocks}), count)
}

// flipSegments turns bits of each segment file around.
func (l *lab) flipSegments(t *testing.T, e *exam, count int) {
	n := l.open(true)
	rng := seeded(t)
	for _, kind := range []string{"data", "index", "senders"} {
		for _, path := range l.files("segments", kind) {
			refusals := 0
			for _, f := range flipsOf(t, path, fileSize(t, path), count, rng) {
				f.apply(t)
				refused, err := l.inspectDamage(n, e, path)
				if err != nil {
					t.Errorf("%s: %v", f, err)
				}
				if refused > 0 {
					refusals++
				}
				f.apply(t)
			}
			t.Logf("%s %s: %d of %d flips made queries fail", kind, filepath.Base(path), refusals, count)
		}
	}
	if r := verifyNode(t, n); len(r.Problems) > 0 {
		t.Errorf("not all bits are back: %q", r.Problems)
	}
}

// inspectDamage proves and asks a node of which a file is damaged.
func (l *lab) inspectDamage(n *storedNode, e *exam, path string) (int, error) {
	fresh := *n // with empty caches
	fresh.history = history.New(n.engine, history.Options{CacheBytes: 4 << 20})
	report, err := fresh.verify(l.tb.Context(), func(progress.Count) {})
	if err != nil {
		return 0, err
	}
	var errs []error
	if len(report.Problems) == 0 {
		errs = append(errs, errors.New("db verify does not find it"))
	}
	for _, p := range report.Problems {
		if !strings.Contains(p, filepath.Base(path)) && !strings.Contains(p, strings.TrimSuffix(filepath.Base(path), ".seg")) {
			errs = append(errs, fmt.Errorf("db verify blames another file: %s", p))
		}
	}
	fresh.history = history.New(n.engine, history.Options{CacheBytes: 4 << 20})
	c, stop := serveWithin(l.tb, &fresh)
	wrong, refused := e.sit(c)
	stop()
	for _, w := range wrong {
		errs = append(errs, errors.New(w))
	}
	return refused, errors.Join(errs...)
}

// A flipped bit in the database fails the open with an error that says where, or is found by db verify,
// or does not matter. Never is an answer wrong.
//
// The database's log ends with the last commits, and Pebble cannot tell a damaged end from one that was
// torn by a crash. Such a store is as it was before these commits: it answers for the blocks that it has.
func TestFlippedBitsOfDatabase(t *testing.T) {
	skipWithRace(t)
	t.Parallel()
	count := 12
	if *longTests {
		count = 300
	}
	l := newLab(t, bundled(t))
	var states []*lab // after each fill
	for _, s := range bundledSpans {
		l.must(fillArgs(s)...)
		states = append(states, l.copyTo(t.TempDir()))
	}
	e := l.examine(bundledSpans)
	exams, digests := map[uint64]*exam{6: e}, map[uint64]string{6: l.verify().Digest}
	for i, state := range states[:2] {
		n := state.open(true)
		asker, stop := serveWithin(t, n)
		exams[2*uint64(i+1)] = e.of(t, asker)
		stop()
		digests[2*uint64(i+1)] = verifyNode(t, n).Digest
	}
	rng := seeded(t)
	for _, path := range l.files("db") {
		size := fileSize(t, path)
		if size == 0 {
			continue // a lock, or a marker: what counts is the name
		}
		outcomes := map[string]int{}
		for _, f := range flipsOf(t, path, size, count, rng) {
			f.apply(t)
			for _, readOnly := range []bool{true, false} {
				c := l.copyTo(t.TempDir())
				outcome, err := c.judgeDatabase(readOnly, filepath.Base(path), exams, digests)
				if err != nil {
					t.Errorf("%v, read-only %v: %v", f, readOnly, err)
				}
				outcomes[outcome]++
			}
			f.apply(t)
		}
		t.Logf("%s, %d bytes: %v", filepath.Base(path), size, outcomes)
	}
}

// judgeDatabase opens a store with a damaged file of the database. Exams and digests are by the number
// of blocks that an undisturbed store has.
func (l *lab) judgeDatabase(readOnly bool, name string, exams map[uint64]*exam, digests map[uint64]string) (string, error) {
	n, err := l.tryOpen(readOnly)
	if err != nil {
		number := strings.TrimSuffix(strings.TrimSuffix(name, ".log"), ".sst")
		// An option that cannot be read, a row whose neighbour is lost and a table that the manifest
		// should not name any more are named themselves.
		for _, place := range []string{number, "invalid key=value syntax", "from options", "corrupt ", "unknown to the objstorage provider"} {
			if strings.Contains(err.Error(), place) {
				return "refused", nil
			}
		}
		return "refused", fmt.Errorf("the error does not say where: %w", err)
	}
	defer func() {
		if err := n.close(); err != nil {
			l.tb.Error(err)
		}
	}()
	r := verifyNode(l.tb, n)
	exam, known := exams[r.Blocks]
	if !known {
		return "other", fmt.Errorf("%d blocks", r.Blocks)
	}
	asker, stop := serveWithin(l.tb, n)
	wrong, refused := exam.sit(asker)
	stop()
	switch {
	case len(wrong) > 0 || refused > 0:
		return "wrong", fmt.Errorf("%d blocks, %d refused, wrong: %s", r.Blocks, refused, strings.Join(wrong, "\n"))
	case r.Digest != digests[r.Blocks]:
		return "wrong", fmt.Errorf("%d blocks have digest %s, want %s", r.Blocks, r.Digest, digests[r.Blocks])
	case len(r.Problems) > 0:
		return "found", nil
	case r.Blocks < 6:
		return "before the last commits", nil
	}
	return "no harm", nil
}
