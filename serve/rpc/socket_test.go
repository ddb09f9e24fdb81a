package rpc

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fasthttp/websocket"
)

// patience is how long a test waits for what has to come.
const patience = 20 * time.Second

// socketServer is a server with a feed that listens for WebSockets on loopback.
type socketServer struct {
	*testServer
	feed *fakeFeed
	url  string
}

func startSockets(t testing.TB, blocks int, change func(*Options)) *socketServer {
	t.Helper()
	store := newFakeStore(t, blocks)
	feed := newFakeFeed(t, store)
	s := &socketServer{feed: feed}
	s.testServer = startServer(t, store, func(o *Options) {
		o.Feed = feed
		if change != nil {
			change(o)
		}
	})
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s.url = "ws://" + listener.Addr().String()
	served := make(chan error, 1)
	go func() { served <- s.ServeWebSocket(listener) }()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if err := s.Shutdown(ctx); err != nil {
			t.Errorf("shutdown: %v", err)
		}
		if err := <-served; err != nil {
			t.Errorf("serve: %v", err)
		}
		if n := s.service.hub.queued.Load(); n != 0 {
			t.Errorf("%d bytes are counted as queued", n)
		}
		if n := s.service.hub.filterBytes.Load(); n != 0 {
			t.Errorf("%d bytes are counted as filters", n)
		}
		s.slots.mu.Lock()
		defer s.slots.mu.Unlock()
		if n := s.slots.taken; n != 0 {
			t.Errorf("%d slots are taken", n)
		}
	})
	return s
}

// socketClient is a connection of a test.
type socketClient struct {
	*websocket.Conn
	t   testing.TB
	ids []string // of subscriptions, in the order they were seen
}

func (s *socketServer) dial() *socketClient {
	s.t.Helper()
	conn, response, err := websocket.DefaultDialer.Dial(s.url, nil)
	if err != nil {
		s.t.Fatalf("dial: %v %+v", err, response)
	}
	s.t.Cleanup(func() { _ = conn.Close() })
	_ = conn.SetReadDeadline(time.Now().Add(patience))
	return &socketClient{Conn: conn, t: s.t}
}

func (c *socketClient) send(text string) {
	c.t.Helper()
	if err := c.WriteMessage(websocket.TextMessage, []byte(text)); err != nil {
		c.t.Fatalf("send: %v", err)
	}
}

func (c *socketClient) receive() string {
	c.t.Helper()
	kind, text, err := c.ReadMessage()
	if err != nil || kind != websocket.TextMessage {
		c.t.Fatalf("receive: kind %d, %v", kind, err)
	}
	if !json.Valid(text) {
		c.t.Errorf("invalid JSON: %s", text)
	}
	return string(text)
}

func (c *socketClient) ask(text string) string {
	c.t.Helper()
	c.send(text)
	return c.receive()
}

// subscribe opens a subscription with these parameters and gives its id.
func (c *socketClient) subscribe(params string) string {
	c.t.Helper()
	var answer struct{ Result string }
	text := c.ask(`{"jsonrpc":"2.0","id":1,"method":"eth_subscribe","params":` + params + `}`)
	if err := json.Unmarshal([]byte(text), &answer); err != nil || len(answer.Result) != 34 {
		c.t.Fatalf("subscribe %s: %s", params, text)
	}
	return answer.Result
}

// closed reads until the connection ends and requires a close code; what the reason says is returned.
func (c *socketClient) closed(code int) string {
	c.t.Helper()
	for {
		_, text, err := c.ReadMessage()
		var end *websocket.CloseError
		switch {
		case errors.As(err, &end) && end.Code == code:
			return end.Text
		case err != nil:
			c.t.Errorf("got %v, want close code %d", err, code)
			return ""
		case !json.Valid(text):
			c.t.Errorf("invalid JSON: %s", text)
		}
	}
}

// alive requires that calls are still answered, and that nothing else waits.
func (c *socketClient) alive() {
	c.t.Helper()
	const want = `{"jsonrpc":"2.0","id":"alive","result":"1337"}`
	if got := c.ask(`{"jsonrpc":"2.0","id":"alive","method":"net_version"}`); got != want {
		c.t.Errorf("got %s, want %s", got, want)
	}
}

// The files in testdata/sockets are conversations over WebSocket with one client: what it sends (>>), what comes back
// (<<), byte for byte but for ids of subscriptions, which are named by their order ($1, $2, …), and what happens to the chain:
//
//	store N          the chain has N blocks
//	apply N          N new blocks, each a change of its own
//	together N       N new blocks as one change
//	undo N           the newest N blocks are undone
//	reorg U A        the newest U blocks are replaced by A others
//
// RPC-015 RPC-016 RPC-024 RPC-180 RPC-182 RPC-183 RPC-184 RPC-185 RPC-201 RPC-206 INV-32
func TestSocketDialogues(t *testing.T) {
	paths, err := filepath.Glob("testdata/sockets/*.txt")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no dialogues: %v", err)
	}
	for _, path := range paths {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txt"), func(t *testing.T) { runSocketDialogue(t, path) })
	}
}

