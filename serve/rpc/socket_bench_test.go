package rpc

import (
	"context"
	"fmt"
	"io"
	"testing"
	"time"

	"github.com/leani-go/leani/chain"
)

// BenchmarkEvent brings a block with 300 logs to subscriptions of many connections that nobody reads: what the one
// goroutine that all subscribers share does for it. Every log is of interest to 32 subscriptions of each connection, so
// that the time for another connection is that of matching and queueing alone.
func BenchmarkEvent(b *testing.B) {
	for _, connections := range []int{1, 16, 256} {
		b.Run(fmt.Sprintf("connections=%d", connections), func(b *testing.B) {
			s, e := benchSockets(b, connections, 128)
			list := s.service.hub.list()
			b.ReportAllocs()
			notifications := 0
			for b.Loop() {
				fresh := e()
				for _, c := range list {
					c.deliver(context.Background(), fresh)
					notifications += len(c.mu.queue)
					s.service.hub.queued.Add(-c.mu.held)
					c.mu.queue, c.mu.held = c.mu.queue[:0], 0
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(notifications), "ns/notification")
		})
	}
}

// benchSockets makes sockets without connections, whose subscriptions select a fourth of all logs by address, and makes
// events.
func benchSockets(b *testing.B, connections, subscriptions int) (*Server, func() *event) {
	s, err := New(Options{Store: newFakeStore(b, 4), Network: testNetwork(), Limits: Limits{MaxOutboundBytes: 1 << 40, MaxEventBytes: 1 << 30}})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = s.Shutdown(context.Background()) })
	template := s.service.store.(*fakeStore).blocks[3]
	block := *template
	block.Logs, block.Receipts = nil, nil
	for t := range template.Receipts {
		for i := range 100 {
			l := template.Logs[0]
			address := tokenAddress
			address[0] = byte(i % 4)
			l.Address = &address
			block.Logs = append(block.Logs, l)
		}
		r := template.Receipts[t]
		r.LogsEnd = uint32(len(block.Logs))
		block.Receipts = append(block.Receipts, r)
	}
	store := &fakeStore{blocks: map[uint64]*chain.Block{3: &block}, coverage: []chain.Range{{From: 3, To: 4}}}
	for range connections {
		c := &socket{server: s, wake: make(chan struct{}, 1)}
		for i := range subscriptions {
			sub := newSubscription()
			address := tokenAddress
			address[0] = byte(i % 4)
			sub.filter.Addresses = append(sub.filter.Addresses, address)
			c.mu.subscriptions = append(c.mu.subscriptions, sub)
		}
		s.service.hub.sockets.open[c] = struct{}{}
	}
	b.Cleanup(func() { clear(s.service.hub.sockets.open) })
	return s, func() *event {
		v, _ := store.View()
		return eventsOf(&Change{Applied: []chain.BlockRef{block.BlockRef}}, nil, v)[0]
	}
}

// BenchmarkNewHead commits blocks and waits until every client has read the notifications of all its subscriptions, over
// TCP on loopback, the clients in the same process.
func BenchmarkNewHead(b *testing.B) {
	for _, size := range []struct{ connections, subscriptions int }{{1, 1}, {256, 1}, {256, 128}} {
		b.Run(fmt.Sprintf("connections=%d/subscriptions=%d", size.connections, size.subscriptions), func(b *testing.B) {
			s := startSockets(b, 4, func(o *Options) { o.newEncoder = nil })
			clients := make([]*socketClient, size.connections)
			for i := range clients {
				clients[i] = s.dial()
				for range size.subscriptions {
					clients[i].subscribe(`["newHeads"]`)
				}
			}
			read := make(chan struct{}, size.connections)
			for _, c := range clients {
				_ = c.SetReadDeadline(time.Time{})
				go func() { // ends with the connection
					for n := 1; ; n++ {
						_, r, err := c.NextReader()
						if err != nil {
							return
						}
						if _, err := io.Copy(io.Discard, r); err != nil {
							return
						}
						if n%size.subscriptions == 0 {
							read <- struct{}{}
						}
					}
				}()
			}
			b.ReportAllocs()
			for b.Loop() {
				s.feed.advance(1)
				for range clients {
					<-read
				}
			}
		})
	}
}
