package bench

import (
	"bytes"
	"context"
	"fmt"

	"github.com/fasthttp/websocket"
)

// SocketClient asks a node over a WebSocket. One goroutine.
type SocketClient struct {
	conn   *websocket.Conn
	answer bytes.Buffer
}

// SocketClient connects a client.
func (n *Node) SocketClient(ctx context.Context) (*SocketClient, error) {
	dialer := websocket.Dialer{ReadBufferSize: 64 << 10} // what others set who read large answers
	conn, response, err := dialer.DialContext(ctx, n.ws, nil)
	if err != nil {
		return nil, fmt.Errorf("connect to %s: %w", n.ws, err)
	}
	return &SocketClient{conn: conn}, response.Body.Close()
}

// Close closes the connection.
func (c *SocketClient) Close() { _ = c.conn.Close() }

// Ask calls a method and reads the whole answer, which is valid until the next call.
func (c *SocketClient) Ask(_ context.Context, q *Query) ([]byte, error) {
	if err := c.conn.WriteMessage(websocket.TextMessage, q.body); err != nil {
		return nil, fmt.Errorf("query %s: %w", q.ID, err)
	}
	_, message, err := c.conn.NextReader()
	if err != nil {
		return nil, fmt.Errorf("query %s: %w", q.ID, err)
	}
	c.answer.Reset()
	if _, err := c.answer.ReadFrom(message); err != nil {
		return nil, fmt.Errorf("query %s: read answer: %w", q.ID, err)
	}
	return c.answer.Bytes(), nil
}
