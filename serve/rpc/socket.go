package rpc

import (
	"context"
	"errors"
	"io"
	"net"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fasthttp/websocket"

	"github.com/leani-go/leani/api/jsonrpc"
)

// socket is a WebSocket connection. Two goroutines serve it: one reads messages and runs their calls, and reads
// the next message only when the answer has been sent; the other one sends answers and notifications in the order
// in which they were queued. It alone writes, except that the websocket package itself tells a client about a
// frame that breaks the protocol.
type socket struct {
	server *Server
	conn   *websocket.Conn // for reading
	net    net.Conn        // for writing
	ctx    context.Context // ends when the socket closes
	cancel context.CancelFunc

	seen    atomic.Int64 // when the client last sent something, in nanoseconds
	busy    atomic.Bool  // a message is being answered, so that nothing is read
	pending []*subscription

	wake chan struct{} // has room for one
	sent chan struct{} // the answer has been sent; has room for one
	done chan struct{} // the writing goroutine has ended

	mu struct {
		sync.Mutex
		queue []message
		// held is the bytes of notifications that are queued or being sent.
		held      int64
		congested time.Time // since when held is more than a quarter of its limit; zero while it is not
		// moved is when the client last took notifications, or held began to be more than zero. waited is how long the hub has
		// waited for the client since held was zero or it has taken a quarter of its limit, taken what it has taken since.
		moved  time.Time
		waited time.Duration
		taken  int64
		pong   *string // to answer the newest ping with
		ping   bool
		pinged int64 // the value of seen for which a ping was sent

		subscriptions []*subscription
		filterBytes   int

		closing    bool
		code       int // 0 sends no close frame
		reason     string
		closeUntil time.Time
	}
}

// message is a text message in parts: an answer, or a notification.
type message struct {
	opening, body []byte // without an opening it is an answer
}

func (m *message) notification() bool { return m.opening != nil }

func (m *message) size() int {
	n := len(m.opening) + len(m.body)
	if m.notification() {
		n += len(notificationEnd)
	}
	return n
}

func newSocket(s *Server, conn *websocket.Conn) *socket {
	c := &socket{
		server: s, conn: conn, net: conn.NetConn(),
		wake: make(chan struct{}, 1), sent: make(chan struct{}, 1), done: make(chan struct{}),
	}
	c.ctx, c.cancel = context.WithCancel(s.base)
	c.heard()
	conn.SetReadLimit(maxRequestBytes)
	conn.SetPingHandler(func(data string) error {
		c.heard()
		c.mu.Lock()
		c.mu.pong = &data
		c.mu.Unlock()
		c.signal()
		return nil
	})
	conn.SetPongHandler(func(string) error { c.heard(); return nil })
	conn.SetCloseHandler(func(code int, _ string) error {
		if code == websocket.CloseNoStatusReceived {
			code = websocket.CloseNormalClosure
		}
		c.close(code, "")
		return nil
	})
	return c
}

func (c *socket) heard() { c.seen.Store(time.Now().UnixNano()) }

func (c *socket) signal() {
	select {
	case c.wake <- struct{}{}:
	default: // it is awake
	}
}

// serve serves the connection until it ends.
func (c *socket) serve() {
	go c.write() // ends when the socket closes; awaited below
	c.read()
	c.close(0, "")
	<-c.done
	c.cancel()
}

// read reads messages and answers them until the connection ends.
func (c *socket) read() {
	defer func() {
		if v := recover(); v != nil {
			c.server.service.logFailure(&panicError{value: v, stack: debug.Stack()}, "")
			c.close(websocket.CloseInternalServerErr, "internal error")
		}
	}()
	for {
		if !c.readUntil(time.Time{}) {
			return
		}
		kind, reader, err := c.conn.NextReader()
		if err != nil {
			c.unreadable(err)
			return
		}
		if kind != websocket.TextMessage {
			c.close(websocket.CloseUnsupportedData, "messages are text")
			return
		}
		if !c.readUntil(time.Now().Add(readTimeout)) || !c.answer(reader) {
			return
		}
	}
}

