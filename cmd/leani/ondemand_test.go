package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/leani-go/leani/chain"
	"github.com/leani-go/leani/internal/progress"
	"github.com/leani-go/leani/serve/rpc"
)

// onDemand makes a node fetch blocks that it does not retain.
func (l *lab) onDemand() { l.set("rpc", "historical_mode", `"on_demand"`) }

// contents is what a store holds of blocks: its data files with their sizes, and the rows of its database. What serve derives
// from blocks in the background, senders and merged indexes, is left out.
func (l *lab) contents() string {
	l.tb.Helper()
	var b strings.Builder
	data := filepath.Join(l.data(), "segments", "data")
	for _, name := range readDir(l.tb, data) {
		info, err := os.Stat(filepath.Join(data, name))
		if err != nil {
			l.tb.Fatal(err)
		}
		fmt.Fprintln(&b, name, info.Size(), info.ModTime())
	}
	for row := range strings.Lines(l.must("db", "keys")) {
		if !strings.Contains(row, "senders") && !strings.Contains(row, "segment/index") {
			b.WriteString(row)
		}
	}
	return b.String()
}

// equalAnswers requires that both nodes answer calls alike, byte by byte, and not with an error.
func equalAnswers(t *testing.T, full, part *client, calls [][2]string) {
	t.Helper()
	for _, call := range calls {
		body := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":%q,"params":%s}`, call[0], call[1])
		want, err := full.post(body)
		if err != nil {
			t.Fatal(err)
		}
		got, err := part.post(body)
		if err != nil {
			t.Fatal(err)
		}
		if string(got) != string(want) || strings.Contains(string(got), `"error"`) {
			t.Errorf("%s\ngot  %.300s\nwant %.300s", body, got, want)
		}
	}
}

// blockCalls are the calls about a block by number.
func blockCalls(number uint64) [][2]string {
	return [][2]string{
		{"eth_getBlockByNumber", fmt.Sprintf(`["%#x",false]`, number)},
		{"eth_getBlockByNumber", fmt.Sprintf(`["%#x",true]`, number)},
		{"eth_getBlockReceipts", fmt.Sprintf(`["%#x"]`, number)},
		{"eth_getBlockTransactionCountByNumber", fmt.Sprintf(`["%#x"]`, number)},
		{"eth_getTransactionByBlockNumberAndIndex", fmt.Sprintf(`["%#x","0x0"]`, number)},
		{"eth_getTransactionByBlockNumberAndIndex", fmt.Sprintf(`["%#x","0xffff"]`, number)},
	}
}

func logsCall(from, to uint64, rest string) [2]string {
	return [2]string{"eth_getLogs", fmt.Sprintf(`[{"fromBlock":"%#x","toBlock":"%#x"%s}]`, from, to, rest)}
}

// A node that retains one block answers what one answers that retains all, from the same folder of era files, and
// keeps nothing of it. (ARC-062, RPC-140, RPC-146, RPC-202)
func TestOnDemand(t *testing.T) {
	t.Parallel()
	full, part := newLab(t, bundled(t)), newLab(t, bundled(t))
	for _, s := range bundledSpans {
		full.must(fillArgs(s)...)
	}
	last := bundledSpans[len(bundledSpans)-1]
	part.must(fillArgs(chain.Range{From: last.To - 1, To: last.To})...)
	before := part.contents()
	part.onDemand()

	fullServer, partServer := full.serve(), part.serve()
	var calls [][2]string
	for _, s := range bundledSpans {
		for n := s.From; n < s.To; n++ {
			calls = append(calls, blockCalls(n)...)
		}
		calls = append(calls, logsCall(s.From, s.To-1, ""), logsCall(s.From, s.From, `,"topics":["0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef"]`))
	}
	asking := newClient(partServer.url)
	equalAnswers(t, newClient(fullServer.url), asking, calls)
	for _, refused := range []struct{ method, params, reason string }{
		{"eth_getBlockByNumber", `["0x1",false]`, "no_viable_historical_source"},
		{"eth_getLogs", fmt.Sprintf(`[{"fromBlock":"0x1","toBlock":"%#x"}]`, last.To-1), "historical_request_range_exceeded"},
	} {
		r, err := asking.call(refused.method, refused.params)
		if err != nil || r.Error == nil || !strings.Contains(string(r.Error.Data), `"`+refused.reason+`"`) {
			t.Errorf("%s %s: got %+v, %v, want %s", refused.method, refused.params, r, err, refused.reason)
		}
	}
	hinted, err := asking.call("eth_getLogs", fmt.Sprintf(`[{"fromBlock":"0x10","toBlock":"%#x"}]`, last.To-1))
	if err != nil || hinted.Error == nil || !strings.HasSuffix(string(hinted.Error.Data), `"from":"0x10","to":"0x40f","limit":1024}`) {
		t.Errorf("got %+v, %v, want a range of 1,024 blocks", hinted, err)
	}
	full.stopped(fullServer)
	part.stopped(partServer)
	if after := part.contents(); after != before {
		t.Errorf("the store is not what it was: before\n%s\nafter\n%s", before, after)
	}
	part.clean()
	if names, err := os.ReadDir(filepath.Join(part.data(), "temporary")); err == nil && len(names) > 0 {
		t.Errorf("temporary files are left: %v", names)
	}
}