func runSocketDialogue(t *testing.T, path string) {
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var (
		out strings.Builder
		s   *socketServer
		c   *socketClient
	)
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSuffix(line, "\n")
		words := strings.Fields(line)
		if strings.HasPrefix(line, "<<") {
			continue
		}
		out.WriteString(line + "\n")
		if len(words) == 0 || strings.HasPrefix(line, "#") {
			continue
		}
		if words[0] == "store" {
			s = startSockets(t, atoi(t, words[1]), nil)
			c = s.dial()
			continue
		}
		switch words[0] {
		case ">>":
			message := strings.TrimPrefix(line, ">> ")
			for i, id := range c.ids {
				message = strings.ReplaceAll(message, fmt.Sprintf("$%d", i+1), id)
			}
			c.send(message)
		case "apply":
			s.feed.advance(atoi(t, words[1]))
		case "together":
			s.feed.commit(0, s.feed.next(0, atoi(t, words[1]))...)
		case "undo":
			s.feed.commit(atoi(t, words[1]))
		case "reorg":
			undo := atoi(t, words[1])
			s.feed.commit(undo, s.feed.next(undo, atoi(t, words[2]))...)
		default:
			t.Fatalf("%s: unknown line %q", path, line)
		}
		for _, got := range c.until() {
			out.WriteString("<< " + got + "\n")
		}
	}
	switch {
	case *rewrite:
		if err := os.WriteFile(path, []byte(out.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	case out.String() != string(text):
		t.Errorf("%s: got\n%s", path, out.String())
	}
}

// until gives all messages up to the answer of a call that it sends, with names for ids.
func (c *socketClient) until() (messages []string) {
	c.t.Helper()
	const last = `{"jsonrpc":"2.0","id":"last","result":"1337"}`
	c.send(`{"jsonrpc":"2.0","id":"last","method":"net_version"}`)
	for {
		text := c.receive()
		if text == last {
			return messages
		}
		for rest := text; ; {
			_, after, ok := strings.Cut(rest, `"0x`)
			if !ok {
				break
			}
			id, after, _ := strings.Cut(after, `"`)
			if rest = after; len(id) == 32 && !strings.Contains(strings.Join(c.ids, " "), id) {
				c.ids = append(c.ids, "0x"+id)
			}
		}
		for i, id := range c.ids {
			text = strings.ReplaceAll(text, id, fmt.Sprintf("$%d", i+1))
		}
		messages = append(messages, text)
	}
}

// TestHandshake: who may open a WebSocket, and how many. RPC-001 RPC-004 RPC-187 RPC-188 RPC-205 SEC-008
func TestHandshake(t *testing.T) {
	s := startSockets(t, 2, func(o *Options) {
		o.Limits.MaxWebSocketConnections = 1
		o.AllowedOrigins = []string{"https://app.example"}
	})
	for _, c := range []struct {
		header http.Header
		want   int
	}{
		{http.Header{"Origin": {"https://evil.example"}}, http.StatusForbidden},
		{http.Header{"Origin": {"null"}}, http.StatusForbidden},
		{http.Header{"Origin": {"https://app.example"}}, 0},
		{http.Header{"Origin": {"http://localhost:3000"}}, 0},
		{http.Header{"Host": {"rebound.example"}, "Origin": {"http://rebound.example"}}, http.StatusForbidden},
		{nil, 0},
	} {
		conn, response, err := websocket.DefaultDialer.Dial(s.url, c.header)
		switch {
		case c.want == 0 && err == nil:
			_, second, err := websocket.DefaultDialer.Dial(s.url, nil)
			if err == nil || second == nil || second.StatusCode != http.StatusServiceUnavailable {
				t.Errorf("%v: a second WebSocket: %v %+v", c.header, err, second)
			}
			_ = conn.Close()
			s.waitFor("the slot to be free", func() bool {
				s.slots.mu.Lock()
				defer s.slots.mu.Unlock()
				return s.slots.taken == 0
			})
		case c.want != 0 && err != nil && response != nil && response.StatusCode == c.want:
		default:
			t.Errorf("%v: got %v %+v", c.header, err, response)
		}
	}
	for _, c := range []struct {
		method, header string
		want           int
	}{
		{http.MethodGet, "", http.StatusUpgradeRequired},
		{http.MethodPost, "", http.StatusUpgradeRequired},
		{http.MethodGet, "websocket", http.StatusBadRequest}, // without a key
	} {
		request, _ := http.NewRequest(c.method, "http"+strings.TrimPrefix(s.url, "ws"), nil)
		if c.header != "" {
			request.Header.Set("Connection", "Upgrade")
			request.Header.Set("Upgrade", c.header)
		}
		response, err := http.DefaultTransport.RoundTrip(request)
		if err != nil {
			t.Fatal(err)
		}
		_ = response.Body.Close()
		if response.StatusCode != c.want {
			t.Errorf("%v: got status %d", c, response.StatusCode)
		}
	}
	http.DefaultTransport.(*http.Transport).CloseIdleConnections()
}

// waitFor waits until something is so.
func (s *socketServer) waitFor(what string, so func() bool) {
	s.t.Helper()
	for start := time.Now(); !so(); time.Sleep(time.Millisecond) {
		if time.Since(start) > patience {
			s.t.Fatalf("waited in vain for %s", what)
		}
	}
}
