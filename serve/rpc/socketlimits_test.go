package rpc

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fasthttp/websocket"

	"github.com/leani-go/leani/chain"
)

// headEncoder writes heads as strings of a size.
type headEncoder struct {
	stubEncoder
	size  *atomic.Int64
	heads *atomic.Int64 // how often one was written
	logs  *atomic.Int64
}

func newHeadEncoder(size int64) headEncoder {
	e := headEncoder{size: new(atomic.Int64), heads: new(atomic.Int64), logs: new(atomic.Int64)}
	e.size.Store(size)
	return e
}

func (e headEncoder) AppendHeader(dst []byte, _ *chain.Block) ([]byte, error) {
	e.heads.Add(1)
	dst = append(dst, '"')
	dst = append(dst, bytes.Repeat([]byte{'h'}, int(e.size.Load())-2)...)
	return append(dst, '"'), e.fail
}

func (e headEncoder) AppendLog(dst []byte, l *chain.FoundLog) []byte {
	e.logs.Add(1)
	return e.stubEncoder.AppendLog(dst, l)
}

// notificationSize is how long a notification with a result of n bytes is.
func notificationSize(n int) int { return len(newSubscription().opening) + n + len(notificationEnd) }

// TestSubscriptionLimit: so many subscriptions and filters of such a size on a connection, those nobody knows of
// included; ending one makes room. RPC-016 RPC-186 RPC-201
func TestSubscriptionLimit(t *testing.T) {
	s := startSockets(t, 4, func(o *Options) { o.Limits.MaxSubscriptions = 3 })
	c := s.dial()
	first := c.subscribe(`["newHeads"]`)
	c.send(`{"jsonrpc":"2.0","method":"eth_subscribe","params":["logs"]}`)
	c.subscribe(`["logs"]`)
	const want = `{"jsonrpc":"2.0","id":1,"error":{"code":-32005,"message":"too many subscriptions on this connection","data":{"reason":"subscription_limit_exceeded","limit":3}}}`
	const more = `{"jsonrpc":"2.0","id":1,"method":"eth_subscribe","params":["newHeads"]}`
	if got := c.ask(more); got != want {
		t.Errorf("got %s", got)
	}
	c.send(`{"jsonrpc":"2.0","method":"eth_unsubscribe","params":["` + first + `"]}`)
	if got := c.ask("[" + more + "," + more + "]"); !strings.Contains(got, `"result":"0x`) || !strings.HasSuffix(got, ","+want+"]") {
		t.Errorf("got %s", got)
	}
	s.dial().subscribe(`["newHeads"]`) // of another connection

	s = startSockets(t, 4, nil)
	c = s.dial()
	var addresses []string
	for i := range 1000 {
		addresses = append(addresses, fmt.Sprintf(`"0x%040x"`, i))
	}
	filter := `["logs",{"address":[` + strings.Join(addresses, ",") + `]}]`
	opened := 0
	for ; ; opened++ {
		answer := c.ask(`{"jsonrpc":"2.0","id":1,"method":"eth_subscribe","params":` + filter + `}`)
		if strings.Contains(answer, `"subscription_filter_limit_exceeded"`) {
			break
		}
		if !strings.Contains(answer, `"result"`) {
			t.Fatalf("got %s", answer)
		}
	}
	if want := maxFilterBytes / 20_000; opened != want {
		t.Errorf("%d filters of 20,000 bytes, want %d", opened, want)
	}
	// RPC-185
	topics := strings.Repeat(`"0x`+strings.Repeat("11", 32)+`",`, 1001)
	if got := c.ask(`{"jsonrpc":"2.0","id":1,"method":"eth_subscribe","params":["logs",{"topics":[[` + strings.TrimSuffix(topics, ",") + `]]}]}`); !strings.Contains(got, `"code":-32602`) || !strings.Contains(got, "more than 1000 alternatives") {
		t.Errorf("got %s", got)
	}
	if got := c.ask(`{"jsonrpc":"2.0","id":1,"method":"eth_subscribe","params":["logs",{"address":[` + strings.Join(append(addresses, `"0x00000000000000000000000000000000ffffffff"`), ",") + `]}]}`); !strings.Contains(got, "more than 1000 addresses") {
		t.Errorf("got %s", got)
	}
}