// A node with holes answers log queries across them as one without, also when several ask at once, within a small budget of
// memory. (RPC-133, RPC-147, STO-016, INV-22)
func TestOnDemandAcrossHoles(t *testing.T) {
	skipSlow(t)
	t.Parallel()
	c := chainlab(t)
	full, part := newLab(t, c), newLab(t, c)
	full.must(fillArgs(c.blocks)...)
	for _, r := range []chain.Range{{From: 0, To: 10}, {From: 200, To: 300}, {From: 301, To: 302}, {From: 500, To: 600}, {From: 795, To: 801}} {
		part.must(fillArgs(r)...)
	}
	before := part.contents()
	part.onDemand()
	part.set("budgets", "memory_bytes", fmt.Sprint(leastMemory))
	fullServer, partServer := full.serve(), part.serveMeasured("on demand")
	rng := rand.New(rand.NewPCG(7, 7))
	calls := [][2]string{
		logsCall(0, 1, ""), logsCall(199, 301, ""), logsCall(299, 303, ""), logsCall(794, 800, ""),
		logsCall(0, 800, `,"address":"0x00000000000000000000000000000000000000ff"`),
		logsCall(0, 800, `,"topics":["0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef"]`),
		logsCall(0, 800, ""), // too many, with a proposal
	}
	for range 10 {
		from := rng.Uint64N(801)
		to := min(800, from+rng.Uint64N(60))
		calls = append(calls, logsCall(from, to, ""))
		calls = append(calls, blockCalls(from)...)
	}
	a, b := newClient(fullServer.url), newClient(partServer.url)
	for _, call := range calls {
		body := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":%q,"params":%s}`, call[0], call[1])
		want, err := a.post(body)
		if err != nil {
			t.Fatal(err)
		}
		got, err := b.post(body)
		if err != nil {
			t.Fatal(err)
		}
		if string(got) != string(want) || strings.Contains(string(got), "-32004") {
			t.Errorf("%s\ngot  %.300s\nwant %.300s", body, got, want)
		}
	}
	var group sync.WaitGroup
	for k := range uint64(4) {
		group.Go(func() {
			call := logsCall(k*100, k*100+300, `,"address":"0x00000000000000000000000000000000000000ff"`)
			if r, err := b.call(call[0], call[1]); err != nil || string(r.Result) != "[]" {
				t.Errorf("%s: got %+v, %v", call[1], r, err)
			}
		})
	}
	group.Wait()
	full.stopped(fullServer)
	part.stoppedMeasured(partServer, "on demand")
	if after := part.contents(); after != before {
		t.Errorf("the store is not what it was: before\n%s\nafter\n%s", before, after)
	}
}

