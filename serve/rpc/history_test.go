package rpc

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/leani-go/leani/api/jsonrpc"
	"github.com/leani-go/leani/chain"
)

// startHistory serves a chain of 40 blocks of which only the coverage is retained.
func startHistory(t testing.TB, coverage []chain.Range, change func(*fakeStore, *fakeHistory, *Options)) (*testServer, *fakeHistory) {
	t.Helper()
	store := newFakeStore(t, 40)
	store.coverage = coverage
	h := historyOf(store)
	return startServer(t, store, func(o *Options) {
		o.History, o.newEncoder = h, nil
		if change != nil {
			change(store, h, o)
		}
	}), h
}

// startWhole serves the same chain, all of it retained.
func startWhole(t testing.TB, change func(*Options)) *testServer {
	t.Helper()
	return startServer(t, newFakeStore(t, 40), func(o *Options) {
		o.newEncoder = nil
		if change != nil {
			change(o)
		}
	})
}

func callOf(method, params string) string {
	return `{"jsonrpc":"2.0","id":1,"method":"` + method + `","params":[` + params + `]}`
}

func logsOf(from, to uint64, rest string) string {
	return callOf("eth_getLogs", fmt.Sprintf(`{"fromBlock":"%#x","toBlock":"%#x"%s}`, from, to, rest))
}

// callsOf are all calls about a block by number.
func callsOf(number uint64) []string {
	n := fmt.Sprintf(`"%#x"`, number)
	return []string{
		callOf("eth_getBlockByNumber", n+",false"), callOf("eth_getBlockByNumber", n+",true"), callOf("eth_getBlockReceipts", n),
		callOf("eth_getBlockTransactionCountByNumber", n), callOf("eth_getTransactionByBlockNumberAndIndex", n+`,"0x0"`),
		callOf("eth_getTransactionByBlockNumberAndIndex", n+`,"0x2"`), callOf("eth_getTransactionByBlockNumberAndIndex", n+`,"0x63"`),
	}
}

func wantReason(t *testing.T, s *testServer, call, reason string, retryable bool) {
	t.Helper()
	want := fmt.Sprintf(`"error":{"code":-32004,"message":"Data unavailable","data":{"reason":%q,"retryable":%t`, reason, retryable)
	if reason == jsonrpc.ReasonNoHistorySource && strings.Contains(call, jsonrpc.GetLogs) {
		want += `,"missing":{"fromBlock":`
	} else {
		want += "}}"
	}
	if got := s.post(call); !strings.Contains(got, want) {
		t.Errorf("%s\ngot  %s\nwant %s", call, got, want)
	}
}

// layout draws runs of retained blocks, the last block among them, so that all have the same head.
func layout(rng *rand.Rand, blocks uint64) []chain.Range {
	var coverage []chain.Range
	for at := rng.Uint64N(8); at < blocks-1; {
		r := chain.Range{From: at, To: min(blocks, at+1+rng.Uint64N(8))}
		coverage = append(coverage, r)
		at = r.To + 1 + rng.Uint64N(8)
	}
	if n := len(coverage); n > 0 && coverage[n-1].To >= blocks-1 {
		coverage[n-1].To = blocks
		return coverage
	}
	return append(coverage, chain.Range{From: blocks - 1, To: blocks})
}

