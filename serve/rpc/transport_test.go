package rpc

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/valyala/fasthttp/fasthttputil"

	"github.com/leani-go/leani/api/jsonrpc"
)

const chainIDCall = `{"jsonrpc":"2.0","id":1,"method":"eth_chainId"}`

// RPC-002, RPC-003, RPC-005: which HTTP requests are calls at all. RPC-205: none of
// them carries or needs a credential. A page of another site gets nothing, whatever
// content type it takes to avoid a preflight.
func TestWhichRequestsAreTaken(t *testing.T) {
	s := startServer(t, newFakeStore(t, 3), func(o *Options) {
		o.AllowedOrigins = []string{"https://app.example.org", "http://10.0.0.1:3000"}
	})
	const answerText = `{"jsonrpc":"2.0","id":1,"result":"0x539"}`
	tests := []struct {
		name, method string
		header       []string
		status       int
		body         string // the whole body, or empty to leave it open
	}{
		{"plain", "POST", nil, 200, answerText},
		{"charset", "POST", []string{"Content-Type", "application/json; charset=utf-8"}, 200, answerText},
		{"parameters and case", "POST", []string{"Content-Type", " Application/JSON ;a=b;c"}, 200, answerText},
		{"no type", "POST", []string{"Content-Type", ""}, 415, ""},
		{"text", "POST", []string{"Content-Type", "text/plain"}, 415, ""},
		{"form", "POST", []string{"Content-Type", "application/x-www-form-urlencoded"}, 415, ""},
		{"multipart", "POST", []string{"Content-Type", "multipart/form-data; boundary=x"}, 415, ""},
		{"longer type", "POST", []string{"Content-Type", "application/json-rpc"}, 415, ""},
		{"parameter only", "POST", []string{"Content-Type", ";application/json"}, 415, ""},
		{"compressed", "POST", []string{"Content-Encoding", "gzip"}, 415, ""},
		{"not compressed", "POST", []string{"Content-Encoding", "identity"}, 200, answerText},

		{"localhost", "POST", []string{"Origin", "http://localhost"}, 200, answerText},
		{"localhost port", "POST", []string{"Origin", "https://localhost:65535"}, 200, answerText},
		{"127.0.0.1", "POST", []string{"Origin", "http://127.0.0.1:3000"}, 200, answerText},
		{"::1", "POST", []string{"Origin", "http://[::1]:3000"}, 200, answerText},
		{"allowed", "POST", []string{"Origin", "https://app.example.org"}, 200, answerText},
		{"allowed with port", "POST", []string{"Origin", "http://10.0.0.1:3000"}, 200, answerText},
		{"foreign", "POST", []string{"Origin", "https://evil.example"}, 403, ""},
		{"other port", "POST", []string{"Origin", "http://10.0.0.1:3001"}, 403, ""},
		{"other scheme", "POST", []string{"Origin", "http://app.example.org"}, 403, ""},
		{"null", "POST", []string{"Origin", "null"}, 403, ""},
		{"other loopback address", "POST", []string{"Origin", "http://127.0.0.2"}, 403, ""},
		{"suffix", "POST", []string{"Origin", "http://localhost.evil.example"}, 403, ""},
		{"prefix", "POST", []string{"Origin", "http://evil-localhost"}, 403, ""},
		{"user", "POST", []string{"Origin", "http://localhost@evil.example"}, 403, ""},
		{"path", "POST", []string{"Origin", "http://localhost:80/x"}, 403, ""},
		{"odd port", "POST", []string{"Origin", "http://localhost:123456"}, 403, ""},
		{"empty port", "POST", []string{"Origin", "http://localhost:"}, 403, ""},
		{"file", "POST", []string{"Origin", "file://localhost"}, 403, ""},
		{"foreign text", "POST", []string{"Origin", "https://evil.example", "Content-Type", "text/plain"}, 403, ""},
		{"foreign GET", "GET", []string{"Origin", "https://evil.example"}, 403, ""},

		{"GET", "GET", nil, 200, `{"service":"leani-json-rpc","jsonrpc":"2.0"}`},
		{"GET without type", "GET", []string{"Content-Type", ""}, 200, `{"service":"leani-json-rpc","jsonrpc":"2.0"}`},
		{"PUT", "PUT", nil, 405, ""},
		{"DELETE", "DELETE", nil, 405, ""},
		{"PATCH", "PATCH", nil, 405, ""},
		{"OPTIONS", "OPTIONS", nil, 405, ""},
		{"other host", "POST", []string{"Host", "rebound.example"}, 200, answerText},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			body := chainIDCall
			if test.method == "GET" {
				body = ""
			}
			a := s.do(test.method, body, test.header...)
			if a.status != test.status {
				t.Fatalf("got status %d (%s), want %d", a.status, a.body, test.status)
			}
			if test.body != "" && a.body != test.body {
				t.Errorf("got %s, want %s", a.body, test.body)
			}
			if test.status == 200 && a.header.Get("Content-Type") != "application/json" {
				t.Errorf("content type %q", a.header.Get("Content-Type"))
			}
			if test.status == 405 && a.header.Get("Allow") != "GET, HEAD, POST" {
				t.Errorf("allow %q", a.header.Get("Allow"))
			}
			for name := range a.header {
				if strings.HasPrefix(name, "Access-Control-") {
					t.Errorf("header %s: no page may read across origins", name)
				}
			}
		})
	}
	if a := s.do(http.MethodHead, ""); a.status != 200 || a.body != "" {
		t.Errorf("HEAD: status %d, body %q", a.status, a.body)
	}
}

