package rpc

import (
	"encoding/json"
	"strings"
	"testing"
)

// RPC-071, RPC-072, RPC-200: the capabilities are the truth about the running node: what they call
// supported is served, what they call unsupported is refused, and no served method is left out.
func TestCapabilitiesMatchBehaviour(t *testing.T) {
	s := startServer(t, newFakeStore(t, 4), nil)
	var got struct {
		Result struct {
			Profile  string
			ChainID  uint64
			HTTP     bool
			Retained struct {
				Complete bool
			} `json:"retainedHistory"`
			Methods map[string]struct {
				Supported *bool
				Coverage  string
				Reason    string
			}
		}
	}
	if err := json.Unmarshal([]byte(s.post(`{"jsonrpc":"2.0","id":1,"method":"leani_getCapabilities"}`)), &got); err != nil {
		t.Fatal(err)
	}
	if got.Result.Profile != "leani-evm-free-v1" || got.Result.ChainID != 1337 || !got.Result.HTTP || !got.Result.Retained.Complete {
		t.Errorf("got %+v", got.Result)
	}
	for name := range s.service.methods {
		if _, ok := got.Result.Methods[name]; !ok {
			t.Errorf("%s is not listed", name)
		}
	}
	for name, m := range got.Result.Methods {
		method, _, _ := strings.Cut(name, "(")
		answer := s.post(`{"jsonrpc":"2.0","id":1,"method":"` + method + `","params":[{}]}`)
		refused := strings.Contains(answer, `"code":-32601`) || strings.Contains(answer, `"code":-32004`)
		switch {
		case m.Supported == nil:
			t.Errorf("%s: supported is missing", name)
		case *m.Supported && (refused || m.Coverage == "" || m.Reason != ""):
			t.Errorf("%s is supported with coverage %q, reason %q; answer %s", name, m.Coverage, m.Reason, answer)
		case !*m.Supported && !refused:
			t.Errorf("%s is unsupported, but answers %s", name, answer)
		}
	}
	// RPC-163: no state method is answered from anything else.
	for _, name := range []string{"eth_call", "eth_getBalance"} {
		if m := got.Result.Methods[name]; *m.Supported || m.Reason != "evm_state_unavailable" {
			t.Errorf("%s: %+v", name, m)
		}
	}
}

// RPC-014, RPC-033: notifications run. The store of the test counts.
func TestNotificationsRun(t *testing.T) {
	store := newFakeStore(t, 8)
	s := startServer(t, store, func(o *Options) { o.Limits.MaxResponseBytes = 600 })
	if a := s.do("POST", `{"jsonrpc":"2.0","method":"eth_getLogs","params":[{"fromBlock":"0x1","toBlock":"0x1"}]}`); a.status != 204 || a.body != "" {
		t.Errorf("got %d %s", a.status, a.body)
	}
	if n := store.logsCalls.Load(); n != 1 {
		t.Errorf("a notification ran %d times", n)
	}
	// RPC-032: the call behind the one that does not fit does not run, the notification does.
	got := s.post(`[{"jsonrpc":"2.0","id":1,"method":"eth_getLogs","params":[{"fromBlock":"0x1"}]},` +
		`{"jsonrpc":"2.0","id":2,"method":"eth_getLogs","params":[{"fromBlock":"0x1","toBlock":"0x1"}]},` +
		`{"jsonrpc":"2.0","method":"eth_getLogs","params":[{"fromBlock":"0x1","toBlock":"0x1"}]}]`)
	if strings.Count(got, `"code":-32005`) != 2 {
		t.Errorf("got %s", got)
	}
	if n := store.logsCalls.Load(); n != 3 {
		t.Errorf("%d log queries ran, want 3", n)
	}
	// RPC-019: of a batch that is too long nothing runs.
	long := strings.Repeat(`{"jsonrpc":"2.0","method":"eth_getLogs","params":[{}]},`, 100)
	s.post("[" + long + strings.TrimSuffix(long, ",") + "]")
	if n := store.logsCalls.Load(); n != 3 {
		t.Errorf("%d log queries ran, want 3", n)
	}
}