// A node answers the same, whatever part of the chain it retains, also where limits end an answer, and when a source fails
// somewhere before the good one. (RPC-140, RPC-145, INV-33)
func TestHistoryModel(t *testing.T) {
	limits := []func(o *Options){
		func(o *Options) { o.Limits.MaxLogResults, o.Limits.MaxResponseBytes = 60, 64<<10 },
		func(o *Options) { o.Limits.MaxLogResults, o.Limits.MaxResponseBytes = 30, 12<<10 }, // some answers are too long, others too many
	}
	wholes := []*testServer{startWhole(t, limits[0]), startWhole(t, limits[1])}
	rng := rand.New(rand.NewPCG(3, 5))
	for i := range 40 {
		whole := wholes[i%2]
		coverage := layout(rng, 40)
		breaks := rng.Uint64N(40)
		s, _ := startHistory(t, coverage, func(store *fakeStore, h *fakeHistory, o *Options) {
			limits[i%2](o)
			if i/2%2 == 0 { // in the lane
				store.onCost = func() (uint64, error) { return laneCost, nil }
			}
			changes := []func(chain.Block) []chain.Block{
				nil, nil, only(breaks, withParent), only(breaks, withoutReceipts), only(breaks, twice), only(breaks, never),
			}
			bad := fakeSource{id: "bad", change: changes[rng.IntN(len(changes))]}
			if rng.IntN(2) == 0 {
				bad.fail, bad.at = failed(jsonrpc.ReasonHistoryFailed), breaks
			}
			if bad.change != nil || bad.fail != nil {
				h.sources = []fakeSource{bad, {id: "good"}}
			}
		})
		var calls []string
		for range 12 {
			from := rng.Uint64N(40)
			to := from + rng.Uint64N(40-from)
			rest := []string{"", `,"address":"` + tokenAddress.Hex() + `"`, `,"topics":["` + transferSig.Hex() + `"]`, `,"topics":[[],["` + transferSig.Hex() + `"]]`}
			calls = append(calls, logsOf(from, to, rest[rng.IntN(len(rest))]))
			calls = append(calls, callsOf(from)[rng.IntN(7)])
		}
		calls = append(calls, "["+strings.Join(calls, ",")+"]")
		for _, call := range calls {
			if got, want := s.post(call), whole.post(call); got != want {
				t.Errorf("retained %v, block %d\n%s\ngot  %.400s\nwant %.400s", coverage, breaks, call, got, want)
			}
		}
	}
}

// RPC-094, RPC-144: when history was asked and failed, its reason is told, and whether trying again may help.
func TestHistoryReasons(t *testing.T) {
	for reason, retryable := range map[string]bool{
		jsonrpc.ReasonNoHistorySource: false, jsonrpc.ReasonHistoryFailed: true, jsonrpc.ReasonHistoryInvalid: false,
		jsonrpc.ReasonHistoryBudget: false, jsonrpc.ReasonHistoryRange: false, jsonrpc.ReasonHistoryTime: true,
	} {
		s, h := startHistory(t, []chain.Range{{From: 20, To: 40}}, func(_ *fakeStore, h *fakeHistory, _ *Options) {
			h.sources = []fakeSource{{id: "first", fail: failed(reason), at: 7}, {id: "second", fail: failed(reason), at: 5}}
		})
		for _, call := range append(callsOf(9), logsOf(3, 30, "")) {
			wantReason(t, s, call, reason, retryable)
		}
		if n := len(h.requests()); n != len(callsOf(9))+1 {
			t.Errorf("%s: %d requests", reason, n)
		}
	}
	// What was retained all along is answered without history.
	s, h := startHistory(t, []chain.Range{{From: 20, To: 40}}, nil)
	if got := s.post(logsOf(20, 39, "")); strings.Contains(got, "error") || len(h.requests()) > 0 {
		t.Errorf("got %s", got)
	}
}

// RPC-133, RPC-144, RPC-147: frames out of order, without parents or receipts, too many, too few, or that do not fit the retained
// blocks on either side or the final block, are never part of an answer.
func TestHistoryDoesNotFit(t *testing.T) {
	const from, to = 10, 20 // what is missing
	for _, c := range []struct {
		name   string
		change func(chain.Block) []chain.Block
		reason string
		only   string // call; default a log query over all
	}{
		{"another first block", only(from, withParent), jsonrpc.ReasonHistoryHandoff, ""},
		{"another last block", only(to-1, withHash), jsonrpc.ReasonHistoryHandoff, ""},
		{"a fork inside", only(14, withHash), jsonrpc.ReasonHistoryInvalid, ""},
		{"a broken link", only(14, withParent), jsonrpc.ReasonHistoryInvalid, ""},
		{"no receipts", only(14, withoutReceipts), jsonrpc.ReasonHistoryInvalid, ""},
		{"a block twice", only(14, twice), jsonrpc.ReasonHistoryInvalid, ""},
		{"the last block twice", only(to-1, twice), jsonrpc.ReasonHistoryInvalid, ""},
		{"a block left out", only(14, never), jsonrpc.ReasonHistoryInvalid, ""},
		{"the last block left out", only(to-1, never), jsonrpc.ReasonHistoryIncomplete, ""},
		{"nothing", never, jsonrpc.ReasonHistoryIncomplete, ""},
		{"not the final block", only(16, withHash), jsonrpc.ReasonHistoryHandoff, callsOf(16)[0]},
		{"a single block behind another", only(from, withParent), jsonrpc.ReasonHistoryHandoff, callsOf(from)[0]},
		{"a single block before another", only(to-1, withHash), jsonrpc.ReasonHistoryHandoff, callsOf(to - 1)[2]},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, _ := startHistory(t, []chain.Range{{From: 0, To: from}, {From: to, To: 40}}, func(store *fakeStore, h *fakeHistory, _ *Options) {
				h.sources[0].change = c.change
				store.finalized = &store.blocks[16].BlockRef
			})
			call := c.only
			if call == "" {
				call = logsOf(0, 39, "")
			}
			wantReason(t, s, call, c.reason, false)
		})
	}
}