// RPC-006: what is no UTF-8 is no JSON, and the answer says so in JSON.
func TestInvalidUTF8(t *testing.T) {
	s := startServer(t, newFakeStore(t, 3), nil)
	for _, body := range []string{
		"", " ", "\xff", "\xef\xbb\xbf" + chainIDCall, `{"jsonrpc":"2.0","id":"` + "\xc3\x28" + `","method":"eth_chainId"}`,
		`{"jsonrpc":"2.0","id":"` + "\xed\xa0\x80" + `","method":"eth_chainId"}`, "{\"jsonrpc\":\"2.0\",\"id\":\"a\x00b\"}",
		strings.Repeat("[", 100_000), strings.Repeat(`{"a":`, 70) + "1" + strings.Repeat("}", 70),
	} {
		var got struct {
			JSONRPC string
			ID      any
			Error   struct{ Code int }
		}
		got.ID = "unset"
		text := s.post(body)
		if err := json.Unmarshal([]byte(text), &got); err != nil {
			t.Fatal(err)
		}
		if got.JSONRPC != "2.0" || got.ID != nil || got.Error.Code != jsonrpc.CodeParse {
			t.Errorf("%.40q: got %s", body, text)
		}
	}
}

const tooLargeText = `{"jsonrpc":"2.0","id":null,"error":{"code":-32005,"message":"request body is larger than 1048576 bytes",` +
	`"data":{"reason":"request_size_limit_exceeded","limit":1048576}}}`

// padded is a call of exactly n bytes.
func padded(n int) string {
	return chainIDCall + strings.Repeat(" ", n-len(chainIDCall))
}

// RPC-007, RPC-008: 1 MiB is taken and a byte more is not, with and without a length
// in the header; a client that announces gigabytes gets its answer before it sends them.
func TestRequestSize(t *testing.T) {
	s := startServer(t, newFakeStore(t, 3), nil)
	post := func(body io.Reader, length int64) answer {
		t.Helper()
		request, err := http.NewRequest("POST", "http://leani.test/", body)
		if err != nil {
			t.Fatal(err)
		}
		request.ContentLength = length
		request.Header.Set("Content-Type", "application/json")
		response, err := s.client.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = response.Body.Close() }()
		text, err := io.ReadAll(response.Body)
		if err != nil {
			t.Fatal(err)
		}
		return answer{status: response.StatusCode, header: response.Header, body: string(text)}
	}
	for _, size := range []int{len(chainIDCall), 8 << 10, 64<<10 + 1, 1<<20 - 1, 1 << 20} {
		for _, length := range []int64{int64(size), -1} {
			a := post(strings.NewReader(padded(size)), length)
			if a.status != 200 || a.body != `{"jsonrpc":"2.0","id":1,"result":"0x539"}` {
				t.Errorf("%d bytes, length %d: got %d %s", size, length, a.status, a.body)
			}
		}
	}
	for _, size := range []int{1<<20 + 1, 3 << 20} {
		for _, length := range []int64{int64(size), -1} {
			a := post(strings.NewReader(padded(size)), length)
			if a.status != 413 || a.body != tooLargeText || a.header.Get("Content-Type") != "application/json" {
				t.Errorf("%d bytes, length %d: got %d %s", size, length, a.status, a.body)
			}
		}
	}
	a := s.raw("POST / HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 99999999999\r\n\r\n{")
	if a.status != 413 || a.body != tooLargeText {
		t.Errorf("announced: got %d %s", a.status, a.body)
	}
	// The connection is as good as new after a body that was drained.
	if got := s.post(chainIDCall); got != `{"jsonrpc":"2.0","id":1,"result":"0x539"}` {
		t.Errorf("afterwards: %s", got)
	}
}