// unreadable closes after an error of reading. Of what breaks the protocol the library has told the client, but not of a frame
// whose length does not fit into 63 bits.
func (c *socket) unreadable(err error) {
	if errors.Is(err, websocket.ErrReadLimit) {
		c.close(websocket.CloseMessageTooBig, "")
	}
}

// readUntil sets how long reading may take; false once the socket closes.
func (c *socket) readUntil(deadline time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return !c.mu.closing && c.net.SetReadDeadline(deadline) == nil
}

// answer reads a message, runs its calls and sends the answer. It returns false when the connection has ended.
func (c *socket) answer(reader io.Reader) bool {
	x := c.server.acquire()
	defer func() { _ = x.Close() }()
	x.base, x.socket = c.ctx, c
	switch err := c.readMessage(x, reader); {
	case errors.Is(err, errBusy):
		x.refuse(tooManyLargeRequests(&c.server.service.limits))
	case err != nil:
		c.unreadable(err)
		return false
	default:
		c.busy.Store(true)
		if !c.run(x) {
			return false
		}
	}
	c.busy.Store(true)
	defer func() {
		c.heard()
		c.busy.Store(false)
	}()
	if !c.send(x.out.buf) {
		return true
	}
	select {
	case <-c.sent:
		return true
	case <-c.done:
		return false
	}
}

// run runs the calls of a message unless the server is closed.
func (c *socket) run(x *pooledExchange) bool {
	s := c.server
	s.gate.RLock()
	defer s.gate.RUnlock()
	if s.closed {
		return false
	}
	x.run()
	return true
}

// errBusy says that there was no memory for a message.
var errBusy = errors.New("no memory for a large message")

// readMessage reads a message into the exchange. The connection fails when it is larger than maxRequestBytes.
func (c *socket) readMessage(x *pooledExchange, reader io.Reader) error {
	for {
		if len(x.body) > unmeteredBytes && x.metered == 0 {
			wait, cancel := context.WithTimeout(c.ctx, readTimeout)
			err := c.server.requestMemory.acquire(wait, maxRequestBytes)
			cancel()
			if err != nil {
				if _, err := io.Copy(io.Discard, reader); err != nil {
					return err
				}
				return errBusy
			}
			x.metered = min(maxRequestBytes, c.server.requestMemory.size)
		}
		if len(x.body) == cap(x.body) {
			bigger := make([]byte, len(x.body), nextBodySize(cap(x.body), -1, x.metered > 0))
			copy(bigger, x.body)
			x.body = bigger
		}
		n, err := reader.Read(x.body[len(x.body):cap(x.body)])
		x.body = x.body[:len(x.body)+n]
		switch {
		case err == io.EOF:
			x.settle()
			return nil
		case err != nil:
			return err
		}
	}
}

func tooManyLargeRequests(l *Limits) *jsonrpc.Error {
	return jsonrpc.Busy("too many large requests at once", uint64(l.InFlightRequestBytes))
}

// send queues the answer to a message and starts the subscriptions it opened: what they bring is queued behind it.
// It returns false when there is nothing to send.
func (c *socket) send(answer []byte) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	opened := c.pending
	c.pending = nil
	if c.mu.closing {
		return len(answer) > 0
	}
	if len(opened) > 0 && !c.server.service.hub.live() {
		c.closeLocked(websocket.CloseInternalServerErr, jsonrpc.ReasonLiveDisconnected)
		return len(answer) > 0
	}
	c.mu.subscriptions = append(c.mu.subscriptions, opened...)
	if len(answer) == 0 {
		return false
	}
	c.mu.queue = append(c.mu.queue, message{body: answer})
	c.signal()
	return true
}

