package ponder

import (
	"io"
	"net"
	"net/url"
	"sync"
	"testing"
)

// proxy passes TCP connections on to a node, and can cut them.
type proxy struct {
	listener net.Listener
	target   string
	work     sync.WaitGroup

	mu   sync.Mutex
	down bool
	open map[net.Conn]bool
}

// newProxy makes a proxy for a URL and gives its own URL.
func newProxy(t *testing.T, to string) (p *proxy, at string) {
	t.Helper()
	u, err := url.Parse(to)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p = &proxy{listener: l, target: u.Host, open: make(map[net.Conn]bool)}
	p.work.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			p.work.Go(func() { p.pass(c) })
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		p.cut()
		p.work.Wait()
	})
	u.Host = l.Addr().String()
	return p, u.String()
}

// pass connects a client with the target until one of them ends or all is cut.
func (p *proxy) pass(client net.Conn) {
	defer func() { _ = client.Close() }()
	server, err := net.Dial("tcp", p.target)
	if err != nil {
		return
	}
	defer func() { _ = server.Close() }()
	if !p.add(client, server) {
		return
	}
	defer p.remove(client, server)
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

func (p *proxy) add(connections ...net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range connections {
		p.open[c] = true
	}
	return !p.down
}

func (p *proxy) remove(connections ...net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range connections {
		delete(p.open, c)
	}
}

// cut ends all connections; new ones end at once until mend.
func (p *proxy) cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.down = true
	for c := range p.open {
		_ = c.Close()
	}
}

// mend lets connections through again.
func (p *proxy) mend() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.down = false
}