// What is no HTTP, and headers that never end.
func TestMalformedHTTP(t *testing.T) {
	s := startServer(t, newFakeStore(t, 3), nil)
	tests := []struct {
		name, request string
		status        int
	}{
		{"garbage", "\x16\x03\x01\x02\x00\x01\x00\r\n\r\n", 400},
		{"large header", "POST / HTTP/1.1\r\nHost: x\r\nX: " + strings.Repeat("a", 16<<10) + "\r\n\r\n", 431},
		{"broken chunk", "POST / HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", 400},
		{"negative chunk", "POST / HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n-1\r\n", 400},
		{"no body", "POST / HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n\r\n", 200},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if a := s.raw(test.request); a.status != test.status {
				t.Errorf("got %d %s, want %d", a.status, a.body, test.status)
			}
		})
	}
}

// Two requests in one packet, the first large enough for a body of its own: each gets its
// answer, in order, and the second is not taken for a part of the first.
func TestPipelining(t *testing.T) {
	s := startServer(t, newFakeStore(t, 3), nil)
	conn, err := s.listener.Dial()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	request := func(id, pad int) string {
		body := fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"eth_blockNumber"}`, id) + strings.Repeat(" ", pad)
		return fmt.Sprintf("POST / HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
	}
	go func() { _, _ = io.WriteString(conn, request(1, 100_000)+request(2, 0)+request(3, 9000)) }()
	reader := bufio.NewReader(conn)
	for id := 1; id <= 3; id++ {
		response, err := http.ReadResponse(reader, nil)
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(response.Body)
		if err != nil {
			t.Fatal(err)
		}
		if want := fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"result":"0x2"}`, id); string(text) != want {
			t.Errorf("got %s, want %s", text, want)
		}
	}
}

// A response stays intact while its client reads slowly and others are served: its buffer is
// not recycled before the last byte has gone. And the others do not wait.
func TestSlowReader(t *testing.T) {
	store := newFakeStore(t, 512)
	s := startServer(t, store, nil)
	call := `{"jsonrpc":"2.0","id":"slow","method":"eth_getLogs","params":[{"fromBlock":"earliest"}]}`
	want := s.post(call)
	if len(want) < largeResponse/8 {
		t.Fatalf("the response of %d bytes is too small for this test", len(want))
	}

	// The pipe of the in-memory connection holds what is written until it is read, so the
	// server is not blocked by it; a connection that blocks is needed.
	client, server := net.Pipe()
	defer func() { _ = client.Close() }()
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = s.http.ServeConn(server)
	}()
	request := fmt.Sprintf("POST / HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s", len(call), call)
	if _, err := io.WriteString(client, request); err != nil {
		t.Fatal(err)
	}
	reader := bufio.NewReaderSize(client, 4<<10)
	response, err := http.ReadResponse(reader, nil)
	if err != nil {
		t.Fatal(err)
	}
	var got strings.Builder
	for piece := 0; ; piece++ {
		// Between two reads of the slow client, somebody else is served.
		if piece < 20 {
			if other := s.post(strings.Replace(call, "slow", "fast", 1)); other != strings.Replace(want, `"slow"`, `"fast"`, 1) {
				t.Fatal("another client got a wrong answer")
			}
		}
		n, err := io.CopyN(&got, response.Body, 2<<10)
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatalf("after %d bytes: %v", n, err)
		}
	}
	if got.String() != want {
		t.Error("the slow client got a damaged response")
	}
	<-served
}

// A response larger than a chunk goes out in chunks, byte for byte, over a connection that
// takes some at a time, and gives its memory back.
func TestLargeResponse(t *testing.T) {
	store := newFakeStore(t, 8)
	s := startServer(t, store, func(o *Options) {
		o.newEncoder = stubbed(fillEncoder{size: 3*writeChunk + 12_345})
		o.Limits.MaxResponseBytes = 8 << 20
	})
	text := s.post(`[{"jsonrpc":"2.0","id":1,"method":"eth_getBlockByNumber","params":["0x1",false]},` +
		`{"jsonrpc":"2.0","id":2,"method":"eth_getBlockByNumber","params":["0x2",false]},` +
		`{"jsonrpc":"2.0","id":3,"method":"eth_chainId"}]`)
	var got []struct {
		ID     int
		Result string
	}
	if err := json.Unmarshal([]byte(text), &got); err != nil {
		t.Fatal(err)
	}
	if len(text) < largeResponse || len(got) != 3 || got[2].Result != "0x539" {
		t.Fatalf("got %d answers in %d bytes", len(got), len(text))
	}
	for i := range 2 {
		if want := strings.Repeat(string(rune('1'+i)), 3*writeChunk+12_345); got[i].Result != want {
			t.Errorf("answer %d is damaged", i)
		}
	}
}

