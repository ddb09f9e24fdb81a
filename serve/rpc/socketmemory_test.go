package rpc

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
)

// What docs/configuration.md says of an open WebSocket and of a subscription with an address and two topics, in bytes, and what a
// client of this test takes.
const (
	statedSocketBytes       = 30 << 10
	statedSubscriptionBytes = 640
	clientBytes             = 10 << 10 // two buffers of 4 KiB
)

// TestSocketMemory measures what connections and subscriptions take, with the stacks of their goroutines, once they are idle.
func TestSocketMemory(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector takes memory itself")
	}
	const sockets, subscriptions = 64, 128
	s := startSockets(t, 4, nil)
	used := func() int64 {
		runtime.GC()
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc + m.StackInuse)
	}
	s.dial().alive()
	before := used()
	clients := make([]*socketClient, sockets)
	for i := range clients {
		clients[i] = s.dial()
		clients[i].alive()
	}
	open := used()
	call := func(i int) string {
		return fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"eth_subscribe","params":["logs",{"address":"0x%040x","topics":["0x%064x",null,"0x%064x"]}]}`, i, i, i)
	}
	for i, c := range clients {
		for part := range 2 {
			calls := make([]string, subscriptions/2)
			for k := range calls {
				calls[k] = call(i<<8 + part<<7 + k)
			}
			if got := c.ask("[" + strings.Join(calls, ",") + "]"); strings.Count(got, `"result":"0x`) != subscriptions/2 {
				t.Fatalf("got %.200s", got)
			}
		}
		c.alive()
	}
	subscribed := used()
	socket, subscription := (open-before)/sockets, (subscribed-open)/(sockets*subscriptions)
	t.Logf("%d bytes for a connection with its client, %d for a subscription", socket, subscription)
	if socket > statedSocketBytes+clientBytes || subscription > statedSubscriptionBytes {
		t.Errorf("%d bytes for a connection, %d for a subscription, stated are %d and %d", socket-clientBytes, subscription, statedSocketBytes, statedSubscriptionBytes)
	}
	runtime.KeepAlive(clients)
}
