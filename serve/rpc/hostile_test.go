package rpc

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fasthttp/websocket"
)

// hostile is an input that nobody sends by accident, and what comes back: a row of the table in docs/rpc.md.
type hostile struct {
	input, answer string
	// One of these.
	body   string   // a text, as the body of a call and as a message on a WebSocket; want is a part of both answers
	http   string   // bytes to the HTTP address; statuses are those of all responses until the server closes
	socket string   // bytes to the WebSocket address; statuses as with http
	frames []byte   // bytes on an open WebSocket; code is that of the close frame
	also   []string // others of the kind, with the same answer
	proved string   // the test that proves the row, because it takes time of its own
	want   string
	status []int
	code   int
}

const final = 0x80 // the last frame of a message

// hostilePost is a POST request with some headers.
func hostilePost(headers, body string) string {
	return "POST / HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n" + headers + "\r\n" + body
}

func announced(body string) string { return fmt.Sprintf("Content-Length: %d\r\n", len(body)) }

func chunked(body string) string { return fmt.Sprintf("%x\r\n%s\r\n0\r\n\r\n", len(body), body) }

func zipped(text string) string {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, _ = io.WriteString(w, text)
	_ = w.Close()
	return b.String()
}

// hostileTexts are those that HTTP and WebSocket answer alike.
func hostileTexts() []hostile {
	call := func(params string) string {
		return `{"jsonrpc":"2.0","id":1,"method":"eth_getLogs","params":` + params + `}`
	}
	digits := strings.Repeat("9", 100_000)
	batch := "[" + strings.TrimSuffix(strings.Repeat(chainIDCall+",", 101), ",") + "]"
	const parse, params = `"id":null,"error":{"code":-32700`, `"id":1,"error":{"code":-32602`
	return []hostile{
		{input: "bytes that are no UTF-8, such as an encoded surrogate", answer: "-32700", body: `{"jsonrpc":"2.0","id":"` + "\xed\xa0\x80" + `","method":"eth_chainId"}`, want: parse},
		{input: "a byte order mark before the text", answer: "-32700", body: "\xef\xbb\xbf" + chainIDCall, want: parse},
		{input: "two values, or text behind the value", answer: "-32700", body: chainIDCall + chainIDCall, also: []string{chainIDCall + "x", chainIDCall + "\x00"}, want: parse},
		{input: "a batch that ends before it is closed", answer: "-32700", body: batch[:len(batch)-1], want: parse},
		{input: "an array or object nested 100,000 deep", answer: "-32700", body: strings.Repeat(`{"a":[`, 50_000), want: parse},
		{input: "nesting just below the limit, in parameters", answer: "what the method says", body: call(strings.Repeat("[", 63) + strings.Repeat("]", 63)), want: params},
		{input: "a batch of 101 calls", answer: "one -32600", body: batch, want: `"id":null,"error":{"code":-32600`},
		{input: "a batch of half a million empty arrays", answer: "one -32600", body: "[" + strings.Repeat("[],", 300_000) + "[]]", want: `"id":null,"error":{"code":-32600`},
		{input: "a number that no float holds, such as `1e400`, as id", answer: "comes back as it is", body: strings.Replace(chainIDCall, "1,", "-1.50e400,", 1), want: `"id":-1.50e400,"result":"0x539"`},
		{input: "an integer of 100,000 digits as id", answer: "comes back as it is", body: strings.Replace(chainIDCall, "1,", digits+",", 1), want: `"id":` + digits + `,"result":"0x539"`},
		{input: "such numbers as block", answer: "-32602", body: call(`[{"fromBlock":1e400,"toBlock":` + digits + `}]`), want: params},
		{input: "a QUANTITY of 100,000 digits", answer: "-32602", body: call(`[{"fromBlock":"0x` + digits + `"}]`), want: params},
		{input: "a number with leading zeros, a plus sign, or a bare point", answer: "-32700", body: strings.Replace(chainIDCall, "1,", "01,", 1), also: []string{
			strings.Replace(chainIDCall, "1,", "+1,", 1), strings.Replace(chainIDCall, "1,", ".5,", 1), strings.Replace(chainIDCall, "1,", "1.,", 1),
		}, want: parse},
		{input: "`NaN`, `Infinity`", answer: "-32700", body: strings.Replace(chainIDCall, "1,", "NaN,", 1), also: []string{strings.Replace(chainIDCall, "1,", "Infinity,", 1)}, want: parse},
		{input: "a member of a call twice, in different spellings too", answer: "-32600 with id `null`", body: `{"jsonrpc":"2.0","id":1,"method":"eth_chainId","\u006dethod":"eth_blockNumber"}`, want: `"id":null,"error":{"code":-32600`},
		{input: "a member of a filter twice", answer: "-32602", body: call(`[{"fromBlock":"0x0","fromBlock":"0x1"}]`), want: params},
		{input: "an escaped surrogate without its other half in an id", answer: "comes back as it is", body: strings.Replace(chainIDCall, "1,", `"\ud800",`, 1), want: `"id":"\ud800","result":"0x539"`},
		{input: "one in the name of a method", answer: "-32601", body: strings.Replace(chainIDCall, "eth_chainId", `eth_\udfffchainId`, 1), want: `"error":{"code":-32601`},
		{input: "control characters in a string", answer: "-32700", body: strings.Replace(chainIDCall, "eth_chainId", "eth_chainId\x01", 1), want: parse},
		{input: "escaped zeros in the name of a method", answer: "-32601", body: strings.Replace(chainIDCall, "eth_chainId", `eth_chainId\u0000`, 1), want: `"error":{"code":-32601`},
		{input: "an id that is an object", answer: "-32600 with id `null`", body: strings.Replace(chainIDCall, "1,", `{"a":1},`, 1), want: `"id":null,"error":{"code":-32600`},
		{input: "a name of a method with a million characters", answer: "-32601", body: strings.Replace(chainIDCall, "eth_chainId", strings.Repeat("a", 1_000_000), 1), want: `"error":{"code":-32601`},
	}
}

