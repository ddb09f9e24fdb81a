package main

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/leani-go/leani/chain"
	"github.com/leani-go/leani/engine/history"
	"github.com/leani-go/leani/internal/progress"
	"github.com/leani-go/leani/internal/shareddata"
)

// query is a question about chainlab with the digest of geth's answer.
type query struct {
	id, body, digest string
	logs             int // how many logs the answer lists; negative: it is no list

	// proven is the SHA-256 of a response that was compared with geth's answer: the same bytes
	// need not be taken apart again.
	proven atomic.Pointer[[sha256.Size]byte]
}

// chainlabQueries loads the questions and what go-ethereum answered.
func chainlabQueries(tb testing.TB) []*query {
	tb.Helper()
	var digests map[string]string
	parseJSON(tb, string(readFile(tb, shareddata.Path(tb, "chainlab-800", "answers.json"))), &digests)
	f, err := os.Open(shareddata.Path(tb, "chainlab-800", "queries.jsonl"))
	if err != nil {
		tb.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	var queries []*query
	for lines := bufio.NewScanner(f); lines.Scan(); {
		var row struct {
			ID, Method string
			Params     json.RawMessage
			Expect     int
		}
		parseJSON(tb, lines.Text(), &row)
		body := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":%q,"params":%s}`, row.Method, row.Params)
		queries = append(queries, &query{id: row.ID, body: body, digest: digests[row.ID], logs: row.Expect})
	}
	if len(queries) != len(digests) {
		tb.Fatalf("%d questions, %d answers", len(queries), len(digests))
	}
	return queries
}

// digestOf is the SHA-256 of a JSON value with sorted keys and numbers as written.
func digestOf(text []byte) (digest string, elements int, err error) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return "", 0, err
	}
	sorted, err := json.Marshal(v)
	if err != nil {
		return "", 0, err
	}
	sum := sha256.Sum256(sorted)
	list, isList := v.([]any)
	elements = len(list)
	if !isList {
		elements = -1
	}
	return hex.EncodeToString(sum[:]), elements, nil
}

// check puts the question and compares the answer with geth's.
func (q *query) check(c *client) error {
	text, err := c.post(q.body)
	if err != nil {
		return fmt.Errorf("%s: %w", q.id, err)
	}
	sum := sha256.Sum256(text)
	if proven := q.proven.Load(); proven != nil && *proven == sum {
		return nil
	}
	var r reply
	if err := json.Unmarshal(text, &r); err != nil {
		return fmt.Errorf("%s: %w", q.id, err)
	}
	if r.Error != nil {
		return fmt.Errorf("%s: error %d %s", q.id, r.Error.Code, r.Error.Message)
	}
	digest, elements, err := digestOf(r.Result)
	if err != nil {
		return fmt.Errorf("%s: %w", q.id, err)
	}
	if digest != q.digest || q.logs >= 0 && elements != q.logs {
		return fmt.Errorf("%s: digest %s of %d elements, geth's is %s of %d: %s", q.id, digest, elements, q.digest, q.logs, q.body)
	}
	q.proven.Store(&sum)
	return nil
}

// checkAnswers puts all questions, rounds times, from several clients at once.
func checkAnswers(tb testing.TB, url string, queries []*query, clients, rounds int) {
	tb.Helper()
	c := newClient(url)
	defer c.http.CloseIdleConnections()
	var next atomic.Int64
	var group sync.WaitGroup
	failures := make([]error, clients)
	for k := range clients {
		group.Go(func() {
			for {
				i := int(next.Add(1)) - 1
				if i >= rounds*len(queries) {
					return
				}
				if err := queries[i%len(queries)].check(c); err != nil {
					failures[k] = err
					return
				}
			}
		})
	}
	group.Wait()
	if err := errors.Join(failures...); err != nil {
		tb.Error(err)
	}
}

