package rpc

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/leani-go/leani/api/jsonrpc"
	"github.com/leani-go/leani/chain"
	"github.com/leani-go/leani/internal/corrupt"
)

const blockCall = `{"jsonrpc":"2.0","id":1,"method":"eth_getBlockByNumber","params":["0x1",false]}`

// Every kind of failure has its code and reason, wrapped or not; failures of the node are
// logged in full and tell the client nothing about the machine. RPC-050, RPC-051, RPC-054: the
// standard code for what is the node's fault, one custom code for what is not there, and another
// for limits. RPC-087, RPC-086, RPC-114, RPC-116, RPC-117: reasons of schedules and prices.
func TestFailures(t *testing.T) {
	secret := "/var/lib/leani/segments/logs-000017.seg"
	tests := []struct {
		name   string
		err    error
		code   int
		part   string // of the answer
		logged string // in the log; empty: nothing is logged
	}{
		{"store", errors.New("read " + secret + ": input/output error"), jsonrpc.CodeInternal, `"retryable":true`, "input/output error"},
		{"corruption", corrupt.AtPage(secret, 7, 4096, errors.New("checksum: got 1, want 2")), jsonrpc.CodeInternal, `"retryable":false`, "page 7 offset 4096"},
		{"not retained", &chain.NotRetainedError{Range: chain.Range{From: 1, To: 2}}, jsonrpc.CodeUnavailable, jsonrpc.ReasonBlockNotRetained, ""},
		{"blob schedule", chain.ErrBlobScheduleUnavailable, jsonrpc.CodeUnavailable, jsonrpc.ReasonBlobSchedule, ""},
		{"blob excess", chain.ErrExcessBlobGasMissing, jsonrpc.CodeUnavailable, jsonrpc.ReasonBlobExcess, ""},
		{"price", chain.ErrQuantityExceedsU128, jsonrpc.CodeUnavailable, jsonrpc.ReasonQuantityU128, ""},
		{"schedule", chain.ErrScheduleUnavailable, jsonrpc.CodeUnavailable, jsonrpc.ReasonConfigChain, ""},
		{"early", chain.ErrPredatesSchedule, jsonrpc.CodeUnavailable, jsonrpc.ReasonConfigPredates, ""},
		// The chain reports a price without schedule with both errors; the price is what failed.
		{"both", fmt.Errorf("%w: %w", chain.ErrBlobScheduleUnavailable, chain.ErrPredatesSchedule), jsonrpc.CodeUnavailable, jsonrpc.ReasonBlobSchedule, ""},
		{"time", context.DeadlineExceeded, jsonrpc.CodeLimitExceeded, `"reason":"time_limit_exceeded","limit":30000`, ""},
		{"shutdown", context.Canceled, jsonrpc.CodeInternal, "shutting down", ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			store := newFakeStore(t, 4)
			store.onLoad = func(uint64) error { return fmt.Errorf("store: %w", test.err) }
			s := startServer(t, store, nil)
			got := s.post(blockCall)
			if !strings.Contains(got, fmt.Sprintf(`"error":{"code":%d,`, test.code)) || !strings.Contains(got, test.part) {
				t.Errorf("got %s, want code %d with %s", got, test.code, test.part)
			}
			if strings.Contains(got, "leani/segments") || strings.Contains(got, "store:") {
				t.Errorf("the answer gives the machine away: %s", got)
			}
			log := s.log.String()
			if test.logged == "" && log != "" || !strings.Contains(log, test.logged) {
				t.Errorf("log: %q, want %q", log, test.logged)
			}
			if test.logged != "" && !strings.Contains(log, jsonrpc.GetBlockByNumber) {
				t.Errorf("the log does not name the method: %s", log)
			}
		})
	}
}

// A store that cannot even be opened is a failure of the node.
func TestViewFails(t *testing.T) {
	store := newFakeStore(t, 4)
	store.onView = func() error { return errors.New("closed") }
	s := startServer(t, store, nil)
	for _, method := range []string{jsonrpc.BlockNumber, jsonrpc.Syncing, jsonrpc.Config, jsonrpc.Capabilities} {
		if got := s.post(`{"jsonrpc":"2.0","id":1,"method":"` + method + `"}`); !strings.Contains(got, `"code":-32603`) {
			t.Errorf("%s: got %s", method, got)
		}
	}
}

// An error of the encoder fails the call and leaves nothing of it in the response.
func TestEncoderFails(t *testing.T) {
	store := newFakeStore(t, 4)
	s := startServer(t, store, func(o *Options) {
		o.newEncoder = stubbed(stubEncoder{fail: chain.ErrExcessBlobGasMissing})
	})
	hash := store.blocks[1].TransactionHashes[0]
	for _, call := range []string{
		`"eth_getBlockByNumber","params":["0x1",true]`, `"eth_getBlockReceipts","params":["0x1"]`,
		`"eth_getTransactionByBlockNumberAndIndex","params":["0x1","0x0"]`, `"eth_config"`,
		fmt.Sprintf(`"eth_getTransactionByHash","params":["%s"]`, hash),
		fmt.Sprintf(`"eth_getTransactionReceipt","params":["%s"]`, hash),
	} {
		want := `{"jsonrpc":"2.0","id":1,"error":{"code":-32004,"message":"Data unavailable","data":{"reason":"header_excess_blob_gas_missing","retryable":false}}}`
		if got := s.post(`{"jsonrpc":"2.0","id":1,"method":` + call + `}`); got != want {
			t.Errorf("%s: got %s", call, got)
		}
	}
}

