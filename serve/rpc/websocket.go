package rpc

import (
	"encoding/base64"
	"errors"
	"io"
	"net"
	"runtime/debug"
	"sync"
	"time"

	"github.com/fasthttp/websocket"
	"github.com/valyala/fasthttp"
)

// This file opens WebSockets. What is said on them is the business of socket.

// socketSlots counts WebSockets against their limit. A slot is taken by the request for an upgrade, and
// belongs to its connection until the WebSocket ends or the connection, without having become one.
type socketSlots struct {
	mu    sync.Mutex
	taken int
	// asked are connections whose upgrade has been granted and not carried out yet.
	asked map[net.Conn]struct{}
}

// take takes a slot for a connection; false when there is none.
func (s *socketSlots) take(conn net.Conn, limit int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.taken >= limit {
		return false
	}
	s.taken++
	s.asked[conn] = struct{}{}
	return true
}

// free gives a slot back.
func (s *socketSlots) free() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.taken--
}

// track learns what became of a connection. It tells whether that ended without becoming a WebSocket although it
// had a slot, which is free again.
func (s *socketSlots) track(conn net.Conn, state fasthttp.ConnState) (abandoned bool) {
	if state != fasthttp.StateClosed && state != fasthttp.StateHijacked {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.asked[conn]; ok {
		delete(s.asked, conn)
		if state == fasthttp.StateClosed {
			s.taken--
			return true
		}
	}
	return false
}

// settle does what follows when a connection has ended or become a WebSocket.
func (s *Server) settle(conn net.Conn, state fasthttp.ConnState) {
	if s.slots.track(conn, state) {
		s.service.hub.sockets.running.Done()
	}
}

// ServeWebSocket opens WebSockets on the listener until Shutdown, and then returns nil. It closes the listener.
// After Shutdown it does only that.
func (s *Server) ServeWebSocket(listener net.Listener) error {
	s.service.hub.open.Store(true)
	return s.serveOn(s.upgrades, listener)
}

// DisconnectLive tells that the chain is not followed any more. WebSockets with subscriptions are closed with 1011,
// and further subscriptions are refused.
func (s *Server) DisconnectLive() { s.service.hub.disconnect() }

// prepareUpgrades makes the server that answers requests for WebSockets.
func (s *Server) prepareUpgrades(o *Options) {
	s.slots.asked = make(map[net.Conn]struct{})
	s.handshake = websocket.FastHTTPUpgrader{
		ReadBufferSize: 4 << 10,
		// What is written goes past the buffer of the websocket package.
		WriteBufferSize: 256,
		WriteBufferPool: new(sync.Pool),
		CheckOrigin:     func(*fasthttp.RequestCtx) bool { return true }, // checked before
		Error: func(ctx *fasthttp.RequestCtx, status int, reason error) {
			ctx.Response.Header.Set("Sec-WebSocket-Version", "13")
			refuseText(ctx, status, reason.Error())
		},
	}
	s.upgrades = &fasthttp.Server{
		Handler: s.upgrade,
		ErrorHandler: func(ctx *fasthttp.RequestCtx, err error) {
			status, text := requestFault(err)
			if errors.Is(err, fasthttp.ErrBodyTooLarge) {
				status, text = fasthttp.StatusUpgradeRequired, socketsOnly
			}
			refuseText(ctx, status, text)
		},
		ConnState: func(conn net.Conn, state fasthttp.ConnState) {
			s.trackConn(conn, state)
			s.settle(conn, state)
		},
		Logger:                connLogger{o.Logger},
		Concurrency:           o.Limits.MaxConnections,
		ReadBufferSize:        maxHeaderBytes,
		ReadTimeout:           handshakeTimeout,
		WriteTimeout:          handshakeTimeout,
		IdleTimeout:           handshakeTimeout,
		MaxRequestBodySize:    1,
		LazyRequestTime:       true,
		NoDefaultServerHeader: true,
		CloseOnShutdown:       true,
	}
}

// upgrade answers one request for a WebSocket.
func (s *Server) upgrade(ctx *fasthttp.RequestCtx) {
	header := &ctx.Request.Header
	if !s.allowsOrigin(header) {
		refuseText(ctx, fasthttp.StatusForbidden, "this origin may not call")
		return
	}
	if !header.IsGet() || !header.IsHTTP11() || !websocket.FastHTTPIsWebSocketUpgrade(ctx) {
		ctx.Response.Header.Set(fasthttp.HeaderUpgrade, "websocket")
		refuseText(ctx, fasthttp.StatusUpgradeRequired, socketsOnly)
		return
	}
	if !isSocketKey(header.Peek(headerSocketKey)) {
		refuseText(ctx, fasthttp.StatusBadRequest, headerSocketKey+" is not 16 bytes in base64")
		return
	}
	conn := ctx.Conn()
	if !s.service.hub.expect() {
		refuseText(ctx, fasthttp.StatusServiceUnavailable, reasonShutdown)
		ctx.SetConnectionClose()
		return
	}
	if !s.slots.take(conn, s.service.limits.MaxWebSocketConnections) {
		s.service.hub.sockets.running.Done()
		refuseText(ctx, fasthttp.StatusServiceUnavailable, "there are as many WebSockets as rpc.max_websocket_connections allows")
		ctx.SetConnectionClose()
		return
	}
	if err := s.handshake.Upgrade(ctx, s.serveSocket); err != nil {
		s.settle(conn, fasthttp.StateClosed)
	}
}

const (
	socketsOnly     = "this address serves WebSockets only"
	headerSocketKey = "Sec-WebSocket-Key"
	socketKeyBytes  = 16 // RFC 6455, section 4.1
)

// isSocketKey tells whether a client has made a key as it should.
func isSocketKey(text []byte) bool {
	var key [socketKeyBytes + 2]byte // what as many digits could hold
	if len(text) != base64.StdEncoding.EncodedLen(socketKeyBytes) {
		return false
	}
	n, err := base64.StdEncoding.Decode(key[:], text)
	return err == nil && n == socketKeyBytes
}

// serveSocket serves a connection that has become a WebSocket. fasthttp closes it afterwards.
func (s *Server) serveSocket(conn *websocket.Conn) {
	h := s.service.hub
	defer h.sockets.running.Done()
	held := true
	free := func() {
		if held {
			held = false
			s.slots.free()
		}
	}
	defer free()
	defer func() {
		if v := recover(); v != nil {
			s.service.logFailure(&panicError{value: v, stack: debug.Stack()}, "")
		}
	}()
	c := newSocket(s, conn)
	if !h.enter(c) {
		c.close(websocket.CloseGoingAway, reasonShutdown)
	}
	c.serve()
	h.leave(c)
	free()
	c.drain()
}

// drain reads what the client has sent meanwhile and waits a moment until it closes its side: a connection that is
// closed with unread input is reset, and the client may not get to see the close frame.
func (c *socket) drain() {
	conn := c.net
	if under, ok := conn.(interface{ UnsafeConn() net.Conn }); ok {
		conn = under.UnsafeConn()
	}
	half, ok := conn.(interface{ CloseWrite() error })
	if !ok || half.CloseWrite() != nil {
		return
	}
	_ = conn.SetReadDeadline(time.Now().Add(c.server.service.hub.times.closing))
	_, _ = io.CopyN(io.Discard, conn, maxDrainBytes)
}