// A served node answers like geth: right after the fill, while senders are stored in the background,
// after a restart, and with all senders stored. On the way the blocks are compared with their source, and
// the peak of memory with the budget. (STO-016, INV-22) What finds transactions by hash and logs by their terms is
// part of the files. (RPC-166)
func TestChainlab(t *testing.T) {
	skipSlow(t)
	t.Parallel()
	c, queries := chainlab(t), chainlabQueries(t)
	l := newLab(t, c)
	l.measured("fill", fillArgs(c.blocks)...)
	before := l.verify()
	source := readSource(t, c.files[0])
	l.checkBlocks(source, c.blocks, 32)

	s := l.serveMeasured("after the fill")
	checkAnswers(t, s.url, queries, 8, 1)
	l.stoppedMeasured(s, "after the fill")

	n, err := l.tryOpen(true)
	if err != nil {
		t.Fatal(err)
	}
	asker, stop := serveWithin(t, n)
	checkAnswers(t, asker.url, queries, 2, 1)
	stop()
	if err := n.close(); err != nil {
		t.Fatal(err)
	}

	l.fillSenders()
	s = l.serveMeasured("with senders")
	checkAnswers(t, s.url, queries, 8, 2)
	greedy(t, s.url, c.blocks)
	l.stoppedMeasured(s, "with senders")
	if after := l.verify(); after.Digest != before.Digest {
		t.Errorf("digest %s, was %s", after.Digest, before.Digest)
	}
	l.clean()
}

// greedy asks for as much as the limits allow, from many clients at once.
func greedy(tb testing.TB, url string, blocks chain.Range) {
	tb.Helper()
	c := newClient(url)
	defer c.http.CloseIdleConnections()
	var batch []string
	for n := blocks.From; n < blocks.To && len(batch) < 50; n++ {
		batch = append(batch, fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"eth_getBlockReceipts","params":["%#x"]}`, n, n))
	}
	bodies := []string{
		fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"eth_getLogs","params":[{"fromBlock":"%#x","toBlock":"%#x"}]}`, blocks.From, blocks.To-1),
		"[" + strings.Join(batch, ",") + "]",
	}
	var group sync.WaitGroup
	for k := range 24 {
		group.Go(func() {
			for i := range 4 {
				text, err := c.post(bodies[(i+k)%len(bodies)])
				if err != nil || !json.Valid(text) {
					tb.Errorf("%v: %.100s", err, text)
				}
			}
		})
	}
	group.Wait()
}

// Answers do not depend on how blocks lie in files, whether these were merged, or on the page cache.
func TestChainlabInManyFiles(t *testing.T) {
	skipSlow(t)
	t.Parallel()
	c, queries := chainlab(t), chainlabQueries(t)
	l := newLab(t, c)
	n := l.open(false)
	// Windows of 8, 64 and 512 blocks instead of 1,024, 8,192 and 65,536.
	n.history = history.New(n.engine, history.Options{TargetBlocks: 8})
	if err := n.fill(t.Context(), c.blocks, func(progress.Count) {}); err != nil {
		t.Fatal(err)
	}
	before := verifyNode(t, n)
	ask := func(what string, options history.Options) {
		t.Helper()
		t.Logf("%s: %d data files, %d index files", what, len(l.files("segments", "data")), len(l.files("segments", "index")))
		n.history = history.New(n.engine, options)
		asker, stop := serveWithin(t, n)
		checkAnswers(t, asker.url, queries, 4, 1)
		stop()
		if t.Failed() {
			t.Fatal(what)
		}
	}
	ask("small files", history.Options{TargetBlocks: 8})
	ask("a page cache of one byte", history.Options{TargetBlocks: 8, CacheBytes: 1})
	n.history = history.New(n.engine, history.Options{TargetBlocks: 128})
	if st, err := n.history.Compact(t.Context()); err != nil || st.Repacks == 0 {
		t.Fatalf("%+v, %v", st, err)
	}
	ask("packed", history.Options{TargetBlocks: 128})
	if after := verifyNode(t, n); len(after.Problems) > 0 || after.Digest != before.Digest {
		t.Errorf("digest %s, was %s; problems %q", after.Digest, before.Digest, after.Problems)
	}
}