// TestSubscriptionBytes: filters of all connections count together, and no longer than their subscriptions and connections last.
func TestSubscriptionBytes(t *testing.T) {
	const filter = 20 + 32
	s := startSockets(t, 4, func(o *Options) { o.Limits.SubscriptionBytes = 3 * filter })
	params := `["logs",{"address":"` + tokenAddress.Hex() + `","topics":["0x` + strings.Repeat("11", 32) + `"]}]`
	first, second := s.dial(), s.dial()
	first.subscribe(params)
	id := second.subscribe(params)
	second.subscribe(params)
	const want = `{"jsonrpc":"2.0","id":1,"error":{"code":-32005,"message":"the filters of all connections are too large","data":{"reason":"subscription_filter_limit_exceeded","limit":156}}}`
	call := `{"jsonrpc":"2.0","id":1,"method":"eth_subscribe","params":` + params + `}`
	if got := first.ask(call); got != want {
		t.Errorf("got %s", got)
	}
	first.subscribe(`["newHeads"]`) // costs nothing of it
	second.ask(`{"jsonrpc":"2.0","id":1,"method":"eth_unsubscribe","params":["` + id + `"]}`)
	first.subscribe(params)
	if got := first.ask(call); got != want {
		t.Errorf("got %s", got)
	}
	_ = second.Close()
	s.gone(1)
	first.subscribe(params)
	if got := first.ask(call); got != want {
		t.Errorf("got %s", got)
	}
}

// TestEventBytes: what one event may be in all, whoever it is serialized for, and that it is told as a whole or not
// at all. RPC-189 RPC-190 RPC-191 RPC-198
func TestEventBytes(t *testing.T) {
	e := newHeadEncoder(1000)
	limit := 6 * notificationSize(1000)
	s := startSockets(t, 4, func(o *Options) {
		o.Limits.MaxEventBytes = limit
		o.newEncoder = stubbed(e)
	})
	fits, over := s.dial(), s.dial()
	for range 3 {
		fits.subscribe(`["newHeads"]`)
		over.subscribe(`["newHeads"]`)
	}
	for range 4 {
		over.subscribe(`["newHeads"]`)
	}
	s.feed.advance(1)
	if reason := over.closedUntold(websocket.ClosePolicyViolation); !strings.Contains(reason, "rpc.max_subscription_event_bytes") {
		t.Errorf("reason %q", reason)
	}
	if got := fits.until(); len(got) != 3 {
		t.Errorf("got %d notifications", len(got))
	}
	if n := e.heads.Load(); n != 1 {
		t.Errorf("a head was serialized %d times", n)
	}
	// A reorganization is one event: three heads for three subscriptions are too much. Two blocks are two events.
	s.feed.commit(0, s.feed.next(0, 2)...)
	if got := fits.until(); len(got) != 6 {
		t.Errorf("got %d notifications", len(got))
	}
	s.feed.commit(1, s.feed.next(1, 3)...)
	fits.closedUntold(websocket.ClosePolicyViolation)
}

// closedUntold is closed for a connection to which nothing may be sent before.
func (c *socketClient) closedUntold(code int) string {
	c.t.Helper()
	_, text, err := c.ReadMessage()
	var end *websocket.CloseError
	if !errors.As(err, &end) || end.Code != code {
		c.t.Errorf("got %.200s, %v, want close code %d", text, err, code)
		return ""
	}
	return end.Text
}

// TestSubscriptionsEnd: with its connection a subscription ends, and nothing is written for it any more. RPC-188
func TestSubscriptionsEnd(t *testing.T) {
	e := newHeadEncoder(100)
	s := startSockets(t, 4, func(o *Options) {
		o.Limits.MaxWebSocketConnections = 1
		o.newEncoder = stubbed(e)
	})
	for range 3 { // each has the one place there is
		c := s.dial()
		c.subscribe(`["newHeads"]`)
		s.feed.advance(1)
		if got := c.until(); len(got) != 1 {
			t.Errorf("got %d notifications", len(got))
		}
		told := e.heads.Load()
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		s.gone(0)
		s.feed.advance(1)
		if n := e.heads.Load(); n != told {
			t.Errorf("%d heads were written for nobody", n-told)
		}
		s.waitFor("the slot to be free", func() bool {
			s.slots.mu.Lock()
			defer s.slots.mu.Unlock()
			return s.slots.taken == 0
		})
	}
}

