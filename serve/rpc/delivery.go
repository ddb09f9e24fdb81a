package rpc

import (
	"context"
	"time"

	"github.com/fasthttp/websocket"

	"github.com/leani-go/leani/api/jsonrpc"
)

// deliveries is memory that the hub reuses from socket to socket.
type deliveries struct {
	messages []message
	rows     []uint32
}

// collector gathers the notifications of an event for one socket.
type collector struct {
	*deliveries
	bytes, limit int
}

// add gathers a notification; false when the event is larger than a socket may get.
func (l *collector) add(s *subscription, result []byte) bool {
	m := message{opening: s.opening, body: result}
	l.bytes += m.size()
	l.messages = append(l.messages, m)
	return l.bytes <= l.limit
}

// deliver queues the notifications of an event, all of them or none. It is called by the hub's goroutine.
func (c *socket) deliver(ctx context.Context, e *event) {
	h := c.server.service.hub
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.mu.closing || len(c.mu.subscriptions) == 0 {
		return
	}
	limit := c.server.service.limits.MaxEventBytes
	l := collector{deliveries: &h.scratch, limit: limit}
	l.messages = l.messages[:0]
	defer func() { clear(l.messages) }()
	for _, s := range e.sections {
		fits, reason := c.collectLocked(ctx, h, s, &l)
		switch {
		case reason != "":
			c.closeLocked(websocket.CloseInternalServerErr, reason)
			return
		case !fits:
			c.closeLocked(websocket.ClosePolicyViolation, "one event is larger than rpc.max_subscription_event_bytes")
			return
		}
	}
	if len(l.messages) == 0 {
		return
	}
	if c.mu.held+int64(l.bytes) > int64(limit) {
		c.closeLocked(websocket.CloseTryAgainLater, "unsent notifications exceed rpc.max_subscription_event_bytes")
		return
	}
	now := time.Now()
	if c.mu.held == 0 {
		c.movedLocked(now, 0)
	}
	c.mu.queue = append(c.mu.queue, l.messages...)
	c.mu.held += int64(l.bytes)
	h.queued.Add(int64(l.bytes))
	c.congestedLocked(now)
	c.signal()
}

// collectLocked gathers the notifications of one block: its logs for all subscriptions, then its head. It tells
// whether they fit, or why they cannot be told.
func (c *socket) collectLocked(ctx context.Context, h *hub, s *section, l *collector) (fits bool, failure string) {
	for _, sub := range c.mu.subscriptions {
		if sub.heads {
			continue
		}
		if err := s.loadLogs(ctx); err != nil {
			return false, h.failure(s, err, jsonrpc.ReasonCompleteLogs)
		}
		l.rows = s.match(l.rows[:0], &sub.filter)
		for _, i := range l.rows {
			if !l.add(sub, s.log(h.encode, i)) {
				return false, ""
			}
		}
	}
	if s.removed {
		return true, ""
	}
	for _, sub := range c.mu.subscriptions {
		if !sub.heads {
			continue
		}
		header, err := s.header(ctx, h.encode)
		if err != nil {
			return false, h.failure(s, err, jsonrpc.ReasonCompleteHeader)
		}
		if !l.add(sub, header) {
			return false, ""
		}
	}
	return true, ""
}
