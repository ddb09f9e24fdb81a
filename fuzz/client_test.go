package fuzz

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"strconv"
	"testing"
	"time"

	"github.com/valyala/fasthttp/fasthttputil"

	"github.com/leani-go/leani/serve/rpc"
)

// client posts bodies over one connection in memory.
type client struct {
	conn   net.Conn
	reader *bufio.Reader
}

// newClient serves until the test is over.
func newClient(tb testing.TB, server *rpc.Server) *client {
	tb.Helper()
	listener := fasthttputil.NewInmemoryListener()
	done := make(chan error, 1)
	go func() { done <- server.Serve(listener) }()
	conn, err := listener.Dial()
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		_ = conn.Close()
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := server.Shutdown(ctx); err != nil {
			tb.Error(err)
		}
		<-done // an in-memory listener reports its end in its own way
	})
	return &client{conn: conn, reader: bufio.NewReader(conn)}
}

// post sends a body and reads the whole answer.
func (c *client) post(body []byte) (status int, answer []byte, err error) {
	var request bytes.Buffer
	request.WriteString("POST / HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: ")
	request.WriteString(strconv.Itoa(len(body)))
	request.WriteString("\r\n\r\n")
	request.Write(body)
	if _, err := c.conn.Write(request.Bytes()); err != nil {
		return 0, nil, err
	}
	response, err := http.ReadResponse(c.reader, nil)
	if err != nil {
		return 0, nil, err
	}
	defer func() { _ = response.Body.Close() }()
	answer, err = io.ReadAll(response.Body)
	return response.StatusCode, answer, err
}