// Clients that go away in the middle of a response cost nothing that stays.
func TestClientGone(t *testing.T) {
	s := startServer(t, newFakeStore(t, 8), func(o *Options) {
		o.newEncoder = stubbed(fillEncoder{size: 4 << 20})
		o.Limits.MaxResponseBytes = 8 << 20
		o.Limits.InFlightResponseBytes = 8 << 20
	})
	call := `{"jsonrpc":"2.0","id":1,"method":"eth_getBlockByNumber","params":["0x1",false]}`
	for range 20 {
		client, server := net.Pipe()
		served := make(chan struct{})
		go func() {
			defer close(served)
			_ = s.http.ServeConn(server)
		}()
		_, err := fmt.Fprintf(client, "POST / HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(call), call)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.CopyN(io.Discard, client, 100_000); err != nil {
			t.Fatal(err)
		}
		_ = client.Close()
		<-served
	}
	s.checkMemory()
}

// Many clients at once get their own answers; run with -race this also shows that exchanges
// and buffers are not shared.
func TestConcurrentClients(t *testing.T) {
	store := newFakeStore(t, 64)
	store.onCost = alternateCost()
	s := startServer(t, store, func(o *Options) { o.LaneWorkers = 2 })
	want := make(map[int]string)
	logsCall := func(id, block int) string {
		return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"eth_getLogs","params":[{"fromBlock":"0x0","toBlock":"%#x"}]}`, id, block)
	}
	for block := range 64 {
		want[block] = s.post(logsCall(7, block))
	}
	var clients sync.WaitGroup
	for client := range 16 {
		clients.Go(func() {
			for i := range 50 {
				block := (client*31 + i*7) % 64
				if got := s.post(logsCall(7, block)); got != want[block] {
					t.Errorf("client %d: wrong logs up to block %d", client, block)
					return
				}
				id := client*1000 + i
				got := s.post(fmt.Sprintf(`[{"jsonrpc":"2.0","id":%d,"method":"eth_blockNumber"}]`, id))
				if got != fmt.Sprintf(`[{"jsonrpc":"2.0","id":%d,"result":"0x3f"}]`, id) {
					t.Errorf("client %d: got %s", client, got)
					return
				}
			}
		})
	}
	clients.Wait()
}

// A shutdown that may wait lets the running request end; one that may not cuts it off, and
// even then returns only when nobody uses the store any more.
func TestShutdown(t *testing.T) {
	for _, patient := range []bool{true, false} {
		t.Run(fmt.Sprintf("patient=%t", patient), func(t *testing.T) {
			store := newFakeStore(t, 8)
			entered, leave := make(chan struct{}), make(chan struct{})
			store.onLogs = func(ctx context.Context) error {
				close(entered)
				if patient {
					<-leave
					return nil
				}
				<-ctx.Done()
				return ctx.Err()
			}
			listener := fasthttputil.NewInmemoryListener()
			server, err := New(Options{Store: store, Network: testNetwork(), newEncoder: stubbed(stubEncoder{})})
			if err != nil {
				t.Fatal(err)
			}
			served := make(chan error, 1)
			go func() { served <- server.Serve(listener) }()
			conn, err := listener.Dial()
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = conn.Close() }()
			call := `{"jsonrpc":"2.0","id":1,"method":"eth_getLogs","params":[{"fromBlock":"0x1","toBlock":"0x1"}]}`
			go func() {
				_, _ = fmt.Fprintf(conn, "POST / HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(call), call)
			}()
			<-entered

			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			stopped := make(chan error, 1)
			go func() { stopped <- server.Shutdown(ctx) }()
			if patient {
				if err := <-served; err != nil { // it accepts no more
					t.Errorf("serve: %v", err)
				}
				close(leave)
				response, err := http.ReadResponse(bufio.NewReader(conn), nil)
				if err != nil {
					t.Fatal(err)
				}
				text, _ := io.ReadAll(response.Body)
				if !strings.Contains(string(text), `"result":[{`) {
					t.Errorf("got %s", text)
				}
				if err := <-stopped; err != nil {
					t.Errorf("shutdown: %v", err)
				}
			} else {
				cancel()
				if err := <-stopped; !errors.Is(err, context.Canceled) {
					t.Errorf("shutdown: got %v, want %v", err, context.Canceled)
				}
				if n := store.open.Load(); n != 0 {
					t.Errorf("%d views are open after the shutdown", n)
				}
				if err := <-served; err != nil {
					t.Errorf("serve: %v", err)
				}
			}
			if err := server.Shutdown(context.Background()); err != nil {
				t.Errorf("second shutdown: %v", err)
			}
			late := fasthttputil.NewInmemoryListener()
			if err := server.Serve(late); err != nil {
				t.Errorf("serve after shutdown: %v", err)
			}
			if _, err := late.Dial(); err == nil {
				t.Error("the listener of a late Serve is still open")
			}
		})
	}
}

// Bodies count against the budget once more than the unmetered part of them has arrived, with the
// memory they hold, and whether their length is announced or not: small ones never wait, large ones
// wait for their turn. SEC-014
func TestRequestMemory(t *testing.T) {
	const size = 100 << 10
	for _, chunked := range []bool{false, true} {
		t.Run(fmt.Sprintf("chunked=%t", chunked), func(t *testing.T) {
			inBubble(t, func(o *Options) { o.Limits.InFlightRequestBytes = maxRequestBytes }, func(t *testing.T, s *Server) {
				client, done := serve(s)
				reader := bufio.NewReader(client)
				send := func(text string) {
					t.Helper()
					if _, err := io.WriteString(client, text); err != nil {
						t.Fatal(err)
					}
					synctest.Wait()
				}
				begin := func(n int) { // a request whose body has n bytes
					if chunked {
						send(fmt.Sprintf("POST / HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n", n))
					} else {
						send(fmt.Sprintf("POST / HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n", n))
					}
				}
				end := func() {
					t.Helper()
					if chunked {
						go func() { _, _ = io.WriteString(client, "\r\n0\r\n\r\n") }()
					}
					response, err := http.ReadResponse(reader, nil)
					if err != nil {
						t.Fatal(err)
					}
					if text, err := io.ReadAll(response.Body); err != nil || !strings.Contains(string(text), "0x539") {
						t.Errorf("got %s, %v", text, err)
					}
				}
				used := func() int64 { return maxRequestBytes - s.requestMemory.mu.free }

				// All is taken: what is small passes nevertheless.
				if err := s.requestMemory.acquire(context.Background(), maxRequestBytes); err != nil {
					t.Fatal(err)
				}
				begin(unmeteredBytes)
				send(padded(unmeteredBytes))
				end()
				// What is large waits once that much of it is there, and not before.
				body := padded(size)
				begin(size)
				send(body[:unmeteredBytes])
				if n := len(s.requestMemory.mu.waiting); n != 0 {
					t.Errorf("%d wait", n)
				}
				go func() { _, _ = io.WriteString(client, body[unmeteredBytes:]) }()
				synctest.Wait()
				if n := len(s.requestMemory.mu.waiting); n != 1 {
					t.Errorf("%d wait", n)
				}
				s.requestMemory.release(maxRequestBytes)
				synctest.Wait()
				want := int64(size)
				if chunked {
					want = maxRequestBytes // its end is not known yet
				}
				if got := used(); got != want {
					t.Errorf("%d bytes are taken, want %d", got, want)
				}
				end()
				synctest.Wait()
				if got := used(); got != 0 {
					t.Errorf("%d bytes are taken in the end", got)
				}
				_ = client.Close()
				done()
			})
		})
	}
}

// A body holds what it needs of the budget while it is worked on.
func TestRequestMemoryHeld(t *testing.T) {
	const size = 100 << 10
	for _, length := range []int64{size, -1} {
		store := newFakeStore(t, 3)
		s := startServer(t, store, nil)
		var held int64
		store.onCost = func() (uint64, error) {
			s.requestMemory.mu.Lock()
			defer s.requestMemory.mu.Unlock()
			held = s.requestMemory.size - s.requestMemory.mu.free
			return 0, nil
		}
		call := `{"jsonrpc":"2.0","id":1,"method":"eth_getLogs","params":[{"fromBlock":"0x1"}]}`
		request, err := http.NewRequest("POST", "http://leani.test/", strings.NewReader(call+strings.Repeat(" ", size-len(call))))
		if err != nil {
			t.Fatal(err)
		}
		request.ContentLength = length
		request.Header.Set("Content-Type", jsonType)
		response, err := s.client.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.Copy(io.Discard, response.Body); err != nil {
			t.Fatal(err)
		}
		_ = response.Body.Close()
		if held < size || held > 2*size {
			t.Errorf("length %d: %d bytes were held for a body of %d", length, held, size)
		}
	}
}
