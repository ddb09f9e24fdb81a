package rpc

import (
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/leani-go/leani/api/jsonrpc"
	"github.com/leani-go/leani/chain"
	"github.com/leani-go/leani/internal/chainfixture"
	"github.com/leani-go/leani/internal/shareddata"
)

// ioCase is one case of the JSON-RPC conformance suite of ethereum/execution-apis: calls and
// the answers a client gives to them on the chain of the suite.
type ioCase struct {
	name string
	// specOnly cases fix the shape of the answer, not its values.
	specOnly bool
	exchange []ioExchange
}

type ioExchange struct{ request, response string }

// readCases reads the cases of a method: lines ">> request" and "<< response", and comments.
func readCases(t *testing.T, folder, method string) []ioCase {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(folder, method, "*.io"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("no cases for %s: %v", method, err)
	}
	var cases []ioCase
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		cases = append(cases, parseCase(strings.TrimSuffix(filepath.Base(path), ".io"), string(text)))
	}
	return cases
}

func parseCase(name, text string) ioCase {
	c := ioCase{name: name}
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		switch {
		case strings.HasPrefix(line, "// speconly:"):
			c.specOnly = true
		case strings.HasPrefix(line, ">> "):
			c.exchange = append(c.exchange, ioExchange{request: line[3:]})
		case strings.HasPrefix(line, "<< "):
			c.exchange[len(c.exchange)-1].response = line[3:]
		}
	}
	return c
}

// run plays a case against a server. Errors are compared by code: their texts are the client's
// own.
func (c *ioCase) run(t *testing.T, post func(string) string) {
	for _, e := range c.exchange {
		got, want := parseResponse(t, post(e.request)), parseResponse(t, e.response)
		if c.specOnly {
			if (got["error"] == nil) != (want["error"] == nil) {
				t.Errorf("%s\ngot  %v\nwant %v", e.request, got, want)
			}
			continue
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s (-want +got)\n%s", e.request, cmp.Diff(want, got))
		}
	}
}

// parseResponse reads a response; of an error only the code is kept.
func parseResponse(t *testing.T, text string) map[string]any {
	t.Helper()
	response, ok := parseAny(t, text).(map[string]any)
	if !ok {
		t.Fatalf("no response: %.200s", text)
	}
	if e, ok := response["error"].(map[string]any); ok {
		response["error"] = e["code"]
	}
	return response
}

// TestConformance plays the suite against a store that holds its chain in memory, with the last
// block finalized as the suite wants it, and compares answers for the whole chain with those of
// go-ethereum.
func TestConformance(t *testing.T) {
	if raceEnabled {
		t.Skip("one client after the other and much JSON: nothing for the race detector, and slow with it")
	}
	blocks := chainfixture.ConformanceChain(t)
	store := &fakeStore{
		blocks:    make(map[uint64]*chain.Block),
		coverage:  []chain.Range{{From: 0, To: uint64(len(blocks))}},
		finalized: &blocks[len(blocks)-1].BlockRef,
	}
	for _, b := range blocks {
		store.blocks[b.Number] = &b.Block
	}
	s := startServer(t, store, func(o *Options) {
		o.Network, o.newEncoder = conformanceNetwork(t), nil
		o.Live = func() LiveStatus { return LiveStatus{Running: true, Ready: true} } // as the case of eth_syncing has it
		o.Limits.MaxResponseBytes = 64 << 20                                         // block 2 has logs of 21 MB
	})
	t.Run("cases", func(t *testing.T) { testServedCases(t, s) })
	t.Run("refusals", func(t *testing.T) { testRefusedCases(t, s) })
	t.Run("chain", func(t *testing.T) { testWholeChain(t, s, blocks) })
}

func conformanceNetwork(t *testing.T) *chain.Network {
	t.Helper()
	file, err := os.Open(shareddata.Path(t, "execution-apis", "tests", "genesis.json"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	network, err := chain.LoadGenesis("conformance", file)
	if err != nil {
		t.Fatal(err)
	}
	return network
}

// refusedCases are the methods of the suite that the node does not serve, each with why. Together with the
// served ones they are all of the suite.
func refusedCases() map[string]string {
	const (
		state    = "needs state or execution"
		raw      = "gives encodings, for debugging"
		mempool  = "needs a mempool"
		planned  = "not served"
		building = "builds blocks"
	)
	return map[string]string{
		"eth_call": state, "eth_createAccessList": state, "eth_estimateGas": state, "eth_getBalance": state, "eth_getCode": state,
		"eth_getProof": state, "eth_getStorageAt": state, "eth_getStorageValues": state, "eth_getTransactionCount": state,
		"eth_simulateV1": state, "debug_traceBlockByHash": state, "debug_traceBlockByNumber": state, "debug_traceTransaction": state,
		"debug_getRawBlock": raw, "debug_getRawHeader": raw, "debug_getRawReceipts": raw, "debug_getRawTransaction": raw,
		"eth_sendRawTransaction": mempool, "txpool_content": mempool, "txpool_contentFrom": mempool, "txpool_status": mempool,
		"eth_baseFee": planned, "eth_blobBaseFee": planned, "eth_capabilities": planned,
		"testing_buildBlockV1": building,
	}
}

// suiteMethods are the methods that the suite has cases for.
func suiteMethods(t *testing.T, folder string) (methods []string) {
	t.Helper()
	entries, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if e.IsDir() {
			methods = append(methods, e.Name())
		}
	}
	return methods
}

// RPC-090, RPC-102: every case of the suite for the methods we serve gets the answer that the
// suite has, errors with the same code. No method of the suite is left out.
func testServedCases(t *testing.T, s *testServer) {
	folder, refused := shareddata.Path(t, "execution-apis", "tests"), refusedCases()
	for _, method := range suiteMethods(t, folder) {
		_, served := s.service.methods[method]
		if _, listed := refused[method]; listed == served {
			t.Errorf("%s: served %v, listed as refused %v", method, served, listed)
		}
		if !served {
			continue
		}
		t.Run(method, func(t *testing.T) {
			cases := readCases(t, folder, method)
			for i := range cases {
				t.Run(cases[i].name, func(t *testing.T) { cases[i].run(t, s.post) })
			}
			t.Logf("%d cases", len(cases))
		})
	}
	// The suite has one more case for eth_getLogs, kept apart for its size.
	t.Run("no-topics", func(t *testing.T) {
		file, err := os.Open(shareddata.Path(t, "execution-apis", "regenerated", "no-topics.io.gz"))
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = file.Close() }()
		unpacked, err := gzip.NewReader(file)
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(unpacked)
		if err != nil {
			t.Fatal(err)
		}
		c := parseCase("no-topics", string(text))
		c.run(t, s.post)
	})
}

