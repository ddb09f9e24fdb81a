package rpc

import (
	"testing"
	"time"

	"github.com/fasthttp/websocket"
)

// TestPingBetweenNotifications: a ping that is answered while nothing else is to be sent leaves the queue as it is: what is queued
// while the writer is busy comes whole and in order. RPC-198
func TestPingBetweenNotifications(t *testing.T) {
	const size, burst = 1 << 20, 8
	s := startSockets(t, 4, func(o *Options) { o.newEncoder = stubbed(newHeadEncoder(size)) })
	c := s.stalled()
	c.subscribe(`["newHeads"]`)
	pongs := 0
	c.SetPongHandler(func(string) error { pongs++; return nil })
	for range 4 {
		for range 4 {
			s.feed.advance(1)
			if got := c.receive(); len(got) != notificationSize(size) {
				t.Fatalf("got %d bytes: %.100s", len(got), got)
			}
		}
		before := pongs
		if err := c.WriteControl(websocket.PingMessage, nil, time.Now().Add(patience)); err != nil {
			t.Fatal(err)
		}
		c.alive() // the answer comes behind the pong
		if pongs == before {
			t.Fatal("a ping is not answered")
		}
		s.feed.advance(burst)
		for range burst {
			if got := c.receive(); len(got) != notificationSize(size) {
				t.Fatalf("got %d bytes: %.100s", len(got), got)
			}
		}
	}
	c.alive()
}
