package rpc

import (
	"context"
	"strings"
	"testing"
)

// FuzzSubscribe runs messages as a WebSocket brings them, without the connection. Whatever comes in: the answer is what
// HTTP could have given, the subscriptions and the bytes of their filters keep their limits, and ending all of
// them leaves nothing.
func FuzzSubscribe(f *testing.F) {
	for _, params := range []string{
		`["newHeads"]`, `["newHeads",null]`, `["logs"]`, `["logs",null]`, `["logs",{}]`, `["syncing"]`, `[]`, `{}`, `["logs",{},{}]`,
		`["logs",{"address":"0x00000000000000000000000000000000000000aa","topics":[null,[],"0x1111111111111111111111111111111111111111111111111111111111111111"]}]`,
		`["logs",{"fromBlock":"0x0","toBlock":"latest"}]`, `["logs",{"fromBlock":"finalized","toBlock":"pending"}]`, `["logs",{"toBlock":"0x1"}]`,
	} {
		call := `{"jsonrpc":"2.0","id":1,"method":"eth_subscribe","params":` + params + `}`
		f.Add([]byte(call))
		f.Add([]byte("[" + strings.Repeat(call+",", 4) + strings.Replace(call, `"id":1,`, "", 1) + "]"))
	}
	f.Add([]byte(`{"jsonrpc":"2.0","id":1,"method":"eth_unsubscribe","params":["0x00000000000000000000000000000000"]}`))

	store := newFakeStore(f, 4)
	o := Options{Store: store, Network: testNetwork(), Limits: Limits{MaxSubscriptions: 3}, Feed: newFakeFeed(f, store)}.withDefaults()
	s := newService(o)
	f.Cleanup(s.close)
	server := &Server{service: s}
	x := new(exchange)
	f.Fuzz(func(t *testing.T, body []byte) {
		if len(body) > maxRequestBytes {
			return
		}
		c := &socket{server: server, wake: make(chan struct{}, 1)}
		for range 2 {
			x.open(s, context.Background())
			x.socket = c
			x.body = append(x.body, body...)
			x.run()
			checkResponse(t, body, x.out.buf, o.Limits.MaxResponseBytes)
			c.send(x.out.buf)
			c.mu.queue = nil
			x.release()
		}
		if n := len(c.mu.subscriptions); n > 3 || len(c.pending) != 0 || c.mu.filterBytes > maxFilterBytes {
			t.Errorf("%d subscriptions, %d bytes of filters", n, c.mu.filterBytes)
		}
		for len(c.mu.subscriptions) > 0 {
			if !c.remove(c.mu.subscriptions[0].id) {
				t.Fatal("a subscription cannot be ended")
			}
		}
		if c.mu.filterBytes != 0 {
			t.Errorf("%d bytes of filters without a subscription", c.mu.filterBytes)
		}
		if n := s.failures.Swap(0); n != 0 {
			t.Errorf("%d calls failed inside the node", n)
		}
	})
}
