package rpc

import (
	"testing"

	lies "github.com/leani-go/leani/internal/announced"
)

// SEC-012: whatever numbers, lengths and nesting a request has, it takes memory in proportion to its text and its answer.
func TestAnnouncedSizes(t *testing.T) {
	store := newFakeStore(t, 8)
	o := Options{Store: store, Network: testNetwork(), newEncoder: stubbed(stubEncoder{}), Limits: Limits{MaxResponseBytes: 8 << 10}}.withDefaults()
	s := newService(o)
	t.Cleanup(s.close)
	lies.Sizes(t, 256<<10, 200, func(body []byte) { runBody(s, string(body)) },
		[]byte(`[{"jsonrpc":"2.0","id":12345678,"method":"eth_getLogs","params":[{"fromBlock":"0x1","toBlock":"0x12345678","topics":[[null]],"address":[]}]}]`),
		[]byte(`{"jsonrpc":"2.0","id":1,"method":"eth_feeHistory","params":["0x1000","latest",[1.5,99]]}`),
		[]byte(`{"jsonrpc":"2.0","id":1,"method":"eth_getTransactionByBlockNumberAndIndex","params":["0x3","0x12345678"]}`),
		[]byte(`{"jsonrpc":"2.0","id":1,"method":"eth_newFilter","params":[{"fromBlock":"0x1"}]}`))
}
