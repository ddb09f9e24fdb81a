package rpc

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fasthttp/websocket"

	"github.com/leani-go/leani/api/jsonrpc"
	"github.com/leani-go/leani/chain"
)

// hub brings what happens to the chain to the subscriptions of all sockets. One goroutine reads the feed and
// queues notifications; how long it may wait for clients, pace bounds. Another one looks after the sockets from time to time.
type hub struct {
	service *service
	feed    Feed
	times   socketTimes
	encode  encoder // of the goroutine that reads the feed

	open         atomic.Bool // WebSockets are listened for
	disconnected atomic.Bool
	queued       atomic.Int64 // bytes of notifications that are queued or being sent
	filterBytes  atomic.Int64 // of the addresses and topics of all subscriptions

	sockets struct {
		sync.Mutex
		stopped bool
		open    map[*socket]struct{}
		// running are the WebSockets, and the connections that are becoming one. It grows under the lock, and not once
		// stopped.
		running sync.WaitGroup
	}

	// follower and view belong to the goroutine that reads the feed. The view shows the chain before the next
	// change: undone blocks are read from it.
	follower Follower
	view     View
	scratch  deliveries
	told     time.Time // when it began to tell the newest event

	stop context.CancelFunc
	done sync.WaitGroup
}

func newHub(s *service, o *Options) *hub {
	h := &hub{service: s, feed: o.Feed, times: o.times, encode: s.newEncoder()}
	h.sockets.open = make(map[*socket]struct{})
	return h
}

// start begins to follow the feed, if there is one.
func (h *hub) start() error {
	ctx, stop := context.WithCancel(context.Background())
	if h.feed != nil {
		var err error
		if h.follower, h.view, err = h.feed.Follow(); err != nil {
			stop()
			return fmt.Errorf("follow the chain: %w", err)
		}
		h.done.Go(func() { h.run(ctx) })
	}
	h.stop = stop
	h.done.Go(func() { h.sweep(ctx) })
	return nil
}

// live tells whether subscriptions are told anything.
func (h *hub) live() bool { return h.feed != nil && !h.disconnected.Load() }

// close ends the goroutines. No socket is left.
func (h *hub) close() {
	h.stop()
	h.done.Wait()
}

// run reads the feed until the context ends.
func (h *hub) run(ctx context.Context) {
	defer func() {
		h.follower.Close()
		h.closeView()
	}()
	for {
		err := h.follow(ctx)
		if ctx.Err() != nil {
			return
		}
		code, reason := websocket.CloseTryAgainLater, "fell behind the events of the chain"
		if !errors.Is(err, ErrLagged) {
			h.service.logFailure(err, jsonrpc.Subscription)
			code, reason = websocket.CloseInternalServerErr, jsonrpc.ReasonLiveReset
		}
		if err := h.restart(ctx); err != nil {
			return
		}
		h.closeSubscribed(code, reason) // they may have missed something
	}
}

// restart follows the feed anew. It returns the context's error only.
func (h *hub) restart(ctx context.Context) error {
	h.follower.Close()
	h.closeView()
	for {
		follower, view, err := h.feed.Follow()
		if err == nil {
			h.follower, h.view = follower, view
			return nil
		}
		h.service.logFailure(fmt.Errorf("follow the chain: %w", err), jsonrpc.Subscription)
		select {
		case <-time.After(h.times.sweep):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// follow delivers changes until one cannot be had.
func (h *hub) follow(ctx context.Context) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = &panicError{value: v, stack: debug.Stack()}
		}
	}()
	for {
		wait, cancel := context.WithTimeout(ctx, h.times.refresh)
		change, view, err := h.follower.Next(wait)
		cancel()
		switch {
		case err == nil:
			h.publish(ctx, &change, view)
			h.closeView()
			h.view = view
		case ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded):
			if view := h.follower.Refresh(); view != nil {
				h.closeView()
				h.view = view
			}
		default:
			return err
		}
	}
}

func (h *hub) closeView() {
	if h.view != nil {
		h.view.Close()
		h.view = nil
	}
}