// TestSharedLogs: a log is serialized once for all subscriptions of all connections. RPC-190
func TestSharedLogs(t *testing.T) {
	e := newHeadEncoder(100)
	s := startSockets(t, 4, func(o *Options) { o.newEncoder = stubbed(e) })
	clients := make([]*socketClient, 5)
	for i := range clients {
		clients[i] = s.dial()
		for range 7 {
			clients[i].subscribe(`["logs",{"address":"` + tokenAddress.Hex() + `"}]`)
		}
	}
	blocks := s.feed.next(0, 4) // with 6 logs of the token in all
	s.feed.commit(0, blocks...)
	for _, c := range clients {
		if got := c.until(); len(got) != 7*6 {
			t.Errorf("got %d notifications", len(got))
		}
	}
	if n := e.logs.Load(); n != 6 {
		t.Errorf("6 logs were serialized %d times", n)
	}
}

// stalled is a connection that reads nothing but the answers it waits for. Its receive buffer is small, and still holds a few of the
// packets of the loopback interface: with less, what it reads in the end comes with long pauses.
func (s *socketServer) stalled() *socketClient {
	s.t.Helper()
	dialer := websocket.Dialer{NetDial: func(network, address string) (net.Conn, error) {
		conn, err := net.Dial(network, address)
		if err == nil {
			err = conn.(*net.TCPConn).SetReadBuffer(256 << 10)
		}
		return conn, err
	}}
	conn, _, err := dialer.Dial(s.url, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = conn.Close() })
	_ = conn.SetReadDeadline(time.Now().Add(patience))
	return &socketClient{Conn: conn, t: s.t}
}

// gone waits until so many sockets are open.
func (s *socketServer) gone(open int) {
	s.t.Helper()
	s.waitFor("sockets to end", func() bool { return len(s.service.hub.list()) == open })
}

// closing counts the open sockets that are being closed.
func (s *socketServer) closing() (n int) {
	for _, c := range s.service.hub.list() {
		c.mu.Lock()
		if c.mu.closing {
			n++
		}
		c.mu.Unlock()
	}
	return n
}

// TestStalledSocket: a client that does not read is closed when too much is unsent, and others are told everything
// meanwhile. What it held is free again. RPC-192 RPC-197 RPC-198 INV-23
func TestStalledSocket(t *testing.T) {
	const size = 1 << 20
	s := startSockets(t, 4, func(o *Options) {
		o.Limits.MaxEventBytes = 4 << 20
		o.newEncoder = stubbed(newHeadEncoder(size))
	})
	slow, fast := s.stalled(), s.dial()
	slow.subscribe(`["newHeads"]`)
	fast.subscribe(`["newHeads"]`)
	for range 40 {
		s.feed.advance(1)
		if got := fast.receive(); len(got) != notificationSize(size) {
			t.Fatalf("got %d bytes", len(got))
		}
		if len(s.service.hub.list()) == 1 {
			break
		}
	}
	s.gone(1)
	fast.alive()
	if n := s.service.hub.queued.Load(); n != 0 {
		t.Errorf("%d bytes are queued", n)
	}
}

// TestUnsentWithCloseFrame: the queue is full because its connection was blocked for a moment, and the client still gets to
// know why it is closed. RPC-192 RPC-194 RPC-197
func TestUnsentWithCloseFrame(t *testing.T) {
	s := startSockets(t, 4, func(o *Options) {
		o.Limits.MaxEventBytes = 4 << 20
		o.newEncoder = stubbed(newHeadEncoder(1 << 20))
		o.times = defaultSocketTimes()
		o.times.closing = patience
	})
	slow := s.stalled()
	slow.subscribe(`["newHeads"]`)
	closing := func() bool {
		for _, c := range s.service.hub.list() {
			c.mu.Lock()
			defer c.mu.Unlock()
			return c.mu.closing
		}
		return true
	}
	for !closing() {
		s.feed.advance(1)
	}
	if reason := slow.closed(websocket.CloseTryAgainLater); !strings.Contains(reason, "rpc.max_subscription_event_bytes") {
		t.Errorf("reason %q", reason)
	}
}

