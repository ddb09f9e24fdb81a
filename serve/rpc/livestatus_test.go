package rpc

import (
	"strings"
	"sync/atomic"
	"testing"
)

// TestSyncing: eth_syncing is false, and the capabilities say liveReady, only while the live source has nothing more and
// the head is the newest block that the node knows of; otherwise the object says how far the node lags.
//
// RPC-068 RPC-069 RPC-073
func TestSyncing(t *testing.T) {
	var status atomic.Pointer[LiveStatus]
	status.Store(new(LiveStatus))
	live := func(o *Options) { o.Live = func() LiveStatus { return *status.Load() } }
	s := startServer(t, newFakeStore(t, 5), live)
	empty := startServer(t, newFakeStore(t, 0), live)
	object := func(current, highest, reason string) string {
		return `{"startingBlock":"0x0","currentBlock":"` + current + `","highestBlock":"` + highest +
			`","leani":{"liveReady":false,"reason":"` + reason + `"}}`
	}
	for _, c := range []struct {
		server *testServer
		status LiveStatus
		want   string
	}{
		{s, LiveStatus{}, object("0x4", "0x4", "live_head_not_anchored")},
		{s, LiveStatus{Running: true}, object("0x4", "0x4", "live_lane_behind")},
		{s, LiveStatus{Running: true, Ready: true}, "false"},
		{s, LiveStatus{Running: true, Ready: true, Newest: 4}, "false"},
		{s, LiveStatus{Running: true, Ready: true, Newest: 9}, object("0x4", "0x9", "live_lane_behind")},
		{s, LiveStatus{Running: true, Newest: 5}, object("0x4", "0x5", "live_lane_behind")},
		{empty, LiveStatus{Running: true, Ready: true}, object("0x0", "0x0", "live_lane_behind")},
		{empty, LiveStatus{}, object("0x0", "0x0", "live_head_not_anchored")},
	} {
		status.Store(&c.status)
		if got := c.server.post(`{"jsonrpc":"2.0","id":1,"method":"eth_syncing","params":[]}`); got != `{"jsonrpc":"2.0","id":1,"result":`+c.want+`}` {
			t.Errorf("%+v: got %s\nwant %s", c.status, got, c.want)
		}
		ready := `"liveReady":false`
		if c.want == "false" {
			ready = `"liveReady":true`
		}
		if got := c.server.post(`{"jsonrpc":"2.0","id":1,"method":"leani_getCapabilities"}`); !strings.Contains(got, ready) {
			t.Errorf("%+v: got %s\nwant %s", c.status, got, ready)
		}
	}
}
