package load

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"strings"
	"time"

	"github.com/fasthttp/websocket"
)

const (
	// misfitSubscriptions is how many subscriptions without a filter a misbehaving WebSocket has: two megabytes a block, and no more
	// than it may get where three are replaced.
	misfitSubscriptions = 6
	// misfitBuffer is the receive buffer of a connection that is not read: as little as makes no odds.
	misfitBuffer = 256 << 10
	// slowRead is how much a slow client reads at once, slowPause how long it rests in between: a tenth of what it is told.
	slowRead, slowPause = 16 << 10, 50 * time.Millisecond
	// stalledTime is how long a client over HTTP reads nothing: longer than the node waits for it.
	stalledTime = 15 * time.Second
)

// smallBuffers dials connections that hold little which is not read.
func smallBuffers(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := new(net.Dialer).DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	return conn, conn.(*net.TCPConn).SetReadBuffer(misfitBuffer)
}

// throttled is a connection that is read slowly until a context ends.
type throttled struct {
	net.Conn
	until context.Context
}

func (t throttled) Read(p []byte) (int, error) {
	select {
	case <-t.until.Done():
	case <-time.After(slowPause):
	}
	return t.Conn.Read(p[:min(len(p), slowRead)])
}

// greedy opens a WebSocket that is told more than others. It is read slowly until slow ends, if that is set.
func greedy(ctx context.Context, url string, slow context.Context) (*websocket.Conn, error) {
	dial := func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := smallBuffers(ctx, network, address)
		if err == nil && slow != nil {
			conn = throttled{conn, slow}
		}
		return conn, err
	}
	dialer := websocket.Dialer{ReadBufferSize: slowRead, WriteBufferSize: 4 << 10, NetDialContext: dial}
	conn, response, err := dialer.DialContext(ctx, url, nil)
	if err != nil {
		return nil, fmt.Errorf("open WebSocket: %w", err)
	}
	_ = response.Body.Close()
	const call = `{"jsonrpc":"2.0","id":1,"method":"eth_subscribe","params":["logs"]}`
	batch := "[" + strings.Repeat(call+",", misfitSubscriptions-1) + call + "]"
	if err = conn.WriteMessage(websocket.TextMessage, []byte(batch)); err == nil {
		_, _, err = conn.ReadMessage()
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("subscribe to all logs: %w", err), conn.Close())
	}
	return conn, nil
}

// ending reads a WebSocket until the node ends it, and says how it did: with 1013, or without a close frame.
func ending(conn *websocket.Conn) (string, error) {
	_ = conn.SetReadDeadline(time.Now().Add(patience))
	for {
		_, _, err := conn.ReadMessage()
		var timeout net.Error
		var closed *websocket.CloseError
		switch {
		case err == nil:
		case errors.As(err, &timeout) && timeout.Timeout():
			return "", errors.New("a client that does not read enough is not cut off")
		case websocket.IsCloseError(err, websocket.CloseTryAgainLater):
			return "closed with 1013", nil
		case errors.As(err, &closed) && closed.Code != websocket.CloseAbnormalClosure:
			return "", fmt.Errorf("a client that does not read enough is closed with %w", err)
		default:
			return "cut off", nil
		}
	}
}

// stalledSocket is told much, reads nothing until the context ends, and has to be cut off by then.
func (r *run) stalledSocket(ctx context.Context) {
	conn, err := greedy(ctx, r.node.process.WebSocket, nil)
	if err != nil {
		r.misfit(ctx, err)
		return
	}
	defer func() { _ = conn.Close() }()
	<-ctx.Done()
	r.ended("WebSocket that stops reading", conn)
}

// slowSocket is told more than it reads, and has to be cut off.
func (r *run) slowSocket(ctx context.Context) {
	conn, err := greedy(ctx, r.node.process.WebSocket, ctx)
	if err != nil {
		r.misfit(ctx, err)
		return
	}
	defer func() { _ = conn.Close() }()
	r.ended("WebSocket that reads slowly", conn)
}

// misfit notes what went wrong with a client that misbehaves, unless the run is over.
func (r *run) misfit(ctx context.Context, err error) {
	if ctx.Err() == nil {
		r.fail(err)
	}
}

func (r *run) ended(what string, conn *websocket.Conn) {
	how, err := ending(conn)
	if err != nil {
		r.fail(fmt.Errorf("%s: %w", what, err))
		return
	}
	r.drop(what + ": " + how)
}

// stalledAsker asks for a large answer over HTTP and reads nothing of it for longer than the node waits, again and again.
func (r *run) stalledAsker(ctx context.Context, q *expected) {
	target, err := url.Parse(r.node.process.HTTP)
	if err != nil {
		r.fail(err)
		return
	}
	for ctx.Err() == nil {
		read, err := r.stallOnce(ctx, target.Host, q)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			r.fail(err)
			return
		case read >= int64(q.bytes):
			r.fail(fmt.Errorf("a client that read nothing for %v got all %d bytes", stalledTime, read))
			return
		}
		r.drop("HTTP client that stops reading: cut off")
	}
}

// stallOnce gives how much of the answer could be read afterwards.
func (r *run) stallOnce(ctx context.Context, address string, q *expected) (int64, error) {
	conn, err := smallBuffers(ctx, "tcp", address)
	if err != nil {
		return 0, err
	}
	defer func() { _ = conn.Close() }()
	_, err = fmt.Fprintf(conn, "POST / HTTP/1.1\r\nHost: load\r\nContent-Type: application/json\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%s", len(q.body), q.body)
	if err != nil {
		return 0, err
	}
	first := make([]byte, 1)
	if _, err := conn.Read(first); err != nil { // the answer begins
		return 0, fmt.Errorf("a large answer: %w", err)
	}
	select {
	case <-time.After(stalledTime):
	case <-ctx.Done():
		return 0, ctx.Err()
	}
	_ = conn.SetReadDeadline(time.Now().Add(patience))
	n, _ := io.Copy(io.Discard, conn) // how it breaks off does not matter
	return n, nil
}