// TestOutboundBytes: of all connections the one that holds most is closed. RPC-195
func TestOutboundBytes(t *testing.T) {
	e := newHeadEncoder(1 << 20)
	s := startSockets(t, 4, func(o *Options) {
		o.Limits.MaxEventBytes, o.Limits.MaxOutboundBytes = 24<<20, 24<<20
		o.newEncoder = stubbed(e)
		o.times = defaultSocketTimes()
		o.times.closing = patience
	})
	light, heavy := s.stalled(), s.stalled()
	light.subscribe(`["newHeads"]`)
	for range 3 {
		heavy.subscribe(`["newHeads"]`)
	}
	// Together they reach the limit before the heavy one does by itself.
	gone := func() int { return s.closing() + 2 - len(s.service.hub.list()) }
	for gone() == 0 {
		s.feed.advance(1)
	}
	if reason := heavy.closed(websocket.CloseTryAgainLater); !strings.Contains(reason, "rpc.max_outbound_bytes") {
		t.Errorf("reason %q", reason)
	}
	if gone() != 1 {
		t.Error("the light one is closed too")
	}
}

// TestCongestion: a client that keeps a quarter unsent for too long is closed, however little follows. RPC-196
func TestCongestion(t *testing.T) {
	s := startSockets(t, 4, func(o *Options) {
		o.Limits.MaxEventBytes = 16 << 20
		o.newEncoder = stubbed(newHeadEncoder(12 << 20))
		o.times = defaultSocketTimes()
		o.times.sweep, o.times.congestion, o.times.closing = time.Millisecond, 20*time.Millisecond, patience
	})
	slow, fast := s.stalled(), s.dial()
	slow.subscribe(`["newHeads"]`)
	s.feed.advance(1)
	s.waitFor("the slow one to be closed", func() bool { // it reads nothing before
		return s.closing() > 0 || len(s.service.hub.list()) == 1
	})
	if reason := slow.closed(websocket.CloseTryAgainLater); !strings.Contains(reason, "too slow") {
		t.Errorf("reason %q", reason)
	}
	fast.alive()
}

// TestLagged: whoever has subscriptions is closed when the node itself misses changes, or cannot follow; what is
// subscribed to afterwards is told. RPC-193
func TestLagged(t *testing.T) {
	s := startSockets(t, 4, nil)
	for _, c := range []struct {
		err  error
		code int
	}{{ErrLagged, websocket.CloseTryAgainLater}, {errors.New("broken"), websocket.CloseInternalServerErr}} {
		idle, subscribed := s.dial(), s.dial()
		subscribed.subscribe(`["newHeads"]`)
		s.feed.fail(c.err)
		subscribed.closed(c.code)
		idle.alive()
		idle.subscribe(`["newHeads"]`)
		s.feed.advance(1)
		if got := idle.until(); len(got) != 1 {
			t.Errorf("got %q", got)
		}
		_ = idle.Close()
	}
}

// TestMissingEvent: an event that cannot be told closes with the reason. RPC-182
func TestMissingEvent(t *testing.T) {
	s := startSockets(t, 4, nil)
	heads, logs, other := s.dial(), s.dial(), s.dial()
	heads.subscribe(`["newHeads"]`)
	logs.subscribe(`["logs"]`)
	lost := s.feed.next(0, 1)
	lost[0].Hash[0]++ // of which the view shows another one
	b := *lost[0]
	b.Hash[0]--
	s.feed.mu.Lock()
	s.feed.store.blocks[b.Number] = &b
	view := s.feed.viewLocked()
	l := s.feed.followers[0]
	s.feed.mu.Unlock()
	l.events <- fakeEvent{change: Change{Applied: []chain.BlockRef{lost[0].BlockRef}}, view: view}
	if got := heads.closed(websocket.CloseInternalServerErr); got != "complete_header_not_retained" {
		t.Errorf("reason %q", got)
	}
	if got := logs.closed(websocket.CloseInternalServerErr); got != "complete_logs_not_retained" {
		t.Errorf("reason %q", got)
	}
	other.alive()
}

