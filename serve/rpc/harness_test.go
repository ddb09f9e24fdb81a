package rpc

import (
	"bufio"
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/valyala/fasthttp/fasthttputil"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m,
		// fasthttp never stops its clock, and the sweeper of a server's workers sleeps for
		// ten seconds before it looks.
		goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.updateServerDate.func1"),
		goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.(*workerPool).Start.func2"),
	)
}

// testServer is a server on an in-memory listener with everything a test looks at.
type testServer struct {
	*Server
	t        testing.TB
	store    *fakeStore
	listener *fasthttputil.InmemoryListener
	log      *lockedBuffer
	client   *http.Client
}

// startServer serves the store until the test ends, and then checks that nothing of it is left
// open: no view, no reserved memory.
func startServer(t testing.TB, store *fakeStore, change func(*Options)) *testServer {
	t.Helper()
	s := &testServer{t: t, store: store, listener: fasthttputil.NewInmemoryListener(), log: new(lockedBuffer)}
	options := Options{
		Store: store, Network: testNetwork(), ClientVersion: "leani/test", newEncoder: stubbed(stubEncoder{}),
		Logger: slog.New(slog.NewTextHandler(s.log, nil)),
	}
	if change != nil {
		change(&options)
	}
	server, err := New(options)
	if err != nil {
		t.Fatal(err)
	}
	s.Server = server
	s.client = &http.Client{Transport: &http.Transport{
		DialContext: func(context.Context, string, string) (net.Conn, error) { return s.listener.Dial() },
	}}
	served := make(chan error, 1)
	go func() { served <- server.Serve(s.listener) }()
	t.Cleanup(func() {
		s.client.CloseIdleConnections()
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := server.Shutdown(ctx); err != nil {
			t.Errorf("shutdown: %v", err)
		}
		if err := <-served; err != nil {
			t.Errorf("serve: %v", err)
		}
		if n := store.open.Load(); n != 0 {
			t.Errorf("%d views are still open", n)
		}
		s.checkMemory()
	})
	return s
}

// overTCP serves on a TCP port as well until the test ends, and gives its address.
func (s *testServer) overTCP() (address string) {
	s.t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		s.t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- s.Serve(listener) }()
	s.t.Cleanup(func() {
		_ = s.Shutdown(context.Background()) // told again by startServer
		if err := <-served; err != nil {
			s.t.Error(err)
		}
	})
	return listener.Addr().String()
}

// checkMemory requires that all reserved memory has been given back.
func (s *testServer) checkMemory() {
	s.t.Helper()
	for name, b := range map[string]*budget{"responses": s.service.memory.budget, "medium responses": s.service.memory.medium, "requests": s.requestMemory} {
		b.mu.Lock()
		if b.mu.free != b.size || len(b.mu.waiting) != 0 {
			s.t.Errorf("memory of %s: %d of %d bytes free, %d waiting", name, b.mu.free, b.size, len(b.mu.waiting))
		}
		b.mu.Unlock()
	}
}

// answer is what came back for a request.
type answer struct {
	status int
	header http.Header
	body   string
}

// do sends one request with JSON content type; header pairs override.
func (s *testServer) do(method, body string, header ...string) answer {
	s.t.Helper()
	request, err := http.NewRequest(method, "http://leani.test/", strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	for i := 0; i < len(header); i += 2 {
		if header[i+1] == "" {
			request.Header.Del(header[i])
		} else {
			request.Header.Set(header[i], header[i+1])
		}
	}
	response, err := s.client.Do(request)
	if err != nil {
		s.t.Fatalf("%s: %v", method, err)
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		s.t.Fatalf("%s: read response: %v", method, err)
	}
	return answer{status: response.StatusCode, header: response.Header, body: string(text)}
}

// post sends one call and returns the body of the answer, which has to be HTTP 200.
func (s *testServer) post(body string) string {
	s.t.Helper()
	a := s.do(http.MethodPost, body)
	if a.status != http.StatusOK {
		s.t.Fatalf("status %d for %s: %s", a.status, body, a.body)
	}
	return a.body
}

// raw sends bytes as they are and reads one response.
func (s *testServer) raw(request string) answer {
	s.t.Helper()
	conn, err := s.listener.Dial()
	if err != nil {
		s.t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	go func() { _, _ = io.WriteString(conn, request) }()
	response, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		s.t.Fatalf("read response: %v", err)
	}
	text, err := io.ReadAll(response.Body)
	if err != nil {
		s.t.Fatalf("read response: %v", err)
	}
	return answer{status: response.StatusCode, header: response.Header, body: string(text)}
}

// lockedBuffer collects log output from several goroutines.
type lockedBuffer struct {
	mu   sync.Mutex
	text strings.Builder
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}