// RPC-145, INV-33: a source that fails after half of the blocks leaves nothing in the answer, nor does one of which the
// last block does not fit.
func TestHistoryFailsOver(t *testing.T) {
	whole := startWhole(t, nil)
	want := whole.post(logsOf(0, 39, ""))
	for name, first := range map[string]fakeSource{
		"fails":     {id: "first", fail: failed(jsonrpc.ReasonHistoryFailed), at: 15},
		"misfits":   {id: "first", change: only(19, withHash)},
		"too short": {id: "first", change: only(12, never)},
	} {
		s, _ := startHistory(t, []chain.Range{{From: 2, To: 10}, {From: 20, To: 40}}, func(_ *fakeStore, h *fakeHistory, _ *Options) {
			// What the first one gives shows in the answer if it stays.
			inner := first.change
			first.change = func(b chain.Block) []chain.Block {
				b.Logs = slices.Clone(b.Logs)
				for i := range b.Logs {
					b.Logs[i].Address = &quietAddress
				}
				if inner != nil {
					return inner(b)
				}
				return []chain.Block{b}
			}
			h.sources = []fakeSource{first, {id: "second"}}
		})
		a := s.do(http.MethodPost, logsOf(0, 39, ""))
		if a.body != want {
			t.Errorf("%s: got %.500s", name, a.body)
		}
		if got := a.header.Get("Leani-Answer"); !strings.HasPrefix(got, `source=(store "second"), path=mixed`) {
			t.Errorf("%s: got %s", name, got)
		}
	}
}

// RPC-092, RPC-093: a number above the head is null and never fetched, also on an empty store.
func TestHistoryAboveHead(t *testing.T) {
	s, h := startHistory(t, []chain.Range{{From: 5, To: 8}}, nil)
	for _, call := range callsOf(8) {
		if got := s.post(call); got != `{"jsonrpc":"2.0","id":1,"result":null}` {
			t.Errorf("%s: got %s", call, got)
		}
	}
	if got := s.post(logsOf(5, 8, "")); !strings.Contains(got, "-32602") {
		t.Errorf("got %s", got)
	}
	if n := len(h.requests()); n > 0 {
		t.Errorf("%d requests", n)
	}
	if got := s.post(callOf("eth_blockNumber", "")); !strings.Contains(got, `"0x7"`) {
		t.Errorf("got %s", got)
	}

	empty, h := startHistory(t, nil, nil)
	wantReason(t, empty, callOf("eth_getBlockByNumber", `"latest",false`), jsonrpc.ReasonBlockNotRetained, false)
	for _, call := range callsOf(1) {
		if got := empty.post(call); got != `{"jsonrpc":"2.0","id":1,"result":null}` {
			t.Errorf("%s: got %s", call, got)
		}
	}
	if n := len(h.requests()); n > 0 {
		t.Errorf("%d requests", n)
	}
	if got := empty.post(callsOf(0)[0]); !strings.Contains(got, `"number":"0x0"`) {
		t.Errorf("got %s", got)
	}
}

// RPC-099: latest is the head also where only its number is known, and then its block is fetched. So is a finalized block
// that is not retained.
func TestHistoryOfTags(t *testing.T) {
	head := uint64(30)
	whole := startWhole(t, nil)
	s, _ := startHistory(t, []chain.Range{{From: 0, To: 5}}, func(store *fakeStore, _ *fakeHistory, _ *Options) {
		store.head, store.finalized = &head, &store.blocks[20].BlockRef
	})
	for tag, number := range map[string]uint64{"latest": head, "finalized": 20, "safe": 20, "earliest": 0} {
		got := s.post(callOf("eth_getBlockByNumber", `"`+tag+`",true`))
		if want := whole.post(callsOf(number)[1]); got != want {
			t.Errorf("%s: got %.200s", tag, got)
		}
	}
}