// TestDisconnect: when the node follows no more, subscribers are closed, and new subscriptions refused.
func TestDisconnect(t *testing.T) {
	s := startSockets(t, 4, nil)
	idle, subscribed := s.dial(), s.dial()
	subscribed.subscribe(`["newHeads"]`)
	if got := idle.ask(`{"jsonrpc":"2.0","id":1,"method":"leani_getCapabilities"}`); !strings.Contains(got, `"eth_subscribe(logs)":{"supported":true,`) {
		t.Errorf("got %s", got)
	}
	s.DisconnectLive()
	if got := subscribed.closed(websocket.CloseInternalServerErr); got != "live_subscription_disconnected" {
		t.Errorf("reason %q", got)
	}
	if got := idle.ask(`{"jsonrpc":"2.0","id":1,"method":"eth_subscribe","params":["logs"]}`); !strings.Contains(got, `"live_subscription_disconnected"`) {
		t.Errorf("got %s", got)
	}
	if got := idle.ask(`{"jsonrpc":"2.0","id":1,"method":"leani_getCapabilities"}`); !strings.Contains(got, `"webSocket":true`) ||
		!strings.Contains(got, `"eth_subscribe(logs)":{"supported":false,`) {
		t.Errorf("got %s", got)
	}
}

// TestNoFeed: without a feed nothing is subscribed to, and everything else is answered. RPC-072
func TestNoFeed(t *testing.T) {
	s := startSockets(t, 4, func(o *Options) { o.Feed = nil })
	c := s.dial()
	for _, kind := range []string{"newHeads", "logs"} {
		if got := c.ask(`{"jsonrpc":"2.0","id":1,"method":"eth_subscribe","params":["` + kind + `"]}`); !strings.Contains(got, `"live_subscription_disconnected"`) {
			t.Errorf("%s: got %s", kind, got)
		}
	}
	if got := c.ask(`{"jsonrpc":"2.0","id":1,"method":"leani_getCapabilities"}`); !strings.Contains(got, `"eth_subscribe(newHeads)":{"supported":false,`) {
		t.Errorf("got %s", got)
	}
	c.alive()
}

// TestSocketShutdown: all are closed with 1001, idle or not. RPC-199
func TestSocketShutdown(t *testing.T) {
	s := startSockets(t, 4, nil)
	idle, subscribed := s.dial(), s.dial()
	subscribed.subscribe(`["newHeads"]`)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- s.Shutdown(ctx) }()
	idle.closed(websocket.CloseGoingAway)
	subscribed.closed(websocket.CloseGoingAway)
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// TestSilence: a silent client is pinged, and stays while it answers; one that does not is closed.
func TestSilence(t *testing.T) {
	s := startSockets(t, 4, func(o *Options) {
		o.times = defaultSocketTimes()
		o.times.sweep, o.times.ping, o.times.silence = time.Millisecond, 5*time.Millisecond, 500*time.Millisecond
	})
	dead := s.dial()
	dead.SetPingHandler(func(string) error { return nil })
	c := s.dial()
	pings := 0
	c.SetPingHandler(func(data string) error {
		if pings++; pings == 5 {
			return io.EOF
		}
		return c.WriteControl(websocket.PongMessage, []byte(data), time.Now().Add(patience))
	})
	if _, _, err := c.ReadMessage(); err != io.EOF {
		t.Errorf("after %d pings: %v", pings, err)
	}
	dead.closed(websocket.ClosePolicyViolation)
}

// frame is a client's frame, masked with zeros unless it is to be none.
func frame(first byte, payload string, masked bool) []byte {
	b := appendFrameHeader(nil, 0, len(payload))
	b[0] = first
	if masked {
		b[1] |= 0x80
		b = append(b, 0, 0, 0, 0)
	}
	return append(b, payload...)
}

