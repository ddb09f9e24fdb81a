// Package pipenet is a network within the process, for tests of clients against servers that run in
// a bubble of testing/synctest: its connections are pipes, so that waiting for them counts as
// waiting, and time passes at once when all wait.
//
// It is not a simulation of a network: bytes arrive in order, at once and unchanged. A Network is safe
// for concurrent use.
package pipenet

import (
	"context"
	"net"
	"sync"
)

// Network is one server's place. It is a net.Listener.
type Network struct {
	connections chan net.Conn
	closed      chan struct{}
	once        sync.Once
}

// New makes a network.
func New() *Network {
	return &Network{connections: make(chan net.Conn), closed: make(chan struct{})}
}

// Dial connects to the server, whatever the address. It fails with net.ErrClosed when that is closed.
func (n *Network) Dial(ctx context.Context, _, _ string) (net.Conn, error) {
	client, server := net.Pipe()
	select {
	case n.connections <- server:
		return client, nil
	case <-n.closed:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Accept waits for a client.
func (n *Network) Accept() (net.Conn, error) {
	select {
	case c := <-n.connections:
		return c, nil
	case <-n.closed:
		return nil, net.ErrClosed
	}
}

// Close ends the listener; connections stay.
func (n *Network) Close() error {
	n.once.Do(func() { close(n.closed) })
	return nil
}

// Addr is the address of a pipe.
func (n *Network) Addr() net.Addr { return address{} }

type address struct{}

func (address) Network() string { return "pipe" }
func (address) String() string  { return "pipe" }
