package harness

import (
	"io"
	"net"
	"net/url"
	"sync"
	"testing"
)

// Proxy passes TCP connections on to a node, and can cut them. It ends with its test.
type Proxy struct {
	target string
	work   sync.WaitGroup

	mu      sync.Mutex
	through chan struct{} // closed while new connections are passed on
	open    map[net.Conn]bool
}

// NewProxy makes a proxy for a URL and gives its own URL.
func NewProxy(tb testing.TB, to string) (p *Proxy, at string) {
	tb.Helper()
	u, err := url.Parse(to)
	if err != nil {
		tb.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	p = &Proxy{target: u.Host, through: make(chan struct{}), open: make(map[net.Conn]bool)}
	close(p.through)
	p.work.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			p.work.Go(func() { p.pass(c) })
		}
	})
	tb.Cleanup(func() {
		_ = l.Close()
		p.Cut()
		p.Mend() // who waits finds a closed connection
		p.work.Wait()
	})
	u.Host = l.Addr().String()
	return p, u.String()
}

// pass connects a client with the target until one of them ends or all is cut.
func (p *Proxy) pass(client net.Conn) {
	defer func() { _ = client.Close() }()
	<-p.enter(client)
	server, err := net.Dial("tcp", p.target)
	if err != nil {
		return
	}
	defer func() { _ = server.Close() }()
	defer p.leave(client)
	var both sync.WaitGroup
	for _, way := range [][2]net.Conn{{client, server}, {server, client}} {
		both.Go(func() {
			_, _ = io.Copy(way[0], way[1]) // ends with either connection
			_ = client.Close()
			_ = server.Close()
		})
	}
	both.Wait()
}

// enter takes in a client; the channel is closed once it may go through.
func (p *Proxy) enter(client net.Conn) <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.open[client] = true
	return p.through
}

func (p *Proxy) leave(client net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.open, client)
}

// Cut ends all connections; new ones wait until Mend. They are not refused: some clients try a few times within a moment, and
// then never again.
func (p *Proxy) Cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case <-p.through:
		p.through = make(chan struct{})
	default: // it is cut already, and who waits waits for this
	}
	for c := range p.open {
		_ = c.Close()
	}
}

// Mend lets connections through again.
func (p *Proxy) Mend() {
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case <-p.through:
	default:
		close(p.through)
	}
}
