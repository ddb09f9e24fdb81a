package rpc

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fasthttp/websocket"
)

// rush is a server with heads of 1 MiB, of which a WebSocket may have four unsent.
func rush(t *testing.T, change func(*socketTimes)) *socketServer {
	return startSockets(t, 4, func(o *Options) {
		o.Limits.MaxEventBytes, o.Limits.MaxOutboundBytes = 4<<20, 8<<20
		o.newEncoder = stubbed(newHeadEncoder(1 << 20))
		o.times = defaultSocketTimes()
		if change != nil {
			change(&o.times)
		}
	})
}

// TestRush: blocks come much faster than they can be sent, as when a gap is filled. Clients that read get all of them, also
// where it is the limit of all together that would not hold them.
func TestRush(t *testing.T) {
	const blocks, clients = 30, 6
	s := rush(t, func(times *socketTimes) { // a slow machine is no slow client
		times.paceEvent, times.paceSocket, times.paceStalled = patience, patience, patience
	})
	list := make([]*socketClient, clients)
	for i := range list {
		list[i] = s.dial()
		list[i].subscribe(`["newHeads"]`)
	}
	told := make(chan struct{})
	go func() { // ends when the hub has told all
		defer close(told)
		s.feed.advance(blocks)
	}()
	read := make(chan int, clients)
	for _, c := range list {
		go func() {
			n := 0
			defer func() { read <- n }()
			for ; n < blocks; n++ {
				if _, _, err := c.ReadMessage(); err != nil {
					t.Errorf("after %d heads: %v", n, err)
					return
				}
			}
		}()
	}
	for range list {
		<-read
	}
	<-told
	s.gone(clients)
}

// TestRushBesideStalled: in such a rush a client that does not read is closed, and others get everything. RPC-192 RPC-198 INV-23
func TestRushBesideStalled(t *testing.T) {
	const blocks = 30
	s := rush(t, nil)
	slow, fast := s.stalled(), s.dial()
	slow.subscribe(`["newHeads"]`)
	fast.subscribe(`["newHeads"]`)
	for range blocks {
		s.feed.advance(1)
		if got := fast.receive(); len(got) != notificationSize(1<<20) {
			t.Fatalf("got %d bytes", len(got))
		}
	}
	s.gone(1)
	fast.alive()
}

// TestRushWithoutTime: once many changes wait, no client is waited for.
func TestRushWithoutTime(t *testing.T) {
	s := rush(t, func(times *socketTimes) {
		times.paceEvent, times.paceSocket, times.paceStalled, times.closing = 10*patience, 10*patience, 10*patience, patience
	})
	slow := s.stalled()
	slow.subscribe(`["newHeads"]`)
	s.feed.waiting.Store(paceWaiting)
	for s.closing() < len(s.service.hub.list()) { // it is being closed, or gone
		s.feed.advance(1)
	}
	slow.closed(websocket.CloseTryAgainLater)
}

// BenchmarkRush tells 16 clients of 60 blocks with 1 MiB of notifications each as fast as it goes, with the default limits, and
// counts the clients that are closed.
func BenchmarkRush(b *testing.B) {
	const blocks, clients, size = 60, 16, 1 << 20
	for name, pace := range map[string]time.Duration{"with time": defaultSocketTimes().paceEvent, "without": 0} {
		b.Run(name, func(b *testing.B) {
			closed := 0
			b.SetBytes(blocks * clients * size)
			for b.Loop() {
				b.StopTimer()
				s := startSockets(b, 4, func(o *Options) {
					o.newEncoder = stubbed(newHeadEncoder(size))
					o.times = defaultSocketTimes()
					o.times.paceEvent = pace
				})
				list := make([]*socketClient, clients)
				for i := range list {
					list[i] = s.dial()
					list[i].subscribe(`["newHeads"]`)
				}
				b.StartTimer()
				var reading sync.WaitGroup
				var failed atomic.Int64
				for _, c := range list {
					reading.Go(func() {
						for range blocks {
							if _, _, err := c.ReadMessage(); err != nil {
								failed.Add(1)
								return
							}
						}
					})
				}
				s.feed.advance(blocks)
				reading.Wait()
				closed += int(failed.Load())
			}
			b.ReportMetric(float64(closed)/float64(b.N), "closed/op")
		})
	}
}
