package rpc

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// inBubble runs a test with a server in a bubble of package synctest: its time stands still while
// any goroutine can run, and synctest.Wait waits until none can. The clock that fasthttp starts once
// and never stops has to exist before.
func inBubble(t *testing.T, change func(*Options), run func(t *testing.T, s *Server)) {
	t.Helper()
	startServer(t, newFakeStore(t, 1), nil).post(chainIDCall)
	synctest.Test(t, func(t *testing.T) {
		options := Options{Store: newFakeStore(t, 8), Network: testNetwork(), newEncoder: stubbed(stubEncoder{})}
		if change != nil {
			change(&options)
		}
		s, err := New(options)
		if err != nil {
			t.Fatal(err)
		}
		run(t, s)
		if err := s.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
	})
}

// serve serves one connection and returns its client side, and a function that waits until the
// server is done with it and tells how long it took from the call to serve.
func serve(s *Server) (client net.Conn, done func() time.Duration) {
	client, server := net.Pipe()
	start := time.Now()
	ended := make(chan time.Duration)
	go func() {
		_ = s.http.ServeConn(server)
		ended <- time.Since(start)
	}()
	return client, func() time.Duration { return <-ended }
}

// askAlone sends a call over a connection of its own and returns the body of the answer.
func askAlone(t *testing.T, s *Server, call string) string {
	t.Helper()
	client, done := serve(s)
	defer done()
	defer func() { _ = client.Close() }()
	go func() {
		_, _ = fmt.Fprintf(client, "POST / HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%s", len(call), call)
	}()
	response, err := http.ReadResponse(bufio.NewReader(client), nil)
	if err != nil {
		t.Error(err)
		return ""
	}
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Error(err)
	}
	return string(text)
}

// SEC-014: a client that sends its request byte by byte has as long as one that sends nothing,
// for header and body alike, and is told so.
func TestSlowSender(t *testing.T) {
	header := "POST / HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 500000\r\n\r\n"
	for name, sent := range map[string]string{
		"header":  header[:20],
		"body":    header + strings.Repeat(" ", 1000),
		"chunked": "POST / HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\nfffff\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, nil, func(t *testing.T, s *Server) {
				client, done := serve(s)
				sender := make(chan struct{})
				go func() {
					defer close(sender)
					if _, err := io.WriteString(client, sent); err != nil {
						return
					}
					for {
						time.Sleep(time.Second)
						if _, err := io.WriteString(client, "1"); err != nil {
							return
						}
					}
				}()
				response, err := http.ReadResponse(bufio.NewReader(client), nil)
				if err != nil {
					t.Fatal(err)
				}
				if response.StatusCode != http.StatusRequestTimeout {
					t.Errorf("got status %d", response.StatusCode)
				}
				_ = client.Close()
				<-sender
				if took := done(); took < readTimeout || took > readTimeout+2*time.Second {
					t.Errorf("the connection was open for %v", took)
				}
			})
		})
	}
}

// A connection without requests is closed.
func TestIdleConnection(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, s *Server) {
		client, done := serve(s)
		go func() {
			_, _ = fmt.Fprintf(client, "POST / HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(chainIDCall), chainIDCall)
		}()
		reader := bufio.NewReader(client)
		response, err := http.ReadResponse(reader, nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadAll(response.Body); err != nil {
			t.Fatal(err)
		}
		if _, err := reader.ReadByte(); err != io.EOF {
			t.Errorf("got %v, want the connection closed", err)
		}
		if took := done(); took < idleTimeout || took > idleTimeout+time.Second {
			t.Errorf("the connection was open for %v", took)
		}
	})
}

