package rpc

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/leani-go/leani/api/jsonrpc"
	"github.com/leani-go/leani/chain"
)

// TestReasons provokes every reason that clients may meet, and compares it letter by letter: reasons do not change. What needs state has its reason in the capabilities and is no known method otherwise.
//
// RPC-052
func TestReasons(t *testing.T) {
	full := startServer(t, newFakeStore(t, 4), nil)
	empty := startServer(t, newFakeStore(t, 0), nil)
	partial := newFakeStore(t, 8)
	partial.coverage = []chain.Range{{From: 4, To: 8}}
	failing := func(err error) *testServer {
		store := newFakeStore(t, 4)
		store.onLoad = func(uint64) error { return err }
		return startServer(t, store, nil)
	}
	const unknown = `"0x00000000000000000000000000000000000000000000000000000000deadbeef"`
	holes := startServer(t, partial, nil)
	for _, c := range []struct {
		server         *testServer
		method, params string
		code           int
		reason         string
	}{
		{full, "eth_getBlockByNumber", `"pending",false`, -32004, "pending_block_unavailable"},
		{full, "eth_getBlockByNumber", `"finalized",false`, -32004, "finalized_block_unavailable"},
		{full, "eth_getBlockByNumber", `"safe",false`, -32004, "finalized_block_unavailable"},
		{holes, "eth_getBlockByNumber", `"0x1",false`, -32004, "block_not_retained"},
		{holes, "eth_getLogs", `{"blockHash":` + unknown + `}`, -32004, "block_hash_not_retained"},
		{holes, "eth_getTransactionByHash", unknown, -32004, "transaction_not_retained"},
		{holes, "eth_getLogs", `{"fromBlock":"0x3"}`, -32004, "requested_range_outside_recent_window"},
		{holes, "eth_feeHistory", `"0x1","0x2"`, -32004, "raw_execution_material_not_retained"},
		{empty, "eth_getLogs", `{}`, -32004, "latest_block_unavailable_for_open_log_range"},
		{empty, "eth_config", ``, -32004, "eth_config_head_timestamp_unavailable"},
		{failing(chain.ErrPredatesSchedule), "eth_config", ``, -32004, "eth_config_head_predates_schedule"},
		{failing(chain.ErrScheduleUnavailable), "eth_config", ``, -32004, "eth_config_chain_schedule_unavailable"},
		{failing(chain.ErrBlobScheduleUnavailable), "eth_getBlockReceipts", `"0x1"`, -32004, "blob_gas_price_schedule_unavailable"},
		{failing(chain.ErrExcessBlobGasMissing), "eth_getBlockReceipts", `"0x1"`, -32004, "header_excess_blob_gas_missing"},
		{failing(chain.ErrQuantityExceedsU128), "eth_getBlockReceipts", `"0x1"`, -32004, "quantity_exceeds_u128"},
	} {
		got := c.server.post(`{"jsonrpc":"2.0","id":1,"method":"` + c.method + `","params":[` + c.params + `]}`)
		if want := fmt.Sprintf(`"error":{"code":%d,"message":"Data unavailable","data":{"reason":"%s","retryable":false`, c.code, c.reason); !strings.Contains(got, want) {
			t.Errorf("%s %s: got %s\nwant %s", c.method, c.params, got, want)
		}
	}
	for _, c := range []struct {
		reason, text string
		retryable    bool
	}{
		{jsonrpc.ReasonNoHistorySource, "no_viable_historical_source", false},
		{jsonrpc.ReasonHistoryFailed, "historical_source_failed", true},
		{jsonrpc.ReasonHistoryInvalid, "historical_source_returned_invalid_material", false},
		{jsonrpc.ReasonHistoryBudget, "historical_request_budget_exceeded", false},
		{jsonrpc.ReasonHistoryRange, "historical_request_range_exceeded", false},
		{jsonrpc.ReasonHistoryTime, "historical_request_timed_out", true},
		{jsonrpc.ReasonHistoryHandoff, "historical_recent_handoff_mismatch", false},
		{jsonrpc.ReasonHistoryIncomplete, "historical_log_range_incomplete", false},
	} {
		s, _ := startHistory(t, []chain.Range{{From: 20, To: 40}}, func(_ *fakeStore, h *fakeHistory, _ *Options) {
			h.sources = []fakeSource{{id: "first", fail: failed(c.reason), at: 7}}
		})
		got := s.post(`{"jsonrpc":"2.0","id":1,"method":"eth_getBlockByNumber","params":["0x7",false]}`)
		if want := fmt.Sprintf(`"error":{"code":-32004,"message":"Data unavailable","data":{"reason":"%s","retryable":%t}}`, c.text, c.retryable); !strings.Contains(got, want) {
			t.Errorf("got %s\nwant %s", got, want)
		}
	}
	if got := full.do(http.MethodPost, strings.Repeat(" ", 1<<20+1)); !strings.Contains(got.body, `"code":-32005`) || !strings.Contains(got.body, `"reason":"request_size_limit_exceeded"`) {
		t.Errorf("got %s", got.body)
	}
	call := full.post(`{"jsonrpc":"2.0","id":1,"method":"eth_call","params":[{},"latest"]}`)
	capabilities := full.post(`{"jsonrpc":"2.0","id":1,"method":"leani_getCapabilities"}`)
	if strings.Contains(call, "evm_state_unavailable") || !strings.Contains(capabilities, `"eth_call":{"supported":false,"reason":"evm_state_unavailable"}`) {
		t.Errorf("got %s and %s", call, capabilities)
	}
}
