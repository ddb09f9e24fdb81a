package rpc

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
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
	decoder := json.NewDecoder(bytes.NewReader([]byte(text)))
	decoder.UseNumber()
	var response map[string]any
	if err := decoder.Decode(&response); err != nil {
		t.Fatalf("%v in %.200s", err, text)
	}
	if e, ok := response["error"].(map[string]any); ok {
		response["error"] = e["code"]
	}
	return response
}

// conformanceStore holds the chain of the suite in memory, with its last block finalized as the
// suite wants it.
func conformanceStore(t *testing.T) *fakeStore {
	t.Helper()
	s := &fakeStore{blocks: make(map[uint64]*chain.Block)}
	for _, b := range chainfixture.ConformanceChain(t) {
		s.blocks[b.Number] = &b.Block
		s.finalized = &b.BlockRef
	}
	s.coverage = []chain.Range{{From: 0, To: uint64(len(s.blocks))}}
	return s
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

// RPC-090, RPC-102: every case of the suite for the methods we serve gets the answer that the
// suite has, errors with the same code.
//
// The one exception is eth_syncing, whose case wants false: only a node that follows the head
// live may say that (RPC-069).
func TestConformance(t *testing.T) {
	folder := shareddata.Path(t, "execution-apis", "tests")
	s := startServer(t, conformanceStore(t), func(o *Options) {
		o.Network, o.newEncoder = conformanceNetwork(t), nil
		o.Limits.MaxResponseBytes = 64 << 20 // block 2 has logs of 21 MB
	})
	methods := []string{jsonrpc.NetVersion, jsonrpc.ChainID, jsonrpc.BlockNumber, jsonrpc.Config, jsonrpc.GetLogs}
	for _, method := range append(methods, retainedMethods()...) {
		t.Run(method, func(t *testing.T) {
			for _, c := range readCases(t, folder, method) {
				t.Run(c.name, func(t *testing.T) { c.run(t, s.post) })
			}
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
func TestConformanceRefusals(t *testing.T) {
	folder := shareddata.Path(t, "execution-apis", "tests")
	s := startServer(t, conformanceStore(t), nil)
	for _, method := range []string{
		"eth_call", "eth_createAccessList", "eth_estimateGas", "eth_feeHistory", "eth_getBalance", "eth_getCode",
		"eth_getProof", "eth_getStorageAt", "eth_getStorageValues", "eth_getTransactionCount", "eth_sendRawTransaction",
		"eth_simulateV1", "eth_baseFee", "eth_blobBaseFee", "debug_getRawBlock", "debug_traceTransaction", "txpool_status",
	} {
		for _, c := range readCases(t, folder, method) {
			for _, e := range c.exchange {
				got := parseResponse(t, s.post(e.request))
				code := fmt.Sprint(got["error"])
				if got["result"] != nil || code != fmt.Sprint(jsonrpc.CodeMethodNotFound) && code != fmt.Sprint(jsonrpc.CodeUnavailable) {
					t.Errorf("%s %s: got %v", method, c.name, got)
				}
			}
		}
	}
}

// Answers for all blocks of the chain of the suite equal go-ethereum's, by number and by hash, and
// so does every transaction and receipt by hash and by place.
func TestConformanceChain(t *testing.T) {
	blocks := chainfixture.ConformanceChain(t)
	s := startServer(t, conformanceStore(t), func(o *Options) {
		o.Network, o.newEncoder = conformanceNetwork(t), nil
		o.Limits.MaxResponseBytes = 64 << 20 // block 2 has logs of 21 MB
	})
	ask := func(method, params string) any {
		t.Helper()
		got := parseResponse(t, s.post(fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"%s","params":%s}`, method, params)))
		if got["error"] != nil {
			t.Fatalf("%s %s: %v", method, params, got["error"])
		}
		return got["result"]
	}
	same := func(got, want any) {
		t.Helper()
		if !reflect.DeepEqual(got, want) {
			t.Errorf("(-want +got)\n%s", cmp.Diff(want, got))
		}
	}
	for _, b := range blocks {
		number, hash := fmt.Sprintf(`"%#x"`, b.Number), fmt.Sprintf(`"%s"`, b.Hash)
		block := ask(jsonrpc.GetBlockByNumber, "["+number+",true]").(map[string]any)
		same(ask(jsonrpc.GetBlockByHash, "["+hash+",true]"), block)
		receipts := ask(jsonrpc.GetBlockReceipts, "["+number+"]").([]any)
		same(ask(jsonrpc.GetBlockReceipts, "["+hash+"]"), receipts)
		if b.Answer != nil {
			same(block, parseAny(t, b.Answer))
			same(any(receipts), parseAny(t, b.AnswerReceipts))
		}
		var logs []any
		for i, tx := range block["transactions"].([]any) {
			txHash := fmt.Sprintf(`["%s"]`, tx.(map[string]any)["hash"])
			same(ask(jsonrpc.GetTransactionByHash, txHash), tx)
			same(ask(jsonrpc.GetTransactionReceipt, txHash), receipts[i])
			same(ask(jsonrpc.GetTransactionByBlockNumberAndIndex, fmt.Sprintf(`[%s,"%#x"]`, number, i)), tx)
			same(ask(jsonrpc.GetTransactionByBlockHashAndIndex, fmt.Sprintf(`[%s,"%#x"]`, hash, i)), tx)
			logs = append(logs, receipts[i].(map[string]any)["logs"].([]any)...)
		}
		if logs == nil {
			logs = []any{}
		}
		same(ask(jsonrpc.GetLogs, fmt.Sprintf(`[{"fromBlock":%s,"toBlock":%s}]`, number, number)), logs)
		same(ask(jsonrpc.GetLogs, fmt.Sprintf(`[{"blockHash":%s}]`, hash)), logs)
	}
}

func parseAny(t *testing.T, text []byte) (v any) {
	t.Helper()
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	if err := decoder.Decode(&v); err != nil {
		t.Fatal(err)
	}
	return v
}