// publish queues what a change means for the subscriptions.
func (h *hub) publish(ctx context.Context, change *Change, after View) {
	sockets := h.list()
	if len(sockets) == 0 {
		return
	}
	limit := int64(h.service.limits.MaxOutboundBytes)
	for _, e := range eventsOf(change, h.view, after) {
		h.pace(ctx, sockets, h.told.Add(h.times.paceEvent))
		h.told = time.Now()
		for _, c := range sockets {
			if h.queued.Load() > limit/4*3 {
				h.pace(ctx, sockets, h.told.Add(h.times.paceEvent))
			}
			c.deliver(ctx, e)
			if h.queued.Load() > limit {
				h.relieve()
			}
		}
	}
}

// relieve closes the sockets that hold most of the queued notifications until the limit is kept.
func (h *hub) relieve() {
	for h.queued.Load() > int64(h.service.limits.MaxOutboundBytes) {
		var heaviest *socket
		most := int64(0)
		for _, c := range h.list() {
			if n := c.heldBytes(); n > most {
				heaviest, most = c, n
			}
		}
		if heaviest == nil {
			return
		}
		heaviest.close(websocket.CloseTryAgainLater, "holds most of rpc.max_outbound_bytes")
	}
}

// sweep looks at the sockets, and at large responses that are not taken, until the context ends.
func (h *hub) sweep(ctx context.Context) {
	ticker := time.NewTicker(h.times.sweep)
	defer ticker.Stop()
	for {
		select {
		case now := <-ticker.C:
			for _, c := range h.list() {
				c.look(now)
			}
			h.service.memory.relieve(now)
		case <-ctx.Done():
			return
		}
	}
}

// list is the open sockets.
func (h *hub) list() []*socket {
	h.sockets.Lock()
	defer h.sockets.Unlock()
	list := make([]*socket, 0, len(h.sockets.open))
	for c := range h.sockets.open {
		list = append(list, c)
	}
	return list
}

// expect announces a WebSocket, to be followed by running.Done; false once the node shuts down.
func (h *hub) expect() bool {
	h.sockets.Lock()
	defer h.sockets.Unlock()
	if h.sockets.stopped {
		return false
	}
	h.sockets.running.Add(1)
	return true
}

// enter makes a socket known; false once the node shuts down.
func (h *hub) enter(c *socket) bool {
	h.sockets.Lock()
	defer h.sockets.Unlock()
	if h.sockets.stopped {
		return false
	}
	h.sockets.open[c] = struct{}{}
	return true
}

// leave forgets a socket, whose goroutine may go on for a moment.
func (h *hub) leave(c *socket) {
	h.sockets.Lock()
	delete(h.sockets.open, c)
	h.sockets.Unlock()
}

// closeSubscribed closes all sockets with subscriptions.
func (h *hub) closeSubscribed(code int, reason string) {
	for _, c := range h.list() {
		if c.subscribed() {
			c.close(code, reason)
		}
	}
}

const reasonShutdown = "the node is shutting down"

// shutdown closes all sockets and waits until they have ended, or the context does.
func (h *hub) shutdown(ctx context.Context) error {
	h.sockets.Lock()
	h.sockets.stopped = true
	h.sockets.Unlock()
	for _, c := range h.list() {
		c.close(websocket.CloseGoingAway, reasonShutdown)
	}
	ended := make(chan struct{})
	go func() { // ends with the last socket: all of them are closed
		h.sockets.running.Wait()
		close(ended)
	}()
	select {
	case <-ended:
		return nil
	case <-ctx.Done():
		for _, c := range h.list() {
			c.cut()
		}
		return ctx.Err()
	}
}

// failure is why an event cannot be told, as a close reason.
func (h *hub) failure(s *section, err error, missing string) string {
	if errors.Is(err, chain.ErrNotRetained) || errors.Is(err, errReplaced) {
		if s.removed {
			return jsonrpc.ReasonUndoneFrame
		}
		return missing
	}
	h.service.logFailure(err, jsonrpc.Subscription)
	return jsonrpc.ReasonLiveReset
}

// disconnect tells the subscribers that nothing comes any more.
func (h *hub) disconnect() {
	h.disconnected.Store(true)
	h.closeSubscribed(websocket.CloseInternalServerErr, jsonrpc.ReasonLiveDisconnected)
}
