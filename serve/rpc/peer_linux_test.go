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

	"github.com/leani-go/leani/chain"
)

// A client that closes its sending side behind its last request gets its answer, and ends what is fetched for it with a reset. One
// that has not said that it was the last is told why it has no answer.
func TestHistoryHalfClosed(t *testing.T) {
	running, proceed, ended := make(chan struct{}, 1), make(chan struct{}), make(chan error, 1)
	s, _ := startHistory(t, []chain.Range{{From: 20, To: 40}}, func(_ *fakeStore, h *fakeHistory, _ *Options) {
		h.before = func(ctx context.Context, _ HistoryRequest) (err error) {
			running <- struct{}{}
			select {
			case <-proceed:
			case <-ctx.Done():
				err = ctx.Err()
			}
			ended <- err
			return err
		}
	})
	address := s.overTCP()
	ask := func(head string) *net.TCPConn {
		conn, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		body := callsOf(3)[0]
		_, err = fmt.Fprintf(conn, "POST / %s\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", head, len(body), body)
		if err != nil {
			t.Fatal(err)
		}
		<-running
		half := conn.(*net.TCPConn)
		if err := half.CloseWrite(); err != nil {
			t.Fatal(err)
		}
		return half
	}
	answer := func(conn net.Conn) string {
		response, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(response.Body)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}

	conn := ask("HTTP/1.1")
	if err := <-ended; err != context.Canceled {
		t.Errorf("got %v", err)
	}
	if got := answer(conn); !strings.Contains(got, `"code":-32603`) || !strings.Contains(got, detailGone) {
		t.Errorf("got %s", got)
	}
	conn = ask("HTTP/1.0")
	if err := conn.SetLinger(0); err != nil { // so that closing it is a reset
		t.Fatal(err)
	}
	_ = conn.Close()
	if err := <-ended; err != context.Canceled {
		t.Errorf("got %v", err)
	}
	for _, head := range []string{"HTTP/1.0", "HTTP/1.1\r\nConnection: close"} {
		conn := ask(head)
		_ = ask("HTTP/1.1")
		if err := <-ended; err != context.Canceled { // so that the first one's has been seen as well
			t.Errorf("%s: got %v", head, err)
		}
		select {
		case proceed <- struct{}{}:
			<-ended
		case err := <-ended:
			t.Fatalf("%s: the fetch ended before its time: %v", head, err)
		}
		if got := answer(conn); !strings.Contains(got, `"number":"0x3"`) {
			t.Errorf("%s: got %s", head, got)
		}
	}
}