// TestFrames sends frames byte by byte: those of good messages in pieces, and hostile ones. RPC-009 RPC-206
func TestFrames(t *testing.T) {
	s := startSockets(t, 4, nil)
	const call = `{"jsonrpc":"2.0","id":1,"method":"net_version"}`
	const answer = `{"jsonrpc":"2.0","id":1,"result":"1337"}`
	const final = 0x80
	longest := binary.BigEndian.AppendUint64([]byte{final | opText, 0x80 | 127}, 1<<63)
	huge := binary.BigEndian.AppendUint64([]byte{final | opText, 0x80 | 127}, 1<<62)
	for name, c := range map[string]struct {
		frames []byte
		want   string
		code   int
	}{
		"fragments":          {append(append(append(frame(opText, call[:5], true), frame(0, call[5:20], true)...), frame(final|opPing, "in between", true)...), frame(final, call[20:], true)...), answer, 0},
		"empty fragments":    {append(append(frame(opText, "", true), bytes.Repeat(frame(0, "", true), 1000)...), frame(final, call, true)...), answer, 0},
		"invalid UTF-8":      {frame(final|opText, "{\"jsonrpc\":\"\xff\"}", true), `"code":-32700`, 0},
		"a flood of pings":   {append(bytes.Repeat(frame(final|opPing, strings.Repeat("p", 125), true), 20_000), frame(final|opText, call, true)...), answer, 0},
		"pongs out of order": {append(bytes.Repeat(frame(final|opPong, "", true), 1000), frame(final|opText, call, true)...), answer, 0},
		"not masked":         {frame(final|opText, call, false), "", websocket.CloseProtocolError},
		"binary":             {frame(final|0x2, call, true), "", websocket.CloseUnsupportedData},
		"reserved bit":       {frame(final|0x40|opText, call, true), "", websocket.CloseProtocolError},
		"reserved opcode":    {frame(final|0x3, call, true), "", websocket.CloseProtocolError},
		"no beginning":       {frame(final, call, true), "", websocket.CloseProtocolError},
		"long ping":          {frame(final|opPing, strings.Repeat("p", 126), true), "", websocket.CloseProtocolError},
		"bad close code":     {frame(final|opClose, "\x03\xed", true), "", websocket.CloseProtocolError},
		"too large":          {frame(final|opText, strings.Repeat(" ", maxRequestBytes+1), true), "", websocket.CloseMessageTooBig},
		"too large in parts": {append(frame(opText, strings.Repeat(" ", maxRequestBytes), true), frame(final, " ", true)...), "", websocket.CloseMessageTooBig},
		"announced huge":     {append(huge, 0, 0, 0, 0), "", websocket.CloseMessageTooBig},
		"announced longest":  {longest, "", websocket.CloseMessageTooBig},
		"a part too long":    {append(frame(opText, call[:5], true), append([]byte{0}, longest[1:]...)...), "", websocket.CloseMessageTooBig},
		"largest":            {frame(final|opText, call+strings.Repeat(" ", maxRequestBytes-len(call)), true), answer, 0},
		"the client closes":  {frame(final|opClose, "\x03\xe8", true), "", websocket.CloseNormalClosure},
		"closed with a code": {frame(final|opClose, "\x0f\xa0", true), "", 4000},
	} {
		t.Run(name, func(t *testing.T) {
			client := s.dial()
			client.t = t
			wrote := make(chan struct{})
			go func() { // ends when the server has read or closed
				_, _ = client.NetConn().Write(c.frames)
				close(wrote)
			}()
			if c.code != 0 {
				client.closed(c.code)
			} else if got := client.receive(); !strings.Contains(got, c.want) {
				t.Errorf("got %s", got)
			}
			<-wrote
			_ = client.Close()
		})
	}
	s.gone(0)
	if strings.Contains(s.log.String(), "level=ERROR") {
		t.Errorf("failures of the node:\n%s", s.log.String())
	}
}

// TestOneAtATime: the next message is read when the answer to the one before has been sent, so that a client that
// reads no answers is not worked for. RPC-025 RPC-197
func TestOneAtATime(t *testing.T) {
	const blocks = 4
	var loads atomic.Int64
	s := startSockets(t, blocks, func(o *Options) {
		o.newEncoder = stubbed(fillEncoder{size: 1 << 20})
		o.times = defaultSocketTimes()
		o.times.closing = 10 * time.Millisecond
	})
	s.store.onLoad = func(uint64) error { loads.Add(1); return nil }
	c := s.stalled()
	sent := make(chan struct{})
	go func() { // ends when the connection is cut
		defer close(sent)
		for c.WriteMessage(websocket.TextMessage, []byte(`{"jsonrpc":"2.0","id":1,"method":"eth_getBlockByNumber","params":["0x1",false]}`)) == nil {
		}
	}()
	before := int64(-1)
	s.waitFor("the answers to pile up", func() bool {
		now := loads.Load()
		same := now == before && now > 0
		before = now
		if same {
			return true
		}
		time.Sleep(50 * time.Millisecond)
		return false
	})
	if n := loads.Load(); n > 64 {
		t.Errorf("%d calls were answered for a client that reads nothing", n)
	}
	s.dial().alive()
	for _, socket := range s.service.hub.list() {
		socket.close(websocket.CloseGoingAway, "")
	}
	<-sent
	s.gone(0)
}
