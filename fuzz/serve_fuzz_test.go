package fuzz

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/leani-go/leani/engine/history"
	"github.com/leani-go/leani/serve/rpc"
)

// seedBodies ask for what the bundled blocks hold.
var seedBodies = []string{
	`{"jsonrpc":"2.0","id":1,"method":"eth_getLogs","params":[{"fromBlock":"0x103ee75","toBlock":"0x103ee76","topics":[null,[]]}]}`,
	`{"jsonrpc":"2.0","id":"a","method":"eth_getLogs","params":[{"fromBlock":"0x1286d1a","toBlock":"0x1286d1b","address":["0xdac17f958d2ee523a2206206994597c13d831ec7"],` +
		`"topics":["0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef"]}]}`,
	`[{"jsonrpc":"2.0","id":2,"method":"eth_getBlockByNumber","params":["0x156456b",true]},{"jsonrpc":"2.0","id":3,"method":"eth_blockNumber"}]`,
	`{"jsonrpc":"2.0","id":4,"method":"eth_getBlockReceipts","params":["0x156456c"]}`,
	`{"jsonrpc":"2.0","id":5,"method":"eth_getTransactionByBlockNumberAndIndex","params":["0x1286d1a","0x7"]}`,
	`{"jsonrpc":"2.0","id":6,"method":"leani_getCapabilities","params":[]}`,
	`{"jsonrpc":"2.0","id":7,"method":"eth_getLogs","params":[{"fromBlock":"latest","toBlock":"0x156456c","address":[]}]}`,
}

// FuzzServe sends bodies to two nodes that hold the same blocks in different ways: one file a block, read
// through a cache that holds next to nothing, without senders; and packed files with merged indexes and
// senders. Both answer alike, byte for byte, and what they answer is JSON that no call failed inside of.
func FuzzServe(f *testing.F) {
	for _, body := range seedBodies {
		f.Add([]byte(body))
	}
	small := bundledNode(f, history.Options{CacheBytes: 1, TargetBlocks: 1})
	f.Cleanup(func() { small.close(f) })
	packed := bundledNode(f, history.Options{})
	f.Cleanup(func() { packed.close(f) })
	if _, err := packed.history.Compact(f.Context()); err != nil {
		f.Fatal(err)
	}
	if err := packed.history.FillSenders(f.Context(), nil); err != nil {
		f.Fatal(err)
	}
	limits := rpc.Limits{MaxLogResults: 300, MaxBatchRequests: 8}
	a, b := small.serve(f, limits), packed.serve(f, limits)

	f.Fuzz(func(t *testing.T, body []byte) {
		if len(body) > 1<<16 {
			return
		}
		status, answer, err := a.post(body)
		if err != nil {
			t.Fatal(err)
		}
		other, want, err := b.post(body)
		if err != nil {
			t.Fatal(err)
		}
		if status != other || !bytes.Equal(answer, want) {
			t.Errorf("the stores answer differently: %d %s\n%d %s", status, answer, other, want)
		}
		if status != 200 || len(answer) == 0 {
			return
		}
		if !json.Valid(answer) {
			t.Errorf("no JSON: %s", answer)
		}
		if bytes.Contains(answer, []byte(`"code":-32603`)) {
			t.Errorf("a call failed inside the node: %s", answer)
		}
	})
}