// hostileRequests are HTTP requests.
func hostileRequests() []hostile {
	const c = chainIDCall
	large := padded(maxRequestBytes + 1)
	return []hostile{
		{input: "a body of 1 MiB and a byte, announced", answer: "413", http: hostilePost(announced(large), large), status: []int{413}},
		{input: "the same in chunks", answer: "413", http: hostilePost("Transfer-Encoding: chunked\r\n", chunked(large)), status: []int{413}},
		{input: "a `Content-Length` of 2⁶³−1", answer: "413 at once", http: hostilePost("Content-Length: 9223372036854775807\r\n", "["), status: []int{413}},
		{input: "one that is larger, negative, signed, hexadecimal, empty, or a list", answer: "400, closed", http: hostilePost("Content-Length: 99999999999999999999999\r\n", c), also: []string{
			hostilePost("Content-Length: -1\r\n", c), hostilePost("Content-Length: +51\r\n", c), hostilePost("Content-Length: 0x33\r\n", c),
			hostilePost("Content-Length:\r\n", c), hostilePost("Content-Length: 51, 51\r\n", c),
		}, status: []int{400}},
		{input: "a batch that never closes, in chunks without end", answer: "413, closed after 8 MiB", http: hostilePost("Transfer-Encoding: chunked\r\n", "fffffff\r\n["+strings.Repeat("[],", 4<<20)), status: []int{413}},
		{input: "a chunk of 2⁶³ bytes, or with a broken end", answer: "400, closed", http: hostilePost("Transfer-Encoding: chunked\r\n", "8000000000000000\r\n["), also: []string{
			hostilePost("Transfer-Encoding: chunked\r\n", "1\r\n[]x\r\n0\r\n\r\n"), hostilePost("Transfer-Encoding: chunked\r\n", "x\r\n["),
		}, status: []int{400}},
		{input: "chunks with long extensions", answer: "they are skipped", http: hostilePost("Transfer-Encoding: chunked\r\n", fmt.Sprintf("%x;a=%s\r\n%s\r\n0\r\n\r\n", len(c), strings.Repeat("b", 50_000), c)), status: []int{200}},
		{input: "trailers above 8 KiB", answer: "431, closed", http: hostilePost("Transfer-Encoding: chunked\r\n", fmt.Sprintf("%x\r\n%s\r\n0\r\nX: %s\r\n\r\n", len(c), c, strings.Repeat("b", 20_000))), status: []int{431}},
		{input: "two `Content-Length`, equal or not", answer: "400, closed", http: hostilePost(announced(c)+announced(c), c) + hostilePost(announced(c), c), also: []string{
			hostilePost(announced(c)+"Content-Length: 1\r\n", c),
		}, status: []int{400}},
		{input: "`Transfer-Encoding` with `Content-Length`", answer: "the length is ignored, and the connection closed after the answer: what follows is no request", http: hostilePost("Content-Length: 6\r\nTransfer-Encoding: chunked\r\n", chunked(c)+hostilePost(announced(c), c)), status: []int{200}},
		{input: "a `Transfer-Encoding` that is not `chunked`, twice, or with a space before the colon", answer: "400, closed", http: hostilePost("Transfer-Encoding : chunked\r\n", chunked(c)) + hostilePost(announced(c), c), also: []string{
			hostilePost("Transfer-Encoding: gzip\r\n", chunked(c)), hostilePost("Transfer-Encoding: chunked, chunked\r\n", chunked(c)),
			hostilePost("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n", chunked(c)),
		}, status: []int{400}},
		{input: "`Transfer-Encoding` in HTTP/1.0", answer: "400, closed", http: "POST / HTTP/1.0\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n" + chunked(c), status: []int{400}},
		{input: "garbage behind a request", answer: "the answer, then 400, closed", http: hostilePost(announced(c), c+"garbage\r\n\r\n"), status: []int{200, 400}},
		{input: "a refused request with a body, and a call behind it", answer: "both answers: a body is never taken for a request", http: strings.Replace(hostilePost("Content-Length: 200\r\n", "POST / HTTP/1.1\r\n\r\n"+strings.Repeat(" ", 181)), "application/json", "text/plain", 1) + hostilePost(announced(c), c), status: []int{415, 200}},
		{input: "HTTP/1.0", answer: "the answer, closed", http: "POST / HTTP/1.0\r\nContent-Type: application/json\r\n" + announced(c) + "\r\n" + c, status: []int{200}},
		{input: "HTTP/0.9, HTTP/2 without an upgrade, TLS", answer: "400, closed", http: "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", also: []string{
			"GET /\r\n\r\n", "\x16\x03\x01\x00\x05\x01\x00\x00\x01\x00\r\n\r\n",
		}, status: []int{400}},
		{input: "`Expect: 100-continue`", answer: "100, then the answer", http: hostilePost("Expect: 100-continue\r\n"+announced(c), c), status: []int{100, 200}},
		{input: "the same for a body that is too large", answer: "413 without 100, closed", http: hostilePost("Expect: 100-continue\r\nContent-Length: 1048577\r\n", ""), status: []int{413}},
		{input: "the same for one of another type", answer: "415 without 100, closed", http: strings.Replace(hostilePost("Expect: 100-continue\r\nContent-Length: 10\r\n", ""), "application/json", "text/plain", 1), status: []int{415}},
		{input: "the same from another origin", answer: "403 without 100, closed", http: hostilePost("Expect: 100-continue\r\nContent-Length: 10\r\nOrigin: http://evil.example\r\n", ""), status: []int{403}},
		{input: "a compressed body", answer: "415", http: hostilePost("Content-Encoding: gzip\r\n"+announced(zipped(c)), zipped(c)), status: []int{415}},
		{input: "a compressed body that does not say so", answer: "-32700", http: hostilePost(announced(zipped(c)), zipped(c)), status: []int{200}, want: `"code":-32700`},
		{input: "headers above 8 KiB, or an URL", answer: "431, closed", http: "POST /" + strings.Repeat("a", 20_000) + " HTTP/1.1\r\nHost: x\r\n\r\n", also: []string{
			hostilePost("X: "+strings.Repeat("a", 20_000)+"\r\n"+announced(c), c), hostilePost(strings.Repeat("X: a\r\n", 3_000)+announced(c), c),
		}, status: []int{431}},
		{input: "no `Host`, two, or a zero byte or a line without a colon in the headers", answer: "400, closed", http: hostilePost("X: a\x00b\r\n"+announced(c), c), also: []string{
			strings.Replace(hostilePost(announced(c), c), "Host: x\r\n", "", 1), hostilePost("Host: y\r\n"+announced(c), c), hostilePost("garbage\r\n"+announced(c), c),
		}, status: []int{400}},
		{input: "two `Origin`", answer: "403 unless both are allowed", http: hostilePost("Origin: http://localhost\r\nOrigin: http://evil.example\r\n"+announced(c), c), status: []int{403}},
		{input: "`CONNECT`, `TRACE` and other methods", answer: "405", http: "CONNECT x:80 HTTP/1.1\r\nHost: x\r\n\r\n", also: []string{
			"TRACE / HTTP/1.1\r\nHost: x\r\n\r\n", "PUT / HTTP/1.1\r\nHost: x\r\n\r\n", "get / HTTP/1.1\r\nHost: x\r\n\r\n",
		}, status: []int{405}},
		{input: "an upgrade on the HTTP address", answer: "what a `GET` gets", http: "GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Version: 13\r\n\r\n", status: []int{200}, want: "leani-json-rpc"},
	}
}

