package pipenet

import (
	"context"
	"errors"
	"io"
	"net"
	"testing"
)

// Bytes go both ways, and a closed network refuses both sides.
func TestNetwork(t *testing.T) {
	n := New()
	go func() {
		c, err := n.Accept()
		if err != nil {
			return
		}
		_, _ = io.Copy(c, c)
	}()
	c, err := n.Dial(t.Context(), "tcp", "anything:80")
	if err != nil {
		t.Fatal(err)
	}
	echo := make([]byte, 3)
	if _, err := c.Write([]byte("abc")); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(c, echo); err != nil || string(echo) != "abc" {
		t.Errorf("%q, %v", echo, err)
	}
	if err := errors.Join(c.Close(), n.Close(), n.Close()); err != nil {
		t.Error(err)
	}
	if _, err := n.Dial(context.Background(), "", ""); !errors.Is(err, net.ErrClosed) {
		t.Error(err)
	}
	if _, err := n.Accept(); !errors.Is(err, net.ErrClosed) {
		t.Error(err)
	}
}