// A client that stops reading a large response is cut off soon and its memory is there for
// others; one that is slow but reads on gets all of it, however long that takes.
func TestStalledReader(t *testing.T) {
	const size = 4 << 20
	change := func(o *Options) {
		o.newEncoder = stubbed(fillEncoder{size: size})
		o.Limits.MaxResponseBytes, o.Limits.InFlightResponseBytes = 8<<20, 8<<20
	}
	request := fmt.Sprintf("POST / HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%s", len(blockCall), blockCall)
	t.Run("stalled", func(t *testing.T) {
		inBubble(t, change, func(t *testing.T, s *Server) {
			client, done := serve(s)
			if _, err := io.WriteString(client, request); err != nil {
				t.Fatal(err)
			}
			if _, err := io.CopyN(io.Discard, client, size/2); err != nil {
				t.Fatal(err)
			}
			if took := done(); took > stallTimeout+time.Second {
				t.Errorf("the connection was open for %v", took)
			}
			_ = client.Close()
			if b := s.service.memory.budget; b.mu.free != b.size {
				t.Errorf("%d of %d bytes are free", b.mu.free, b.size)
			}
		})
	})
	t.Run("slow", func(t *testing.T) {
		inBubble(t, change, func(t *testing.T, s *Server) {
			client, done := serve(s)
			if _, err := io.WriteString(client, request); err != nil {
				t.Fatal(err)
			}
			received := int64(0)
			for {
				n, err := io.CopyN(io.Discard, client, writeChunk/8)
				received += n
				if err != nil {
					break
				}
				time.Sleep(time.Second)
			}
			if received < size {
				t.Errorf("got %d bytes", received)
			}
			if took := done(); took < 2*writeTimeout {
				t.Errorf("the reader was not slow: %v", took)
			}
		})
	})
}

// A client that stops reading holds memory from others for two seconds and not for ten; while nobody
// waits it has its time.
func TestStalledReaderWhileOthersWait(t *testing.T) {
	const size = 4 << 20
	change := func(o *Options) {
		o.newEncoder = stubbed(fillEncoder{size: size})
		o.Limits.MaxResponseBytes, o.Limits.InFlightResponseBytes = 8<<20, 8<<20
	}
	request := fmt.Sprintf("POST / HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%s", len(blockCall), blockCall)
	inBubble(t, change, func(t *testing.T, s *Server) {
		client, done := serve(s)
		if _, err := io.WriteString(client, request); err != nil {
			t.Fatal(err)
		}
		if _, err := io.CopyN(io.Discard, client, size/2); err != nil {
			t.Fatal(err)
		}
		time.Sleep(stallTimeout - scarceTimeout - 2*time.Second) // nobody waits
		start := time.Now()
		if got := askAlone(t, s, blockCall); len(got) < size {
			t.Errorf("got %.100s", got)
		}
		if took := time.Since(start); took > scarceTimeout+time.Second {
			t.Errorf("another client waited for %v", took)
		}
		done()
		_ = client.Close()
	})
}

// A client that asks for a WebSocket byte by byte is told so in time, and one that sends a message so is cut off. SEC-014
func TestSlowHandshake(t *testing.T) {
	const upgrade = "GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n" +
		"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"
	for name, c := range map[string]struct {
		sent   string
		status int
		least  time.Duration
	}{
		"handshake": {upgrade[:20], http.StatusRequestTimeout, handshakeTimeout},
		"message":   {upgrade + string(frame(opText, "[", true)), http.StatusSwitchingProtocols, readTimeout},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, nil, func(t *testing.T, s *Server) {
				client, server := net.Pipe()
				start, sent := time.Now(), make(chan struct{})
				go func() { _ = s.upgrades.ServeConn(server) }() // ends with the connection
				go func() {
					defer close(sent)
					if _, err := io.WriteString(client, c.sent); err != nil {
						return
					}
					for more := frame(0, "", true); ; more = append(more[1:], more[0]) {
						time.Sleep(time.Second)
						if _, err := client.Write(more[:1]); err != nil {
							return
						}
					}
				}()
				reader := bufio.NewReader(client)
				response, err := http.ReadResponse(reader, nil)
				if err != nil {
					t.Fatal(err)
				}
				if response.StatusCode != c.status {
					t.Errorf("got status %d", response.StatusCode)
				}
				_, _ = io.Copy(io.Discard, reader)
				took := time.Since(start)
				_ = client.Close()
				<-sent
				if took < c.least || took > c.least+3*time.Second {
					t.Errorf("the connection was open for %v", took)
				}
			})
		})
	}
}
