package harness

import (
	"io"
	"net"
	"net/url"
	"testing"
)

// A proxy passes on what comes, holds clients while it is cut, and ends with its test however that leaves it.
func TestProxy(t *testing.T) {
	target, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = target.Close() }()
	go func() { // ends with the listener
		for {
			c, err := target.Accept()
			if err != nil {
				return
			}
			_, _ = c.Write([]byte("hello"))
			_ = c.Close()
		}
	}()
	dial := func(t *testing.T, at string) net.Conn {
		t.Helper()
		u, err := url.Parse(at)
		if err != nil {
			t.Fatal(err)
		}
		c, err := net.Dial("tcp", u.Host)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	hears := func(t *testing.T, c net.Conn) {
		t.Helper()
		if text, err := io.ReadAll(c); err != nil || string(text) != "hello" {
			t.Errorf("got %q, %v", text, err)
		}
		_ = c.Close()
	}
	t.Run("mended", func(t *testing.T) {
		p, at := NewProxy(t, "http://"+target.Addr().String())
		hears(t, dial(t, at))
		p.Cut()
		p.Cut()
		c := dial(t, at)
		p.Mend()
		p.Mend()
		hears(t, c)
	})
	t.Run("cut", func(t *testing.T) { // as after a failure
		p, at := NewProxy(t, "http://"+target.Addr().String())
		p.Cut()
		c := dial(t, at)
		for waits := false; !waits; { // until the proxy has it
			p.mu.Lock()
			waits = len(p.open) > 0
			p.mu.Unlock()
		}
		t.Cleanup(func() { _ = c.Close() })
	})
}