// RPC-095, RPC-096, SRC-059: a hash is looked up only where history can, and then one that no block has is null.
func TestHistoryByHash(t *testing.T) {
	store := newFakeStore(t, 40)
	calls := func(hash string) []string {
		return []string{
			callOf("eth_getBlockByHash", hash+",true"), callOf("eth_getBlockTransactionCountByHash", hash), callOf("eth_getBlockReceipts", hash),
			callOf("eth_getTransactionByBlockHashAndIndex", hash+`,"0x0"`),
		}
	}
	unknown := `"0x` + strings.Repeat("ab", 32) + `"`
	missing := `"` + store.blocks[10].Hash.Hex() + `"`
	orphan := `"` + store.blocks[37].Hash.Hex() + `"`
	retained := []chain.Range{{From: 20, To: 37}}

	s, h := startHistory(t, retained, nil)
	for _, call := range slices.Concat(calls(unknown), calls(missing)) {
		wantReason(t, s, call, jsonrpc.ReasonBlockNotRetained, false)
	}
	wantReason(t, s, callOf("eth_getLogs", `{"blockHash":`+missing+`}`), jsonrpc.ReasonBlockHashNotRetained, false)
	if h.looked > 0 || len(h.requests()) > 0 {
		t.Error("history was asked by hash")
	}

	whole := startWhole(t, nil)
	s, h = startHistory(t, retained, func(_ *fakeStore, h *fakeHistory, _ *Options) { h.hashes = true })
	for _, call := range slices.Concat(calls(unknown), calls(orphan)) { // of which one lies above the head
		if got := s.post(call); got != `{"jsonrpc":"2.0","id":1,"result":null}` {
			t.Errorf("%s: got %s", call, got)
		}
	}
	for _, call := range append(calls(missing), callOf("eth_getLogs", `{"blockHash":`+missing+`}`)) {
		if got, want := s.post(call), whole.post(call); got != want {
			t.Errorf("%s\ngot  %s\nwant %s", call, got, want)
		}
	}
	wantReason(t, s, callOf("eth_getLogs", `{"blockHash":`+unknown+`}`), jsonrpc.ReasonBlockHashNotRetained, false)
	h.sources[0].change = withHash
	for _, call := range calls(missing) {
		wantReason(t, s, call, jsonrpc.ReasonHistoryInvalid, false)
	}
}

// RPC-148: transactions and receipts by hash never ask history.
func TestHistoryNotByTransaction(t *testing.T) {
	store := newFakeStore(t, 40)
	s, h := startHistory(t, []chain.Range{{From: 20, To: 40}}, func(_ *fakeStore, h *fakeHistory, _ *Options) { h.hashes = true })
	hash := `"` + store.blocks[7].TransactionHashes[0].Hex() + `"`
	for _, method := range []string{"eth_getTransactionByHash", "eth_getTransactionReceipt"} {
		wantReason(t, s, callOf(method, hash), jsonrpc.ReasonTransactionNotRetained, false)
	}
	if len(h.requests()) > 0 || h.looked > 0 {
		t.Error("history was asked")
	}
}

// RPC-141: without history a block that is not retained is refused, and the capabilities say so.
func TestHistoryDisabled(t *testing.T) {
	s, h := startHistory(t, []chain.Range{{From: 20, To: 40}}, func(_ *fakeStore, _ *fakeHistory, o *Options) { o.History = nil })
	for _, call := range callsOf(7) {
		wantReason(t, s, call, jsonrpc.ReasonBlockNotRetained, false)
	}
	if got := s.post(logsOf(7, 30, "")); !strings.Contains(got, jsonrpc.ReasonLogRange) {
		t.Errorf("got %s", got)
	}
	if len(h.requests()) > 0 {
		t.Error("history was asked")
	}
}