// hostileUpgrades are requests to the address for WebSockets.
func hostileUpgrades() []hostile {
	key := "Sec-WebSocket-Key: " + base64.StdEncoding.EncodeToString(make([]byte, 16)) + "\r\n"
	upgrade := func(headers string) string {
		return "GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n" + headers + "\r\n"
	}
	const version = "Sec-WebSocket-Version: 13\r\n"
	return []hostile{
		{input: "an upgrade in HTTP/1.0, or by `POST`", answer: "426", socket: strings.Replace(upgrade(key+version), "1.1", "1.0", 1), also: []string{
			strings.Replace(upgrade(key+version), "GET", "POST", 1),
		}, status: []int{426}},
		{input: "without a key, or with one that is not 16 bytes", answer: "400", socket: upgrade("Sec-WebSocket-Key: AAAA\r\n" + version), also: []string{
			upgrade(version), upgrade("Sec-WebSocket-Key: " + strings.Repeat("-", 24) + "\r\n" + version),
		}, status: []int{400}},
		{input: "in another version", answer: "400 with `Sec-WebSocket-Version: 13`", socket: upgrade(key + "Sec-WebSocket-Version: 8\r\n"), status: []int{400}},
		{input: "with malformed headers", answer: "400, closed", socket: upgrade(key + version + "garbage\r\n"), status: []int{400}},
		{input: "with headers above 8 KiB", answer: "431, closed", socket: upgrade(key + version + "X: " + strings.Repeat("a", 20_000) + "\r\n"), status: []int{431}},
		{input: "with extensions and subprotocols", answer: "101 without them", socket: upgrade(key + version + "Sec-WebSocket-Extensions: permessage-deflate\r\nSec-WebSocket-Protocol: a\r\n"), status: []int{101}},
		{input: "a call by `POST`, or any other body", answer: "426, closed", socket: hostilePost(announced(chainIDCall), chainIDCall), status: []int{426}},
	}
}

