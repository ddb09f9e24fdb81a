//go:build unix

package rpc

import (
	"net"
	"testing"
	"time"
)

// A connection is watched for as long as it takes, and not only until the deadline by which its request had to come.
func TestWatchPeer(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	client, err := net.Dial("tcp", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	server, err := listener.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = server.Close() }()
	if err := server.SetReadDeadline(time.Unix(1, 0)); err != nil {
		t.Fatal(err)
	}
	gone := make(chan struct{})
	stop := watchPeer(server, false, func() { close(gone) })
	if err := client.Close(); err != nil {
		t.Fatal(err)
	}
	select {
	case <-gone:
	case <-time.After(patience):
		t.Error("nobody saw it go")
	}
	stop()
}
