package rpc

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/fasthttp/websocket"
)

// TestNothingIsEchoed puts a text into every place of a call that a client chooses: no error repeats it, but for the id, and
// none is longer than a few hundred bytes. What is logged of it is bounded too.
//
// SEC-013
func TestNothingIsEchoed(t *testing.T) {
	const mark = `<script>alert(1)</script>\u001b[2J`
	long := strings.Repeat(mark, 1000)
	s := startServer(t, newFakeStore(t, 4), nil)
	check := func(what, answer string) {
		t.Helper()
		if strings.Contains(answer, "script") || strings.Contains(answer, "alert") || strings.ContainsAny(answer, "\x1b\x7f") || len(answer) > 600 {
			t.Errorf("%s: got %.600s", what, answer)
		}
	}
	for name := range s.service.methods {
		for _, value := range []string{mark, long} {
			text := `"` + value + `"`
			for _, params := range []string{
				text, `{` + text + `:1}`, `[` + text + `]`, `[` + text + `,` + text + `]`, `[{` + text + `:` + text + `}]`,
				`["0x1",` + text + `]`, `[` + text + `,false]`, `["0x1",` + text + `,` + text + `]`, `["0x1","latest",[` + text + `]]`,
				`[{"fromBlock":` + text + `}]`, `[{"toBlock":` + text + `}]`, `[{"blockHash":` + text + `}]`,
				`[{"address":` + text + `}]`, `[{"address":[` + text + `]}]`, `[{"topics":` + text + `}]`, `[{"topics":[` + text + `]}]`, `[{"topics":[[` + text + `]]}]`,
			} {
				check(name+" "+params[:min(len(params), 40)], s.post(`{"jsonrpc":"2.0","id":1,"method":"`+name+`","params":`+params+`}`))
			}
		}
	}
	for what, body := range map[string]string{
		"method":       `{"jsonrpc":"2.0","id":1,"method":"` + long + `"}`,
		"version":      `{"jsonrpc":"` + long + `","id":1,"method":"eth_chainId"}`,
		"member":       `{"jsonrpc":"2.0","id":1,"method":"eth_call","` + long + `":1,"` + long + `":2}`,
		"object id":    `{"jsonrpc":"2.0","id":{"` + long + `":1},"method":"eth_chainId"}`,
		"no call":      `"` + long + `"`,
		"no JSON":      long,
		"broken":       `{"` + long,
		"raw controls": "{\"jsonrpc\":\"\x1b[2J\x7f\"}",
	} {
		check(what, s.post(body))
	}
	// An id comes back as it was written, and as part of JSON.
	got := s.post(`{"jsonrpc":"2.0","id":"` + mark + `","method":"eth_nothing"}`)
	if !json.Valid([]byte(got)) || !strings.Contains(got, `"id":"`+mark+`"`) {
		t.Errorf("got %s", got)
	}
	if a := s.do(http.MethodPost, chainIDCall, "Origin", "https://evil.example/"+strings.Repeat("script", 100)); a.status != http.StatusForbidden || len(a.body) > 200 || strings.Contains(a.body, "script") {
		t.Errorf("origin: %d %s", a.status, a.body)
	}
	for what, request := range map[string]string{
		"method": "script\x1b / HTTP/1.1\r\nHost: x\r\n\r\n",
		"header": "POST / HTTP/1.1\r\nHost: x\r\nscript\x1b[2J\r\n\r\n",
		"length": "POST / HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: script\r\n\r\n",
		"type":   "POST / HTTP/1.1\r\nHost: x\r\nContent-Type: script\r\nContent-Length: 2\r\n\r\n{}",
		"long":   "POST /" + strings.Repeat("script", 5000) + " HTTP/1.1\r\nHost: x\r\n\r\n",
	} {
		if a := s.raw(request); a.status < 400 {
			t.Errorf("%s: status %d", what, a.status)
		} else {
			check(what, a.body)
			for name, values := range a.header {
				check(what+": "+name, strings.Join(values, " "))
			}
		}
	}
	if text := s.log.String(); len(text) > 64<<10 || strings.ContainsAny(text, "\x1b\x7f") {
		t.Errorf("log: %.600q", text)
	}
}

// TestCloseReasons: what a client says when it closes is not said back.
//
// SEC-013
func TestCloseReasons(t *testing.T) {
	s := startSockets(t, 4, nil)
	c := s.dial()
	if err := c.WriteMessage(websocket.CloseMessage, websocket.FormatCloseMessage(4000, "<script>\u202e")); err != nil {
		t.Fatal(err)
	}
	if reason := c.closed(4000); strings.Contains(reason, "<script>") {
		t.Errorf("reason %q", reason)
	}
	c = s.dial()
	if got := c.ask(`{"jsonrpc":"2.0","id":1,"method":"eth_subscribe","params":["<script>"]}`); strings.Contains(got, "<script>") {
		t.Errorf("got %s", got)
	}
	if got := c.ask(`{"jsonrpc":"2.0","id":1,"method":"eth_unsubscribe","params":["<script>"]}`); strings.Contains(got, "<script>") {
		t.Errorf("got %s", got)
	}
}

// TestRebinding: a page whose name was made to point at this machine sends that name as its origin, and is refused; what it
// gets without an origin is the name of the service. There is no rule for Host.
//
// SEC-008
func TestRebinding(t *testing.T) {
	s := startServer(t, newFakeStore(t, 3), nil)
	const post = "POST / HTTP/1.1\r\nHost: rebound.example:8545\r\nContent-Type: application/json\r\nContent-Length: 47\r\n"
	if len(chainIDCall) != 47 {
		t.Fatal(len(chainIDCall))
	}
	for request, status := range map[string]int{
		post + "Origin: http://rebound.example:8545\r\n\r\n" + chainIDCall:                            http.StatusForbidden,
		post + "\r\n" + chainIDCall:                                                                   http.StatusOK,
		"GET / HTTP/1.1\r\nHost: rebound.example:8545\r\nOrigin: http://rebound.example:8545\r\n\r\n": http.StatusForbidden,
		"GET / HTTP/1.1\r\nHost: rebound.example:8545\r\n\r\n":                                        http.StatusOK,
	} {
		a := s.raw(request)
		if a.status != status {
			t.Errorf("%.120q: status %d %s, want %d", request, a.status, a.body, status)
		}
		if strings.HasPrefix(request, "GET") && status == http.StatusOK && a.body != `{"service":"leani-json-rpc","jsonrpc":"2.0"}` {
			t.Errorf("GET without an origin: %s", a.body)
		}
	}
	// A page can send a simple request to any machine without asking: of forms and text there is no call.
	for _, kind := range []string{"text/plain", "application/x-www-form-urlencoded", "multipart/form-data"} {
		if a := s.do(http.MethodPost, "["+chainIDCall+"]", "Content-Type", kind); a.status != http.StatusUnsupportedMediaType {
			t.Errorf("%s: status %d %s", kind, a.status, a.body)
		}
	}
	if a := s.do(http.MethodOptions, "", "Origin", "https://evil.example", "Access-Control-Request-Method", "POST"); a.status < 400 || a.header.Get("Access-Control-Allow-Origin") != "" {
		t.Errorf("a preflight: status %d %v", a.status, a.header)
	}
}