// RPC-053: methods that need state fail on every case of the suite; none answers null, zero or
// an empty value.
func testRefusedCases(t *testing.T, s *testServer) {
	folder := shareddata.Path(t, "execution-apis", "tests")
	refused := refusedCases()
	for _, method := range slices.Sorted(maps.Keys(refused)) {
		cases := readCases(t, folder, method)
		for _, c := range cases {
			for _, e := range c.exchange {
				if asked, _ := parseAny(t, e.request).(map[string]any)["method"].(string); s.service.methods[asked] != nil {
					helper := ioCase{specOnly: c.specOnly, exchange: []ioExchange{e}} // a question on the way
					helper.run(t, s.post)
					continue
				}
				got := parseResponse(t, s.post(e.request))
				code := fmt.Sprint(got["error"])
				if got["result"] != nil || code != fmt.Sprint(jsonrpc.CodeMethodNotFound) && code != fmt.Sprint(jsonrpc.CodeUnavailable) {
					t.Errorf("%s %s: got %v", method, c.name, got)
				}
			}
		}
		t.Logf("%s: %d cases are refused: %s", method, len(cases), refused[method])
	}
}

// RPC-102, RPC-103: answers for all blocks of the chain of the suite, which has every type of
// transaction, ommers and withdrawals, equal go-ethereum's, by number and by hash, and so does
// every transaction and receipt by hash and by place. The logs of a block are those of its
// receipts.
func testWholeChain(t *testing.T, s *testServer, blocks []*chainfixture.Block) {
	ask := func(method, params string) string {
		t.Helper()
		text := s.post(fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"%s","params":%s}`, method, params))
		result, ok := strings.CutPrefix(text, `{"jsonrpc":"2.0","id":1,"result":`)
		if !ok {
			t.Fatalf("%s %s: %.300s", method, params, text)
		}
		return strings.TrimSuffix(result, "}")
	}
	same := func(got, want any) {
		t.Helper()
		if !reflect.DeepEqual(got, want) {
			t.Errorf("(-want +got)\n%s", cmp.Diff(want, got))
		}
	}
	for _, b := range blocks {
		number, hash := fmt.Sprintf(`"%#x"`, b.Number), fmt.Sprintf(`"%s"`, b.Hash)
		block := ask(jsonrpc.GetBlockByNumber, "["+number+",true]")
		same(ask(jsonrpc.GetBlockByHash, "["+hash+",true]"), block)
		same(parseAny(t, block), parseAny(t, string(b.Answer)))
		logs := ask(jsonrpc.GetLogs, fmt.Sprintf(`[{"fromBlock":%s,"toBlock":%s}]`, number, number))
		same(ask(jsonrpc.GetLogs, fmt.Sprintf(`[{"blockHash":%s}]`, hash)), logs)
		if len(b.Logs) > 1000 {
			continue // one block has 21 MB of logs; a case of the suite covers them
		}
		receipts := ask(jsonrpc.GetBlockReceipts, "["+number+"]")
		same(ask(jsonrpc.GetBlockReceipts, "["+hash+"]"), receipts)
		same(parseAny(t, receipts), parseAny(t, string(b.AnswerReceipts)))
		allReceipts := parseAny(t, receipts).([]any)
		ofReceipts := []any{}
		for i, tx := range parseAny(t, block).(map[string]any)["transactions"].([]any) {
			txHash := fmt.Sprintf(`["%s"]`, tx.(map[string]any)["hash"])
			same(parseAny(t, ask(jsonrpc.GetTransactionByHash, txHash)), tx)
			same(parseAny(t, ask(jsonrpc.GetTransactionReceipt, txHash)), allReceipts[i])
			same(parseAny(t, ask(jsonrpc.GetTransactionByBlockNumberAndIndex, fmt.Sprintf(`[%s,"%#x"]`, number, i))), tx)
			same(parseAny(t, ask(jsonrpc.GetTransactionByBlockHashAndIndex, fmt.Sprintf(`[%s,"%#x"]`, hash, i))), tx)
			ofReceipts = append(ofReceipts, allReceipts[i].(map[string]any)["logs"].([]any)...)
		}
		same(parseAny(t, logs), any(ofReceipts))
	}
}

func parseAny(t *testing.T, text string) (v any) {
	t.Helper()
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.UseNumber()
	if err := decoder.Decode(&v); err != nil {
		t.Fatal(err)
	}
	return v
}