// answerHeader is what a node says of where the answer to a call comes from.
func answerHeader(t *testing.T, url, method, params string) string {
	t.Helper()
	body := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":%q,"params":%s}`, method, params)
	response, err := http.Post(url, "application/json", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if err := response.Body.Close(); err != nil {
		t.Fatal(err)
	}
	return response.Header.Get("Leani-Answer")
}

// Mirrors and archives answer as folders do; a damaged file is told, with the place of the damage, and the next source
// answers instead. (RPC-142, RPC-144, RPC-145)
func TestOnDemandSources(t *testing.T) {
	t.Parallel()
	full := newLab(t, bundled(t))
	for _, s := range bundledSpans {
		full.must(fillArgs(s)...)
	}
	asked, last := bundledSpans[1], bundledSpans[2]
	manifest := filepath.Join(t.TempDir(), "archive")
	full.must(createArgs(asked, manifest)...)
	manifest = filepath.Join(manifest, "manifest.json")
	fullServer := full.serve()
	defer full.stopped(fullServer)

	part := newLab(t, bundled(t))
	part.must(fillArgs(chain.Range{From: last.To - 1, To: last.To})...)
	part.onDemand()
	settings := readFile(t, part.config)
	damaged := filepath.Join(t.TempDir(), "damaged")
	if err := os.Mkdir(damaged, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range readDir(t, part.era()) {
		content := readFile(t, filepath.Join(part.era(), name))
		if strings.Contains(name, fmt.Sprint(asked.From)) {
			content[len(content)/2] ^= 1
		}
		writeFile(t, filepath.Join(damaged, name), content)
	}
	good, bad := mirrorOf(t, part), mirrorOf(t, part, fmt.Sprint(asked.From))
	archiveEntry := "[[sources.history]]\nid = \"archive\"\nkind = \"archive\"\npriority = 5\ntrust = \"trusted_dataset\"\nmanifest = \"" + manifest + "\"\n\n"

	calls := append(blockCalls(asked.From), blockCalls(asked.To-1)...)
	calls = append(calls, logsCall(asked.From, asked.To-1, ""))
	for _, c := range []struct {
		name    string
		sources []string
		header  string
		log     []string
	}{
		{"mirror", []string{entryOf("mirror", "10", good)}, `source="mirror", path=on_demand, finality=unattested, trust=verified_material`, nil},
		{"archive", []string{entryOf("mirror", "10", good), archiveEntry}, `source="archive", path=on_demand, finality=unattested, trust=trusted_dataset`, nil},
		{"damaged folder", []string{entryOf("folder", "1", "file:"+damaged+"/"), entryOf("mirror", "10", good)},
			`source="mirror", path=on_demand, finality=unattested, trust=verified_material`,
			[]string{`"source":"folder"`, "invalid material", "first bad block"}},
		{"damaged mirror", []string{entryOf("bad", "1", bad), archiveEntry}, `source="archive", path=on_demand, finality=unattested, trust=trusted_dataset`,
			[]string{`"source":"bad"`, "invalid material"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			writeFile(t, part.config, settings)
			part.sourcesOf(c.sources...)
			server := part.serve()
			equalAnswers(t, newClient(fullServer.url), newClient(server.url), calls)
			call := blockCalls(asked.From)[0]
			if got := answerHeader(t, server.url, call[0], call[1]); got != c.header {
				t.Errorf("got %s", got)
			}
			part.stopped(server)
			for _, want := range c.log {
				if log := server.log.String(); !strings.Contains(log, want) {
					t.Errorf("the log lacks %s: %s", want, log)
				}
			}
			if names, err := os.ReadDir(filepath.Join(part.data(), "temporary")); err == nil && len(names) > 0 {
				t.Errorf("temporary files are left: %v", names)
			}
		})
	}

	writeFile(t, part.config, settings)
	part.sourcesOf(entryOf("folder", "1", "file:"+damaged+"/"))
	server := part.serve()
	for _, call := range calls {
		r, err := newClient(server.url).call(call[0], call[1])
		if err != nil || r.Error == nil || !strings.Contains(string(r.Error.Data), `"historical_source_returned_invalid_material","retryable":false`) {
			t.Errorf("%s: got %+v, %v", call, r, err)
		}
	}
	part.stopped(server)
}

// A node that retains a recent window and few blocks below it answers the queries of the lab chain as go-ethereum does, with
// the rest from an era file. (RPC-147, RPC-202, INV-33)
func TestOnDemandBelowRecent(t *testing.T) {
	skipSlow(t)
	t.Parallel()
	c := chainlab(t)
	var byNumber []*query
	for i, q := range chainlabQueries(t) {
		if i%3 == 0 && !strings.Contains(q.body, "blockHash") && !hashParameter.MatchString(q.body) {
			byNumber = append(byNumber, q)
		}
	}
	if len(byNumber) < 20 {
		t.Fatalf("only %d queries", len(byNumber))
	}
	l := newLab(t, c)
	l.onDemand()
	border := c.blocks.To - 200
	l.live(fmt.Sprintf(`{"apply": {"era": %q, "fromBlock": %d, "toBlock": %d}}`, c.files[0], border, c.blocks.To-1))
	n := l.open(false)
	for _, r := range []chain.Range{{From: 100, To: 120}, {From: border - 10, To: border}} {
		if err := n.fill(t.Context(), r, func(progress.Count) {}); err != nil {
			t.Fatal(err)
		}
	}
	if err := n.follow(t.Context(), func() {}); err != nil {
		t.Fatal(err)
	}
	asker, stop := serveWithin(t, n)
	defer stop()
	checkAnswers(t, asker.url, byNumber, 3, 1)
	for call, want := range map[[2]string]string{
		logsCall(border, border, ""):      "source=store, path=recent, finality=unattested",
		logsCall(border-20, border+1, ""): `source=(store "era"), path=mixed, finality=unattested, trust=verified_material`,
		logsCall(border-5, border-5, ""):  "source=store, path=materialized, finality=unattested",
		logsCall(130, 131, ""):            `source="era", path=on_demand, finality=unattested, trust=verified_material`,
	} {
		if got := answerHeader(t, asker.url, call[0], call[1]); got != want {
			t.Errorf("%s: got %s, want %s", call[1], got, want)
		}
	}
}

// hashParameter finds a question about a block or transaction by hash.
var hashParameter = regexp.MustCompile(`"params":\["0x[0-9a-f]{64}"`)

// changingHistory does something to the store between the plan of a request and its first block.
type changingHistory struct {
	rpc.History
	change func() error
}

func (h changingHistory) Fetch(ctx context.Context, r rpc.HistoryRequest, to rpc.HistoryReader) error {
	if err := h.change(); err != nil {
		return err
	}
	return h.History.Fetch(ctx, r, to)
}

// An answer is about the moment at which it was planned, also where the retained blocks that it has go away while others are
// fetched; what is asked later sees that. (RPC-131, RPC-147)
func TestOnDemandIsOneMoment(t *testing.T) {
	t.Parallel()
	full, part := newLab(t, bundled(t)), newLab(t, bundled(t))
	span := bundledSpans[2]
	full.must(fillArgs(span)...)
	asker, stop := serveWithin(t, full.open(true))
	defer stop()
	call := logsCall(span.From, span.To-1, "")
	want, err := asker.call(call[0], call[1])
	if err != nil || want.Error != nil || len(want.Result) < 100 {
		t.Fatalf("got %+v, %v", want, err)
	}

	last := chain.Range{From: span.To - 1, To: span.To}
	part.must(fillArgs(last)...)
	part.onDemand()
	n := part.open(false)
	fetched, err := n.openFetchedHistory(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := fetched.close(); err != nil {
			t.Error(err)
		}
	}()
	changing := changingHistory{fetched, func() error {
		report, err := n.prune(t.Context(), pruneRequest{span: blockSpan{last.From, last.From}, head: true})
		if err == nil && report.Blocks != 1 {
			err = fmt.Errorf("%d blocks were pruned", report.Blocks)
		}
		return err
	}}
	s, err := rpc.New(rpc.Options{Store: historyStore{n.history}, History: changing, Network: n.network, LaneWorkers: 1, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- s.Serve(listener) }()
	defer func() {
		if err := errors.Join(s.Shutdown(t.Context()), <-served); err != nil {
			t.Error(err)
		}
	}()
	c := newClient("http://" + listener.Addr().String())
	defer c.http.CloseIdleConnections()
	got, err := c.call(call[0], call[1])
	if err != nil || string(got.Result) != string(want.Result) {
		t.Errorf("got %.300s %+v, %v", got.Result, got.Error, err)
	}
	if r, err := c.call("eth_blockNumber", "[]"); err != nil || string(r.Result) != `"0x0"` {
		t.Errorf("the block is still there: %s, %v", r.Result, err)
	}
}

// A file with one flipped bit, listed with the digest that it has then, gives the answer of the good file or none. (RPC-144)
func TestOnDemandFromFlippedBits(t *testing.T) {
	t.Parallel()
	full, part := newLab(t, bundled(t)), newLab(t, bundled(t))
	for _, s := range bundledSpans {
		full.must(fillArgs(s)...)
	}
	asked, last := bundledSpans[1], bundledSpans[2]
	part.must(fillArgs(chain.Range{From: last.To - 1, To: last.To})...)
	part.onDemand()
	good, stop := serveWithin(t, full.open(true))
	defer stop()
	var bodies []string
	for _, call := range append(append(blockCalls(asked.From), blockCalls(asked.To-1)...), logsCall(asked.From, asked.To-1, "")) {
		bodies = append(bodies, fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":%q,"params":%s}`, call[0], call[1]))
	}
	want := make(map[string]string)
	for _, body := range bodies {
		text, err := good.post(body)
		if err != nil {
			t.Fatal(err)
		}
		want[body] = string(text)
	}
	var victim string
	for _, name := range readDir(t, part.era()) {
		if strings.Contains(name, fmt.Sprint(asked.From)) {
			victim = filepath.Join(part.era(), name)
		}
	}
	content := readFile(t, victim)
	if err := os.Remove(victim); err != nil { // it is a link
		t.Fatal(err)
	}
	n := part.open(true)
	rng := seeded(t)
	refused := 0
	for range 60 {
		at, bit := rng.IntN(len(content)), byte(1)<<rng.IntN(8)
		content[at] ^= bit
		writeFile(t, victim, content)
		part.catalog()
		asker, stop := serveWithin(t, n)
		for _, body := range bodies {
			got, err := asker.post(body)
			switch {
			case err != nil:
				t.Error(err)
			case string(got) == want[body]:
			case strings.Contains(string(got), "historical_source_returned_invalid_material"), strings.Contains(string(got), "no_viable_historical_source"),
				strings.Contains(string(got), "historical_request_budget_exceeded"):
				refused++
			default:
				t.Errorf("bit %#x of byte %d: %s\ngot  %.300s\nwant %.300s", bit, at, body, got, want[body])
			}
		}
		stop()
		content[at] ^= bit
	}
	t.Logf("%d of %d refused", refused, 60*len(bodies))
	if refused == 0 {
		t.Error("no bit matters")
	}
}

// A node that waits for a mirror stops when it is told to, and nothing of the file is left.
func TestOnDemandStops(t *testing.T) {
	t.Parallel()
	l := newLab(t, bundled(t))
	last := bundledSpans[2]
	l.must(fillArgs(chain.Range{From: last.To - 1, To: last.To})...)
	l.onDemand()
	asked := make(chan struct{}, 16)
	hanging := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name := path.Base(r.URL.Path)
		if strings.HasSuffix(name, ".txt") {
			http.ServeFile(w, r, filepath.Join(l.era(), name))
			return
		}
		asked <- struct{}{}
		<-r.Context().Done()
	}))
	defer hanging.Close()
	l.sourcesOf(entryOf("mirror", "10", hanging.URL+"/"))
	s := l.serve()
	answered := make(chan struct{})
	go func() { // the connection may be cut before there is an answer
		defer close(answered)
		_, _ = newClient(s.url).call("eth_getBlockByNumber", fmt.Sprintf(`["%#x",true]`, last.From))
	}()
	<-asked
	l.stopped(s)
	<-answered
	if names, err := os.ReadDir(filepath.Join(l.data(), "temporary")); err == nil && len(names) > 0 {
		t.Errorf("temporary files are left: %v", names)
	}
}
