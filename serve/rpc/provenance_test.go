package rpc

import (
	"net/http"
	"strings"
	"testing"

	"github.com/leani-go/leani/chain"
)

// RPC-149: an answer over HTTP says its source, path and finality: of a batch all answers
// together, of an error nothing. The capabilities say the same of any block.
func TestProvenance(t *testing.T) {
	store := newFakeStore(t, 12)
	store.recent = chain.Range{From: 6, To: 12}
	store.finalized, store.attested = &store.blocks[4].BlockRef, &store.blocks[8].BlockRef
	s := startServer(t, store, nil)
	call := func(method, params string) string {
		return `{"jsonrpc":"2.0","id":1,"method":"` + method + `","params":[` + params + `]}`
	}
	block := func(n string) string { return call("eth_getBlockByNumber", `"`+n+`",false`) }
	logs := func(from, to string) string {
		return call("eth_getLogs", `{"fromBlock":"`+from+`","toBlock":"`+to+`"}`)
	}
	for body, want := range map[string]string{
		call("eth_chainId", ""):     "source=node",
		call("eth_blockNumber", ""): "source=store",
		block("0x63"):               "source=store", // null
		block("0x3"):                "source=store, path=materialized, finality=finalized",
		block("0x4"):                "source=store, path=materialized, finality=finalized",
		block("0x5"):                "source=store, path=materialized, finality=attested",
		block("0x8"):                "source=store, path=recent, finality=attested",
		block("latest"):             "source=store, path=recent, finality=unattested",
		block("pending"):            "",
		call("eth_call", "{}"):      "",
		`{"jsonrpc":"2.0","method":"eth_chainId"}`:               "",
		logs("0x0", "0x4"):                                       "source=store, path=materialized, finality=finalized",
		logs("0x5", "0x6"):                                       "source=store, path=mixed, finality=attested",
		logs("0x6", "0xb"):                                       "source=store, path=recent, finality=unattested",
		call("eth_feeHistory", `"0x3","0x7"`):                    "source=store, path=mixed, finality=attested",
		"[" + block("0x3") + "," + block("0x8") + "]":            "source=store, path=mixed, finality=attested",
		"[" + block("0x3") + "," + block("pending") + "]":        "source=store, path=materialized, finality=finalized",
		"[" + call("eth_chainId", "") + "," + block("0x3") + "]": "source=store, path=materialized, finality=finalized",
	} {
		if got := s.do(http.MethodPost, body).header.Get("Leani-Answer"); got != want {
			t.Errorf("%s\ngot  %q\nwant %q", body, got, want)
		}
	}
	const want = `"provenance":{"header":"leani-answer","sources":["store"],` +
		`"paths":{"recent":[{"fromBlock":6,"toBlock":11}],"materialized":[{"fromBlock":0,"toBlock":5}]},` +
		`"finality":{"finalized":4,"attested":8}}`
	if got := s.post(call("leani_getCapabilities", "")); !strings.Contains(got, want) {
		t.Errorf("got %s", got)
	}
}