// RPC-149, RPC-202: the header says what was fetched and from where, and how final it is; the capabilities say what would be.
func TestHistoryProvenance(t *testing.T) {
	s, _ := startHistory(t, []chain.Range{{From: 10, To: 20}, {From: 30, To: 40}}, func(store *fakeStore, h *fakeHistory, _ *Options) {
		store.recent = chain.Range{From: 35, To: 40}
		store.finalized, store.attested = &store.blocks[25].BlockRef, &store.blocks[32].BlockRef
		h.sources = []fakeSource{{id: `a "mirror"`, trust: "trusted_dataset"}, {id: "other"}}
	})
	const fetched = `source="a \"mirror\"", path=on_demand, finality=`
	for call, want := range map[string]string{
		callsOf(5)[0]:      fetched + "unattested, trust=trusted_dataset", // no link to a retained block is known
		callsOf(9)[0]:      fetched + "finalized, trust=trusted_dataset",
		callsOf(29)[0]:     fetched + "attested, trust=trusted_dataset",
		callsOf(12)[0]:     "source=store, path=materialized, finality=finalized",
		logsOf(5, 12, ""):  `source=(store "a \"mirror\""), path=mixed, finality=finalized, trust=trusted_dataset`,
		logsOf(29, 39, ""): `source=(store "a \"mirror\""), path=mixed, finality=unattested, trust=trusted_dataset`,
		"[" + callsOf(9)[0] + "," + callsOf(12)[0] + "]": `source=(store "a \"mirror\""), path=mixed, finality=finalized, trust=trusted_dataset`,
	} {
		if got := s.do(http.MethodPost, call).header.Get("Leani-Answer"); got != want {
			t.Errorf("%s\ngot  %s\nwant %s", call, got, want)
		}
	}
	got := s.post(callOf("leani_getCapabilities", ""))
	for _, want := range []string{
		`"historicalMode":"on_demand"`,
		`"onDemandHistory":{"configured":true,"exactBlocks":true,"exactReceipts":true,"blockHashLocators":false,"transactionHashLocators":false,"exactLogs":true}`,
		`"sources":["store","a \"mirror\"","other"]`,
		`"on_demand":[{"fromBlock":0,"toBlock":9},{"fromBlock":20,"toBlock":29}]`,
		`"eth_getBlockByNumber":{"supported":true,"coverage":"retained_recent_and_compatible_history_lookup"}`,
		`"eth_getBlockByHash":{"supported":true,"coverage":"retained_recent_window"}`,
		`"eth_getTransactionByHash":{"supported":true,"coverage":"retained_recent_window"}`,
		`"eth_getLogs":{"supported":true,"coverage":"retained_recent_and_on_demand","maximumRange":1024,"maximumResults":10000}`,
	} {
		if !strings.Contains(got, want) {
			t.Errorf("%s is missing in %s", want, got)
		}
	}
}

// eth_getFilterLogs goes the same way.
func TestHistoryOfFilters(t *testing.T) {
	s, h := startHistory(t, []chain.Range{{From: 20, To: 40}}, nil)
	whole := startWhole(t, nil)
	var ids []string
	for _, server := range []*testServer{s, whole} {
		a := server.post(callOf("eth_newFilter", `{"fromBlock":"0x3","toBlock":"0x19"}`))
		_, id, _ := strings.Cut(a, `"result":`)
		ids = append(ids, strings.TrimSuffix(id, "}"))
	}
	if got, want := s.post(callOf("eth_getFilterLogs", ids[0])), whole.post(callOf("eth_getFilterLogs", ids[1])); got != want || !strings.Contains(got, "0x3") {
		t.Errorf("got %.300s\nwant %.300s", got, want)
	}
	if n := len(h.requests()); n != 1 {
		t.Errorf("%d requests", n)
	}
}

// RPC-143: a request that fetches has the time that history has, and its own reason when that is over.
func TestHistoryTime(t *testing.T) {
	hang := func(ctx context.Context, _ HistoryRequest) error {
		<-ctx.Done()
		return ctx.Err()
	}
	var store *fakeStore
	inBubble(t, func(o *Options) {
		store = o.Store.(*fakeStore)
		store.coverage = []chain.Range{{From: 4, To: 8}}
		h := historyOf(store)
		h.before = hang
		o.History = h
	}, func(t *testing.T, s *Server) {
		client, done := serve(s)
		_ = client.Close()
		done()
		begin := time.Now()
		got := askAlone(t, s, "["+callsOf(2)[0]+","+callsOf(6)[0]+"]")
		if !strings.Contains(got, `"reason":"historical_request_timed_out","retryable":true`) {
			t.Errorf("got %s", got)
		}
		if took := time.Since(begin); took != 60*time.Second {
			t.Errorf("took %v", took)
		}
	})
}