// hostileFrames are frames on a WebSocket.
func hostileFrames() []hostile {
	length := func(n int) []byte { // a text frame that announces so much in 64 bits
		b := appendFrameHeader(nil, opText, 1<<17)
		b[1] |= 0x80
		for i := range 8 {
			b[2+i] = byte(n >> (56 - 8*i))
		}
		return append(b, 0, 0, 0, 0)
	}
	long := strings.Repeat(" ", maxRequestBytes)
	return []hostile{
		{input: "a message of 1 MiB and a byte, in one frame or in several", answer: "1009", frames: append(frame(opText, long, true), frame(final, " ", true)...), code: websocket.CloseMessageTooBig},
		{input: "a frame that announces 2⁶² bytes", answer: "1009 at once", frames: length(1 << 62), code: websocket.CloseMessageTooBig},
		{input: "a frame that announces 2⁶³ bytes and more", answer: "1009 at once", frames: length(-1 << 63), code: websocket.CloseMessageTooBig},
		{input: "a frame that is not masked", answer: "1002", frames: frame(final|opText, chainIDCall, false), code: websocket.CloseProtocolError},
		{input: "reserved bits or opcodes", answer: "1002", frames: frame(final|0x70|opText, chainIDCall, true), code: websocket.CloseProtocolError},
		{input: "a ping, pong or close frame above 125 bytes, or in fragments", answer: "1002", frames: frame(opPing, "", true), code: websocket.CloseProtocolError},
		{input: "a continuation of nothing, or a new message within one", answer: "1002", frames: append(frame(opText, "[", true), frame(final|opText, "]", true)...), code: websocket.CloseProtocolError},
		{input: "a close frame of one byte", answer: "1000, as without a code", frames: frame(final|opClose, "\x03", true), code: websocket.CloseNormalClosure},
		{input: "a close frame with a code that is not for frames, or a reason that is no UTF-8", answer: "1002", frames: frame(final|opClose, "\x03\xe8\xff", true), code: websocket.CloseProtocolError},
		{input: "a binary message", answer: "1003", frames: frame(final|0x2, chainIDCall, true), code: websocket.CloseUnsupportedData},
		{input: "a flood of pings", answer: "the newest is answered", frames: append(bytes.Repeat(frame(final|opPing, strings.Repeat("p", 125), true), 20_000), frame(final|opClose, "\x03\xe8", true)...), code: websocket.CloseNormalClosure},
		{input: "a flood of empty fragments", answer: "they are skipped, for 30 s at most", frames: append(frame(opText, "", true), append(bytes.Repeat(frame(0, "", true), 100_000), append(frame(final, chainIDCall, true), frame(final|opClose, "\x03\xe8", true)...)...)...), code: websocket.CloseNormalClosure},
	}
}

