package bench

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/leani-go/leani/chain"
	"github.com/leani-go/leani/engine/history"
	"github.com/leani-go/leani/serve/rpc"
)

// Node serves a store over HTTP and WebSocket on the loopback interface, with the server and the limits of the
// product.
type Node struct {
	url, ws string
	server  *rpc.Server
	done    chan error // of each listener
}

// shutdownTime bounds how long running calls may take when a node is closed.
const shutdownTime = 10 * time.Second

// Serve starts a node. The caller closes it before the store.
func Serve(s *Store, network *chain.Network) (*Node, error) { return serveLanes(s, network, 0) }

// serveLanes is Serve with a number of threads for heavy queries; 0 is the default.
func serveLanes(s *Store, network *chain.Network, lanes int) (*Node, error) {
	server, err := rpc.New(rpc.Options{
		Store: served{s.History}, Network: network, LaneWorkers: lanes, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		return nil, err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, errors.Join(fmt.Errorf("listen: %w", err), server.Shutdown(context.Background()))
	}
	sockets, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, errors.Join(fmt.Errorf("listen: %w", err), listener.Close(), server.Shutdown(context.Background()))
	}
	n := &Node{
		url: "http://" + listener.Addr().String(), ws: "ws://" + sockets.Addr().String(),
		server: server, done: make(chan error, 2),
	}
	go func() { n.done <- server.Serve(listener) }() // both end with Close
	go func() { n.done <- server.ServeWebSocket(sockets) }()
	return n, nil
}

// Close ends the node and waits for running calls.
func (n *Node) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), shutdownTime)
	defer cancel()
	return errors.Join(n.server.Shutdown(ctx), <-n.done, <-n.done)
}

// served is the history as the server sees it.
type served struct{ *history.Store }

// View implements rpc.Store.
func (s served) View() (rpc.View, error) {
	v, err := s.Store.View()
	if err != nil {
		return nil, err
	}
	return v, nil
}

// Client asks a node over one connection. One goroutine.
type Client struct {
	url    string
	http   *http.Client
	answer bytes.Buffer
}

// Client makes a client.
func (n *Node) Client() *Client { return newClient(n.url) }

func newClient(url string) *Client {
	return &Client{url: url, http: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 1, DisableCompression: true}}}
}

// Close closes the connection.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// Ask calls a method and reads the whole answer, which is valid until the next call.
func (c *Client) Ask(ctx context.Context, q *Query) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url, bytes.NewReader(q.body))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := c.http.Do(request)
	if err != nil {
		return nil, fmt.Errorf("query %s: %w", q.ID, err)
	}
	defer func() { _ = response.Body.Close() }()
	c.answer.Reset()
	if _, err := c.answer.ReadFrom(response.Body); err != nil {
		return nil, fmt.Errorf("query %s: read answer: %w", q.ID, err)
	}
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("query %s: got HTTP status %d", q.ID, response.StatusCode)
	}
	return c.answer.Bytes(), nil
}

// Asker is a client of a node. Its answers are valid until the next call.
type Asker interface {
	Ask(ctx context.Context, q *Query) ([]byte, error)
	Close()
}

// Check calls a method and checks that the answer is a result with as many logs as expected.
func Check(ctx context.Context, c Asker, q *Query) error {
	answer, err := c.Ask(ctx, q)
	if err != nil {
		return err
	}
	if !bytes.HasPrefix(answer, []byte(`{"jsonrpc":"2.0","id":1,"result":`)) || bytes.Contains(answer, []byte(`"result":null`)) {
		return fmt.Errorf("query %s: got no result: %.200s", q.ID, answer)
	}
	if q.Expect == NoExpectation {
		return nil
	}
	if got := bytes.Count(answer, []byte(`"logIndex":`)); got != q.Expect {
		return fmt.Errorf("query %s: %w: got %d want %d", q.ID, errCount, got, q.Expect)
	}
	return nil
}
