package clients

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/google/go-cmp/cmp"

	"github.com/leani-go/leani/clients/harness"
)

// classes are what clients make of the node's codes; "any" stands for the others.
var classes = map[string]map[string]string{
	"viem": {
		"-32000": "invalidinputrpcerror", "-32004": "methodnotsupportedrpcerror", "-32005": "limitexceededrpcerror",
		"-32601": "methodnotfoundrpcerror", "-32602": "invalidparamsrpcerror",
	},
	"ethers": {"any": "unknown_error"},
	"web3":   {"any": "invalidresponseerror"},
}

// failure is an error of the node as a client shows it.
func failure(script, code, message string, data any) object {
	class := classes[script][code]
	if class == "" {
		class = classes[script]["any"]
	}
	return object{"class": class, "code": code, "message": message, "data": data}
}

// unavailable is the error about what the node does not have.
func unavailable(script, reason string) object {
	return failure(script, "-32004", "data unavailable", object{"reason": reason, "retryable": false})
}

// TestErrors makes each client ask for what the node does not have or do: all show code, message and data, and none
// takes an answer for a value.
func TestErrors(t *testing.T) {
	c := harness.Chainlab(t)
	const first, below, beyond = recent, 100, newer + 5
	n := harness.Start(c, harness.Options{First: first, Filled: filled, Settings: map[string]string{"max_log_results": "1000"}})
	token := busiest(c.Span(older, newer))
	each(t, n, scripts, func(t *testing.T, s *harness.Session) {
		script, _, _ := strings.Cut(s.Name(), ".")

		refused := object{}
		for _, call := range []string{"call", "contract", "balance", "code", "storage", "nonce", "estimate", "gasPrice", "blobFee", "send"} {
			refused[call] = failure(script, "-32601", "method not found", nil)
			if script == "ethers" && slices.Contains([]string{"call", "contract", "estimate"}, call) {
				refused[call].(object)["class"] = "call_exception"
			}
		}
		same(t, s, "refused", object{"address": token}, refused)

		outside := unavailable(script, "requested_range_outside_recent_window")
		outside["data"].(object)["missing"] = object{"fromBlock": hexutil.EncodeUint64(below), "toBlock": hexutil.EncodeUint64(first - 1)}
		same(t, s, "unavailable", object{"hash": c.Block(newer).Hash(), "below": below, "beyond": beyond}, object{
			"pending":     unavailable(script, "pending_block_unavailable"),
			"finalized":   unavailable(script, "finalized_block_unavailable"),
			"number":      unavailable(script, "block_not_retained"),
			"hash":        unavailable(script, "block_not_retained"),
			"transaction": unavailable(script, "transaction_not_retained"),
			"receipt":     unavailable(script, "transaction_not_retained"),
			"logs":        unavailable(script, "block_hash_not_retained"),
			"range":       outside,
			"beyond": failure(script, "-32602", "block range extends beyond current head block",
				object{"detail": fmt.Sprintf("toblock %#x is above the head %#x", beyond, filled-1)}),
		})

		from, to := uint64(older-20), uint64(older-20)
		for count := len(c.Block(to).Logs()); count+len(c.Block(to+1).Logs()) <= 1000; to++ {
			count += len(c.Block(to + 1).Logs())
		}
		same(t, s, "tooMany", object{"fromBlock": from, "toBlock": older}, failure(script, "-32005",
			fmt.Sprintf("query returned more than 1000 results. try with this block range [%#x, %#x].", from, to),
			object{"limit": "1000", "from": hexutil.EncodeUint64(from), "to": hexutil.EncodeUint64(to)}))
	})
}

// same asks a script and requires exactly an answer.
func same(t *testing.T, s *harness.Session, name string, value, want any) {
	t.Helper()
	var got any
	if s.Ask(name, value, &got); !reflect.DeepEqual(got, want) {
		t.Errorf("%s (- want, + got):\n%s", name, cmp.Diff(want, got))
	}
}

// TestSplitRange lets the function with which Ponder splits log queries follow the hints of the node's errors: it gets
// exactly the logs that there are, asking only for ranges that the hints lead to.
func TestSplitRange(t *testing.T) {
	c := harness.Chainlab(t)
	const limit = 1000
	n := harness.Start(c, harness.Options{First: recent, Filled: filled, Settings: map[string]string{"max_log_results": fmt.Sprint(limit)}})
	const first, last = older - 40, newer
	n.Apply(c.Span(filled, last)...)
	logs := []any{}
	for _, b := range c.Span(first, last) {
		for _, l := range b.Logs() {
			logs = append(logs, []any{decimal(b.Number()), decimal(l.Index)})
		}
	}
	for _, transport := range transports {
		s := client(t, "viem", transport, n)
		var got struct {
			Asked [][2]string
			Logs  []any
		}
		s.Ask("split", object{"fromBlock": hexutil.EncodeUint64(first), "toBlock": hexutil.EncodeUint64(last)}, &got)
		if !reflect.DeepEqual(got.Logs, logs) {
			t.Errorf("%d logs, want %d", len(got.Logs), len(logs))
		}
		if least := len(logs) / limit; len(got.Asked) <= least || len(got.Asked) > 4*least {
			t.Errorf("%d queries for %d logs: %v", len(got.Asked), len(logs), got.Asked)
		}
		s.End()
	}
}
