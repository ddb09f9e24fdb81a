package rpc

import (
	"context"
	"time"
)

// When blocks come in a rush, as after a start or a gap, they come faster than a client can be sent what it wants of
// them. The chain does not wait for clients. But its changes wait here until they are told, so the hub may take a
// little time for clients that are reading as fast as they can, and would have to be closed only because nobody
// let them. What it takes is bounded on all sides by socketTimes: it takes none between events that come at the pace of a chain,
// none for a client that has stopped reading, little for one that reads slowly, and none once many changes wait.

const (
	// paceLook is how often the hub looks whether it still has to wait.
	paceLook = 2 * time.Millisecond
	// paceWaiting is how many changes may wait while the hub takes its time: half of what makes it miss some.
	paceWaiting = 256
)

// pace waits before an event while clients that are reading have much unsent of the events before, or all together have; at
// most until the deadline.
func (h *hub) pace(ctx context.Context, sockets []*socket, deadline time.Time) {
	for last := time.Now(); last.Before(deadline) && h.follower.Waiting() < paceWaiting; {
		if !h.behind(sockets, last) {
			return
		}
		select {
		case <-time.After(paceLook):
		case <-ctx.Done():
			return
		}
		now := time.Now()
		for _, c := range sockets {
			c.waitedFor(now.Sub(last))
		}
		last = now
	}
}

// behind tells whether it is worth to wait for one of the sockets.
func (h *hub) behind(sockets []*socket, now time.Time) bool {
	full := h.queued.Load() > int64(h.service.limits.MaxOutboundBytes)/2
	for _, c := range sockets {
		if c.behind(now, full) {
			return true
		}
	}
	return false
}

// behind tells whether it is worth to wait for the client: it has much unsent, or anything if all together have much, and it
// is reading.
func (c *socket) behind(now time.Time, full bool) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	times := &c.server.service.hub.times
	much := int64(c.server.service.limits.MaxEventBytes / 4)
	if full {
		much = 0
	}
	return !c.mu.closing && c.mu.held > much && c.mu.waited < times.paceSocket && now.Sub(c.mu.moved) < times.paceStalled
}

// waitedFor notes that the hub has waited for those that have something unsent.
func (c *socket) waitedFor(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.mu.held > 0 {
		c.mu.waited += d
	}
}

// movedLocked notes that notifications of so many bytes have been sent, or are the first ones that will be.
func (c *socket) movedLocked(now time.Time, bytes int64) {
	c.mu.moved = now
	if c.mu.taken += bytes; c.mu.held == 0 || c.mu.taken >= int64(c.server.service.limits.MaxEventBytes/4) {
		c.mu.waited, c.mu.taken = 0, 0
	}
}