// hostileInTime are rows whose tests wait, in a time of their own.
func hostileInTime() []hostile {
	return []hostile{
		{input: "a request that comes byte by byte", answer: "408 after 30 s, closed", proved: "TestSlowSender"},
		{input: "a connection on which nothing comes", answer: "closed after 120 s", proved: "TestIdleConnection"},
		{input: "a client that does not read its answer", answer: "closed after 30 s, 10 s if it is large", proved: "TestStalledReader"},
		{input: "a client that reads a large answer slowly", answer: "served from 26 KiB a second on, and from 128 while others wait for the memory of large responses", proved: "TestSlowReader"},
		{input: "a client that closes without a close frame", answer: "its place is free, its subscriptions end", proved: "TestAbruptEnd"},
		{input: "a handshake or a message on a WebSocket that comes byte by byte", answer: "closed after 10 s, 30 s", proved: "TestSlowHandshake"},
		{input: "a client on a WebSocket that does not read", answer: "1013", proved: "TestStalledSocket"},
		{input: "one that sends calls without reading answers", answer: "the next is read when the answer before was sent; closed after 10 to 30 s", proved: "TestOneAtATime"},
	}
}

// hostileServer listens on real sockets.
type hostileServer struct {
	*socketServer
	address string // of HTTP
	other   *http.Client
	calls   *socketClient
}

func startHostile(t *testing.T) *hostileServer {
	t.Helper()
	s := &hostileServer{socketServer: startSockets(t, 4, nil)}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s.address = listener.Addr().String()
	served := make(chan error, 1)
	go func() { served <- s.Serve(listener) }()
	s.other = &http.Client{Transport: new(http.Transport)}
	t.Cleanup(func() {
		s.other.CloseIdleConnections()
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if err := errors.Join(s.Shutdown(ctx), <-served); err != nil {
			t.Error(err)
		}
	})
	s.calls = s.dial()
	return s
}

// undisturbed requires that others are served as before.
func (s *hostileServer) undisturbed(t *testing.T) {
	t.Helper()
	response, err := s.other.Post("http://"+s.address, jsonType, strings.NewReader(chainIDCall))
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(response.Body)
	_ = response.Body.Close()
	if err != nil || string(text) != `{"jsonrpc":"2.0","id":1,"result":"0x539"}` {
		t.Errorf("another client: %s, %v", text, err)
	}
	s.calls.t = t
	s.calls.alive()
}

// exchangeBytes sends bytes to an address, says that no more follow, and reads all responses.
func exchangeBytes(t *testing.T, address, text string) (status []int, bodies string) {
	t.Helper()
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	_ = conn.SetDeadline(time.Now().Add(patience))
	sent := make(chan struct{})
	go func() { // ends when the server has read all, or closed
		defer close(sent)
		if _, err := io.WriteString(conn, text); err == nil {
			_ = conn.(*net.TCPConn).CloseWrite()
		}
	}()
	defer func() { <-sent }()
	for r := bufio.NewReader(conn); ; {
		if _, err := r.Peek(1); err != nil {
			return status, bodies
		}
		response, err := http.ReadResponse(r, nil)
		if err != nil {
			t.Fatalf("after %v: %v", status, err)
		}
		status = append(status, response.StatusCode)
		if response.StatusCode == http.StatusSwitchingProtocols {
			return status, bodies
		}
		if response.StatusCode == http.StatusContinue {
			continue
		}
		body, err := io.ReadAll(response.Body)
		if err != nil {
			t.Fatal(err)
		}
		bodies += string(body)
	}
}