// admit takes a subscription up, to start with the answer of the message. It belongs to the reading goroutine.
func (c *socket) admit(s *subscription) error {
	limits := &c.server.service.limits
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.mu.subscriptions)+len(c.pending) >= limits.MaxSubscriptions {
		return jsonrpc.LimitExceeded("too many subscriptions on this connection", jsonrpc.ReasonSubscriptions, uint64(limits.MaxSubscriptions))
	}
	if c.mu.filterBytes+s.bytes > maxFilterBytes {
		return jsonrpc.LimitExceeded("the filters of this connection are too large", jsonrpc.ReasonFilterBytes, maxFilterBytes)
	}
	if c.mu.closing {
		return nil // nobody will know
	}
	if all := &c.server.service.hub.filterBytes; all.Add(int64(s.bytes)) > int64(limits.SubscriptionBytes) {
		all.Add(-int64(s.bytes))
		return jsonrpc.LimitExceeded("the filters of all connections are too large", jsonrpc.ReasonFilterBytes, uint64(limits.SubscriptionBytes))
	}
	c.mu.filterBytes += s.bytes
	c.pending = append(c.pending, s)
	return nil
}

// dropFilterLocked gives back the room that a filter takes.
func (c *socket) dropFilterLocked(bytes int) {
	if !c.mu.closing { // else all was given back
		c.mu.filterBytes -= bytes
		c.server.service.hub.filterBytes.Add(-int64(bytes))
	}
}

// remove ends a subscription; false when there is none of that id. It belongs to the reading goroutine.
func (c *socket) remove(id string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, list := range []*[]*subscription{&c.mu.subscriptions, &c.pending} {
		for i, s := range *list {
			if s.id == id {
				c.dropFilterLocked(s.bytes)
				*list = slices.Delete(*list, i, i+1)
				return true
			}
		}
	}
	return false
}

func (c *socket) subscribed() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.mu.subscriptions) > 0
}

// heldBytes is the bytes of notifications that are queued or being sent.
func (c *socket) heldBytes() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.mu.held
}

// look pings a silent client and closes one that does not answer, or that is too slow for too long.
func (c *socket) look(now time.Time) {
	times := &c.server.service.hub.times
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.mu.closing {
		return
	}
	if !c.mu.congested.IsZero() && now.Sub(c.mu.congested) >= times.congestion {
		c.closeLocked(websocket.CloseTryAgainLater, "too slow: a quarter of rpc.max_subscription_event_bytes was unsent for too long")
		return
	}
	if c.busy.Load() {
		return // nothing is read meanwhile
	}
	seen := c.seen.Load()
	switch silence := time.Duration(now.UnixNano() - seen); {
	case silence >= times.silence:
		c.closeLocked(websocket.ClosePolicyViolation, "no answer to pings")
	case silence >= times.ping && c.mu.pinged != seen:
		c.mu.ping, c.mu.pinged = true, seen
		c.signal()
	}
}

// congestedLocked notes since when too much is unsent.
func (c *socket) congestedLocked(now time.Time) {
	switch high := c.mu.held > int64(c.server.service.limits.MaxEventBytes/4); {
	case !high:
		c.mu.congested = time.Time{}
	case c.mu.congested.IsZero():
		c.mu.congested = now
	}
}

// close ends the connection, with a close frame if the code is not 0. Unsent notifications are dropped. Only the
// first call counts.
func (c *socket) close(code int, reason string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closeLocked(code, reason)
}

func (c *socket) closeLocked(code int, reason string) {
	if c.mu.closing {
		return
	}
	c.dropFilterLocked(c.mu.filterBytes)
	c.mu.closing, c.mu.code, c.mu.reason = true, code, reason
	h := c.server.service.hub
	h.queued.Add(-c.mu.held)
	c.mu.held, c.mu.queue, c.mu.subscriptions = 0, nil, nil
	c.mu.closeUntil = time.Now().Add(h.times.closing)
	_ = c.net.SetWriteDeadline(c.mu.closeUntil)
	c.cancel()
	c.signal()
}

// cut ends the connection at once.
func (c *socket) cut() {
	c.close(0, "")
	_ = c.net.Close()
}
