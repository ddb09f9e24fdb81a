package rpc

import (
	"context"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/leani-go/leani/api/jsonrpc"
	"github.com/leani-go/leani/chain"
	"github.com/leani-go/leani/internal/hexenc"
)

// call is one call of a method: what it may use, and the response it appends its result to.
// It belongs to one goroutine at a time.
type call struct {
	*service
	// context bounds the work. Methods that read the store ask for it.
	context func() context.Context
	// extend gives the request more time.
	extend func(time.Duration)
	params value
	out    *response
	encode encoder // of the exchange
	socket *socket // nil over HTTP

	view    View        // open between openView and the end of the call
	touched chain.Range // of the view: what the answer is made of, and what lies in between
	fetched provenance  // of what was fetched on demand
	origin  provenance  // of the answer; set at the end of the call

	// Scratch of the exchange, reused from call to call.
	block  chain.Block
	filter chain.LogFilter
	loaded bool // the block has been filled since reset
}

// run runs the method of a request, whose result is appended to the response of the exchange.
// A panic ends the call with an error, not the process.
func (s *service) run(x *exchange, r *request) error {
	m, ok := s.methods[string(r.method)]
	if !ok && x.socket != nil {
		m, ok = s.socketMethods[string(r.method)]
	}
	if !ok {
		return jsonrpc.MethodNotFound()
	}
	c := &x.call
	c.service, c.params, c.out, c.socket = s, r.params, &x.out, x.socket
	return c.protect(m)
}

// protect runs the method, closes the view it opened and turns a panic into an error.
func (c *call) protect(m method) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = &panicError{value: v, stack: debug.Stack()}
		}
		c.closeView()
	}()
	c.touched, c.fetched, c.origin = chain.Range{}, provenance{}, provenance{}
	if err = m(c); err == nil {
		c.origin = c.traced()
	}
	return err
}

// openView opens the snapshot that the call answers from. It is closed when the call ends: each
// call of a batch has its own, so that a batch pins no more of the store than one call.
func (c *call) openView() error {
	view, err := c.store.View()
	if err != nil {
		return fmt.Errorf("open a view of the store: %w", err)
	}
	c.view = view
	return nil
}

// load fills the scratch block from the view.
func (c *call) load(number uint64, parts chain.Parts) error {
	c.loaded = true
	c.touch(chain.Range{From: number, To: number + 1})
	if err := c.view.LoadBlock(c.context(), number, parts, &c.block); err != nil {
		return fmt.Errorf("load block %d: %w", number, err)
	}
	return nil
}

// loadOne fills the scratch block with what the answer about one transaction needs.
func (c *call) loadOne(number uint64, index uint32, parts chain.Parts) error {
	c.loaded = true
	c.touch(chain.Range{From: number, To: number + 1})
	if err := c.view.LoadTransaction(c.context(), number, index, parts, &c.block); err != nil {
		return fmt.Errorf("load transaction %d of block %d: %w", index, number, err)
	}
	return nil
}

func (c *call) closeView() {
	if c.view != nil {
		c.view.Close()
		c.view = nil
	}
}

// reset drops what the scratch refers to, so that a pooled call keeps nothing of the store
// alive.
func (c *call) reset() {
	if b := &c.block; c.loaded {
		b.Reset()
		clear(b.Transactions[:cap(b.Transactions)])
		clear(b.Receipts[:cap(b.Receipts)])
		clear(b.Logs[:cap(b.Logs)])
		c.loaded = false
	}
	c.service, c.params, c.out, c.socket = nil, nil, nil, nil
}

// null appends the result null.
func (c *call) null() error {
	c.out.buf = append(c.out.buf, "null"...)
	return nil
}

// quantity appends a result that is a number.
func (c *call) quantity(v uint64) error {
	c.out.buf = append(c.out.buf, '"')
	c.out.buf = append(hexenc.AppendQuantity(c.out.buf, v), '"')
	return nil
}

// text appends a result that is a string.
func (c *call) text(s string) error {
	c.out.buf = jsonrpc.AppendString(c.out.buf, s)
	return nil
}