// A panic in a method ends that call alone: the rest of the batch is answered, the view is
// closed, the stack is logged. This holds on the threads of the lane as well.
func TestPanic(t *testing.T) {
	for _, heavy := range []bool{false, true} {
		t.Run(fmt.Sprintf("heavy=%t", heavy), func(t *testing.T) {
			store := newFakeStore(t, 4)
			store.onLogs = func(context.Context) error { panic("a bug at " + t.TempDir()) }
			if heavy {
				store.onCost = func() (uint64, error) { return laneCost, nil }
			}
			s := startServer(t, store, nil)
			got := s.post(`[{"jsonrpc":"2.0","id":1,"method":"eth_getLogs","params":[{}]},{"jsonrpc":"2.0","id":2,"method":"eth_blockNumber"}]`)
			want := `[{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"Internal error","data":{"retryable":true,` +
				`"detail":"the method failed; the node's log has the cause"}}},{"jsonrpc":"2.0","id":2,"result":"0x3"}]`
			if got != want {
				t.Errorf("got %s", got)
			}
			if log := s.log.String(); !strings.Contains(log, "a bug at") || !strings.Contains(log, "fakestore_test.go") {
				t.Errorf("log without cause or stack: %s", log)
			}
			if n := s.service.failures.Load(); n != 1 {
				t.Errorf("got %d failures, want 1", n)
			}
		})
	}
}

// A locator or hash index that is wrong must not answer with something else.
func TestInconsistentIndexes(t *testing.T) {
	store := newFakeStore(t, 4)
	hash := store.blocks[1].Hash
	transaction := store.blocks[2].TransactionHashes[1]
	s := startServer(t, store, nil)
	// The view finds block and transaction by what the blocks said before, and loads what
	// they are now.
	store.onLoad = func(number uint64) error {
		store.blocks[1].Hash[0] ^= 1
		store.blocks[2].TransactionHashes[1][0] ^= 1
		return nil
	}
	if got := s.post(fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"eth_getBlockByHash","params":["%s",false]}`, hash)); !strings.Contains(got, jsonrpc.ReasonBlockNotRetained) {
		t.Errorf("block: got %s", got)
	}
	store.blocks[2].TransactionHashes[1] = transaction
	if got := s.post(fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"eth_getTransactionByHash","params":["%s"]}`, transaction)); !strings.Contains(got, `"code":-32603`) {
		t.Errorf("transaction: got %s", got)
	}
}

// Receipts that were not loaded are missing, not empty.
func TestBlockWithoutReceipts(t *testing.T) {
	store := newFakeStore(t, 4)
	store.blocks[1].HasReceipts = false
	s := startServer(t, store, nil)
	for _, call := range []string{
		`"eth_getBlockReceipts","params":["0x1"]`,
		fmt.Sprintf(`"eth_getTransactionReceipt","params":["%s"]`, store.blocks[1].TransactionHashes[0]),
	} {
		if got := s.post(`{"jsonrpc":"2.0","id":1,"method":` + call + `}`); !strings.Contains(got, jsonrpc.ReasonBlockNotRetained) {
			t.Errorf("%s: got %s", call, got)
		}
	}
}

// Work that takes too long is given up; the calls behind it in a batch are given up too, the
// answer is whole.
func TestRequestTime(t *testing.T) {
	store := newFakeStore(t, 4)
	store.onLogs = func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
	s := startServer(t, store, func(o *Options) { o.Limits.RequestTime = 5 * time.Millisecond })
	got := s.post(`[{"jsonrpc":"2.0","id":1,"method":"eth_getLogs","params":[{}]},` + strings.Replace(blockCall, `"id":1`, `"id":2`, 1) +
		`,{"jsonrpc":"2.0","id":3,"method":"eth_chainId"}]`)
	refusal := `"error":{"code":-32005,"message":"request timed out","data":{"reason":"time_limit_exceeded","limit":5}}}`
	want := `[{"jsonrpc":"2.0","id":1,` + refusal + `,{"jsonrpc":"2.0","id":2,` + refusal + `,{"jsonrpc":"2.0","id":3,"result":"0x539"}]`
	if got != want {
		t.Errorf("got %s", got)
	}
}

func TestOptions(t *testing.T) {
	_, err := New(Options{LaneWorkers: -1, Limits: Limits{
		MaxBatchRequests: -1, MaxResponseBytes: 1 << 30, InFlightResponseBytes: 1 << 20, InFlightRequestBytes: 1, RequestTime: -1,
	}})
	if err == nil {
		t.Fatal("no error")
	}
	// All problems at once.
	for _, part := range []string{"Store", "LaneWorkers", "MaxBatchRequests", "InFlightResponseBytes", "InFlightRequestBytes", "RequestTime"} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%v does not name %s", err, part)
		}
	}
	// The zero value works, and gives what is documented. RPC-007 fixes the size of a request.
	l := Limits{}.withDefaults()
	if err := l.validate(); err != nil {
		t.Error(err)
	}
	if l.MaxBatchRequests != 100 || l.MaxResponseBytes != 16<<20 || l.MaxLogResults != 10_000 || l.MaxLogAddresses != 1_000 ||
		l.MaxLogTopicAlternatives != 1_000 || maxRequestBytes != 1_048_576 {
		t.Errorf("defaults: %+v", l)
	}
}
