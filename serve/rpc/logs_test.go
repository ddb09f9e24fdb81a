package rpc

import (
	"strings"
	"testing"
)

// TestLogsStopAtLimit: logs that would not fit are not written, and the ones behind them are not looked at.
//
// RPC-031
func TestLogsStopAtLimit(t *testing.T) {
	e := newHeadEncoder(100)
	s := startServer(t, newFakeStore(t, 400), func(o *Options) {
		o.Limits.MaxResponseBytes, o.newEncoder = 2000, stubbed(e)
	})
	got := s.post(`{"jsonrpc":"2.0","id":1,"method":"eth_getLogs","params":[{"fromBlock":"0x0"}]}`)
	if !strings.Contains(got, `"code":-32005`) || !strings.Contains(got, `"response_size_limit_exceeded"`) {
		t.Errorf("got %s", got)
	}
	if n := e.logs.Load(); n == 0 || n > 40 { // one takes some 90 bytes
		t.Errorf("%d logs were written for 2000 bytes", n)
	}
}