// TestHostileInput sends what the table in docs/rpc.md lists, over real sockets: the answer is the documented one, nobody else
// notices, and nothing stays behind.
//
// SEC-014 RPC-006 RPC-007 RPC-008 RPC-009 RPC-198 RPC-206
func TestHostileInput(t *testing.T) {
	s := startHostile(t)
	rows := [][]hostile{hostileTexts(), hostileRequests(), hostileUpgrades(), hostileFrames(), hostileInTime()}
	for _, part := range rows {
		for _, row := range part {
			t.Run(row.input, func(t *testing.T) {
				switch {
				case row.body != "":
					for _, body := range append(row.also, row.body) {
						status, text := exchangeBytes(t, s.address, hostilePost(announced(body)+"Connection: close\r\n", body))
						if len(status) != 1 || status[0] != 200 || !strings.Contains(text, row.want) {
							t.Errorf("HTTP: %d %.300s for %.100q", status, text, body)
						}
						c := s.dial()
						c.t = t
						if got := c.ask(body); got != text {
							t.Errorf("WebSocket: %.300s for %.100q", got, body)
						}
						_ = c.Close()
					}
				case row.http != "", row.socket != "":
					address := s.address
					if row.socket != "" {
						address = strings.TrimPrefix(s.url, "ws://")
					}
					for _, text := range append(row.also, row.http+row.socket) {
						status, body := exchangeBytes(t, address, text)
						if fmt.Sprint(status) != fmt.Sprint(row.status) || !strings.Contains(body, row.want) {
							t.Errorf("got %d %.300s for %.200q", status, body, text)
						}
					}
				case row.frames != nil:
					c := s.dial()
					c.t = t
					sent := make(chan struct{})
					go func() { // ends when the server has read all, or closed
						defer close(sent)
						_, _ = c.NetConn().Write(row.frames)
					}()
					c.closed(row.code)
					_ = c.Close()
					<-sent
				default:
					requireTest(t, row.proved)
				}
				s.undisturbed(t)
			})
		}
	}
	_ = s.calls.Close()
	s.gone(0)
	s.other.CloseIdleConnections()
	s.waitFor("all connections to end", func() bool {
		s.conns.Lock()
		defer s.conns.Unlock()
		return len(s.conns.open) == 0
	})
	s.checkMemory()
	if strings.Contains(s.log.String(), "level=ERROR") {
		t.Errorf("failures of the node:\n%s", s.log.String())
	}
	checkHostileTable(t, rows)
}

// requireTest requires that the package has a test.
func requireTest(t *testing.T, name string) {
	t.Helper()
	files, err := filepath.Glob("*_test.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if bytes.Contains(text, []byte("\nfunc "+name+"(t *testing.T)")) {
			return
		}
	}
	t.Errorf("there is no %s", name)
}

// checkHostileTable requires that docs/rpc.md lists the rows.
func checkHostileTable(t *testing.T, rows [][]hostile) {
	t.Helper()
	document, err := os.ReadFile("../../docs/rpc.md")
	if err != nil {
		t.Fatal(err)
	}
	titles := []string{"a text, over HTTP or WebSocket", "an HTTP request", "a request for a WebSocket", "frames on a WebSocket", "time"}
	for i, part := range rows {
		var table strings.Builder
		fmt.Fprintf(&table, "| %s | answer |\n|---|---|\n", titles[i])
		for _, row := range part {
			fmt.Fprintf(&table, "| %s | %s |\n", row.input, row.answer)
		}
		if !bytes.Contains(document, []byte(table.String())) {
			t.Errorf("docs/rpc.md has not this table:\n\n%s", table.String())
		}
	}
}

// TestAbruptEnd: a client that goes without a close frame, or is cut off in the middle of a frame, leaves nothing. RPC-188
func TestAbruptEnd(t *testing.T) {
	s := startSockets(t, 4, nil)
	for _, last := range [][]byte{nil, frame(final|opText, chainIDCall, true)[:9], appendFrameHeader(nil, opText, 1000), {final}} {
		c := s.dial()
		c.subscribe(`["newHeads"]`)
		if _, err := c.NetConn().Write(last); err != nil {
			t.Fatal(err)
		}
		if err := c.NetConn().(*net.TCPConn).SetLinger(0); err != nil { // a reset
			t.Fatal(err)
		}
		_ = c.NetConn().Close()
	}
	s.gone(0)
	s.waitFor("all places to be free", func() bool {
		s.slots.mu.Lock()
		defer s.slots.mu.Unlock()
		return s.slots.taken == 0
	})
	s.feed.advance(1)
	s.dial().alive()
}
