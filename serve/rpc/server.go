package rpc

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"

	"github.com/fasthttp/websocket"
	"github.com/valyala/fasthttp"
)

// Server serves JSON-RPC over HTTP and WebSocket. Its methods are safe for concurrent use.
type Server struct {
	service *service
	http    *fasthttp.Server
	// upgrades answers the requests that open WebSockets.
	upgrades  *fasthttp.Server
	handshake websocket.FastHTTPUpgrader
	slots     socketSlots
	origins   originRule

	exchanges     sync.Pool // of *pooledExchange
	requestMemory *budget

	// base is the parent of all work; abort ends it when a shutdown cannot wait.
	base  context.Context
	abort context.CancelFunc

	// gate is held for reading by every handler, and for writing to close the server: whoever
	// holds it for writing knows that no handler runs.
	gate   sync.RWMutex
	closed bool // guarded by gate

	// listeners are closed by Shutdown. A listener that Serve gets later is closed at once.
	listeners struct {
		sync.Mutex
		stopped bool
		open    []*closeOnceListener
	}
	// conns are the open connections, to be cut when a shutdown cannot wait.
	conns struct {
		sync.Mutex
		open map[net.Conn]struct{}
	}
}

// New makes a server. It reports all invalid options at once. The workers for heavy queries
// start here and end at Shutdown.
func New(options Options) (*Server, error) {
	o := options.withDefaults()
	if err := o.validate(); err != nil {
		return nil, fmt.Errorf("rpc options: %w", err)
	}
	s := &Server{
		service:       newService(o),
		origins:       newOriginRule(o.AllowedOrigins),
		requestMemory: newBudget(int64(o.Limits.InFlightRequestBytes)),
	}
	if err := s.service.hub.start(); err != nil {
		s.service.close()
		return nil, err
	}
	s.base, s.abort = context.WithCancel(context.Background())
	s.conns.open = make(map[net.Conn]struct{})
	s.http = &fasthttp.Server{
		Handler: s.handle,
		ErrorHandler: func(ctx *fasthttp.RequestCtx, err error) {
			status, text := requestFault(err)
			refuseText(ctx, status, text)
		},
		ExpectHandler:  s.expect,
		ConnState:      s.trackConn,
		Logger:         connLogger{o.Logger},
		Concurrency:    o.Limits.MaxConnections,
		ReadBufferSize: maxHeaderBytes,
		ReadTimeout:    readTimeout,
		WriteTimeout:   writeTimeout,
		IdleTimeout:    idleTimeout,
		// The handler reads the body itself and decides how much of it. Of a body that is
		// larger than its maximum fasthttp reads no more than that before it calls the
		// handler: one byte, so that a body that is announced too large is refused at once.
		StreamRequestBody:            true,
		MaxRequestBodySize:           1,
		DisablePreParseMultipartForm: true,
		LazyRequestTime:              true,
		NoDefaultServerHeader:        true,
		CloseOnShutdown:              true,
	}
	s.prepareUpgrades(&o)
	return s, nil
}

// Serve answers requests of the listener until Shutdown, and then returns nil. It closes the
// listener. After Shutdown it does only that.
func (s *Server) Serve(listener net.Listener) error {
	return s.serveOn(s.http, listener)
}

func (s *Server) serveOn(server *fasthttp.Server, listener net.Listener) error {
	l := &closeOnceListener{Listener: listener}
	s.listeners.Lock()
	stopped := s.listeners.stopped
	s.listeners.open = append(s.listeners.open, l)
	s.listeners.Unlock()
	if stopped {
		_ = l.Close()
		return nil
	}
	if err := server.Serve(l); err != nil {
		return fmt.Errorf("serve JSON-RPC on %v: %w", listener.Addr(), err)
	}
	return nil
}

// Shutdown stops accepting, closes all WebSockets with 1001, lets running requests end and closes all connections. When the
// context ends first, running work is aborted, connections are cut, and the context's error is
// returned. In either case no request uses the store once Shutdown has returned. A second call
// does nothing.
func (s *Server) Shutdown(ctx context.Context) error {
	s.listeners.Lock()
	s.listeners.stopped = true
	for _, l := range s.listeners.open {
		_ = l.Close()
	}
	s.listeners.Unlock()

	err := errors.Join(s.service.hub.shutdown(ctx), s.http.ShutdownWithContext(ctx), s.upgrades.ShutdownWithContext(ctx))
	s.abort()
	if err != nil {
		s.cutConns()
		err = fmt.Errorf("shut down JSON-RPC server: %w", err)
	}

	s.gate.Lock()
	defer s.gate.Unlock()
	if !s.closed {
		s.closed = true
		s.service.hub.close()
		s.service.close()
	}
	return err
}

// closeOnceListener may be closed by several parties.
type closeOnceListener struct {
	net.Listener
	once sync.Once
	err  error
}

// Close closes the listener the first time; later calls return the same result.
func (l *closeOnceListener) Close() error {
	l.once.Do(func() { l.err = l.Listener.Close() })
	return l.err
}

// acquire takes an exchange from the pool; its Close brings it back.
func (s *Server) acquire() *pooledExchange {
	x, ok := s.exchanges.Get().(*pooledExchange)
	if !ok {
		x = &pooledExchange{server: s}
	}
	x.open(s.service, s.base)
	return x
}

// trackConn knows which connections are open, so that they can be cut.
func (s *Server) trackConn(conn net.Conn, state fasthttp.ConnState) {
	switch state {
	case fasthttp.StateNew:
		s.conns.Lock()
		s.conns.open[conn] = struct{}{}
		s.conns.Unlock()
	case fasthttp.StateClosed, fasthttp.StateHijacked:
		s.conns.Lock()
		delete(s.conns.open, conn)
		s.conns.Unlock()
	}
}

func (s *Server) cutConns() {
	s.conns.Lock()
	defer s.conns.Unlock()
	for conn := range s.conns.open {
		_ = conn.Close()
	}
}

// connLogger passes what fasthttp says about connections on at debug level: it is about what
// clients do.
type connLogger struct{ log *slog.Logger }

// Printf implements fasthttp.Logger.
func (l connLogger) Printf(format string, args ...any) {
	if l.log.Enabled(context.Background(), slog.LevelDebug) {
		l.log.Debug("JSON-RPC connection", "event", fmt.Sprintf(format, args...))
	}
}