// A batch that holds memory of responses does not wait for a place, and what finds none is told so.
func TestHistoryBusy(t *testing.T) {
	s, h := startHistory(t, []chain.Range{{From: 20, To: 40}}, func(_ *fakeStore, h *fakeHistory, _ *Options) {
		h.before = func(context.Context, HistoryRequest) error { return &HistoryBusyError{2} }
	})
	if got := s.post(callsOf(2)[0]); !strings.Contains(got, `"code":-32005`) || !strings.Contains(got, `{"reason":"concurrency_limit_exceeded","limit":2}`) {
		t.Errorf("got %s", got)
	}
	var long []string
	for range 40 {
		long = append(long, logsOf(20, 39, ""))
	}
	s.post("[" + strings.Join(long, ",") + "," + callsOf(2)[0] + "]")
	if r := h.requests(); r[0].Impatient || !r[1].Impatient {
		t.Errorf("got %+v", r)
	}
}

// A forced shutdown ends a fetch.
func TestHistoryShutdown(t *testing.T) {
	running, ended := make(chan struct{}), make(chan error, 1)
	s, _ := startHistory(t, []chain.Range{{From: 20, To: 40}}, func(_ *fakeStore, h *fakeHistory, _ *Options) {
		h.before = func(ctx context.Context, _ HistoryRequest) error {
			close(running)
			<-ctx.Done()
			ended <- ctx.Err()
			return ctx.Err()
		}
	})
	answered := make(chan struct{})
	go func() { // the connection may be cut before there is an answer
		defer close(answered)
		if r, err := s.client.Post("http://leani.test/", "application/json", strings.NewReader(callsOf(2)[0])); err == nil {
			_ = r.Body.Close()
		}
	}()
	<-running
	now, cancel := context.WithCancel(context.Background())
	cancel()
	_ = s.Shutdown(now)
	if err := <-ended; err != context.Canceled {
		t.Errorf("got %v", err)
	}
	<-answered
}

// A client that closes its connection ends what is fetched for it; the next request on a connection that stays is served.
func TestHistoryClientGone(t *testing.T) {
	running, ended := make(chan struct{}, 1), make(chan error, 1)
	s, h := startHistory(t, []chain.Range{{From: 20, To: 40}}, nil)
	address := s.overTCP()
	ask := func(body string) net.Conn {
		conn, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		for range 2 { // both are served, one after the other
			if _, err := fmt.Fprintf(conn, "POST / HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(body), body); err != nil {
				t.Fatal(err)
			}
			if h.before != nil {
				return conn
			}
			response, err := http.ReadResponse(bufio.NewReader(conn), nil)
			if err != nil {
				t.Fatal(err)
			}
			text, err := io.ReadAll(response.Body)
			if err != nil || !strings.Contains(string(text), `"number":"0x3"`) {
				t.Fatalf("got %s, %v", text, err)
			}
		}
		return conn
	}
	_ = ask(callsOf(3)[0]).Close()

	h.before = func(ctx context.Context, _ HistoryRequest) error {
		running <- struct{}{}
		<-ctx.Done()
		ended <- ctx.Err()
		return ctx.Err()
	}
	conn := ask(callsOf(3)[0])
	<-running
	_ = conn.Close()
	if err := <-ended; err != context.Canceled {
		t.Errorf("got %v", err)
	}
}

// A panic of a method that is reading ends its call alone.
func TestHistoryPanic(t *testing.T) {
	s, _ := startHistory(t, []chain.Range{{From: 20, To: 40}}, func(_ *fakeStore, h *fakeHistory, o *Options) {
		h.before = func(context.Context, HistoryRequest) error { panic("a bug") }
	})
	if got := s.post(callsOf(2)[0]); !strings.Contains(got, "-32603") {
		t.Errorf("got %s", got)
	}
	if got := s.post(callsOf(22)[0]); strings.Contains(got, "error") {
		t.Errorf("got %s", got)
	}

	s, _ = startHistory(t, []chain.Range{{From: 20, To: 40}}, func(_ *fakeStore, _ *fakeHistory, o *Options) {
		o.newEncoder = stubbed(brokenEncoder{})
	})
	for _, call := range []string{callsOf(2)[0], logsOf(2, 30, "")} {
		if got := s.post(call); !strings.Contains(got, "-32603") {
			t.Errorf("got %s", got)
		}
	}
}

// brokenEncoder panics.
type brokenEncoder struct{ stubEncoder }

func (brokenEncoder) AppendBlock([]byte, *chain.Block, bool) ([]byte, error) { panic("a bug") }
func (brokenEncoder) AppendLog([]byte, *chain.FoundLog) []byte               { panic("a bug") }
