package rpc

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"runtime/debug"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/leani-go/leani/api/jsonrpc"
)

// This file is everything that knows HTTP. It takes a body out of a request and brings an
// answer back; what is in them is the business of the exchange.

const (
	jsonType = "application/json"
	textType = "text/plain; charset=utf-8"
)

// exchangeKey is the name under which a request carries its exchange. fasthttp closes what a
// request carries once the response has been written, or cannot be: that returns the exchange
// with the buffer the response was sent from.
const exchangeKey = "exchange"

// pooledExchange makes the end of a request the end of its exchange.
type pooledExchange struct {
	exchange
	server *Server
	// metered is how much of the request budget the body holds.
	metered int64
	sender  chunkSender
	header  []byte // value of the header that says where answers come from
}

// Close implements io.Closer for fasthttp; it does not fail.
func (x *pooledExchange) Close() error {
	x.server.requestMemory.release(x.metered)
	x.metered = 0
	x.sender = chunkSender{}
	x.release()
	x.server.exchanges.Put(x)
	return nil
}

// handle serves one HTTP request.
func (s *Server) handle(ctx *fasthttp.RequestCtx) {
	s.gate.RLock()
	defer s.gate.RUnlock()
	defer func() {
		if v := recover(); v != nil {
			s.service.logFailure(&panicError{value: v, stack: debug.Stack()}, "")
			refuseText(ctx, fasthttp.StatusInternalServerError, "internal error")
			ctx.SetConnectionClose()
		}
	}()
	if s.closed {
		refuseText(ctx, fasthttp.StatusServiceUnavailable, "the node is shutting down")
		ctx.SetConnectionClose()
		return
	}

	if !s.isCall(ctx) {
		return
	}
	x := s.acquire()
	ctx.SetUserValue(exchangeKey, x)
	if !s.readBody(ctx, x) {
		return
	}
	x.conn, x.last = ctx.Conn(), ctx.Request.Header.ConnectionClose()
	x.run()
	s.respond(ctx, x)
}

// isCall tells whether the headers are those of a call. It answers the request if they are not.
func (s *Server) isCall(ctx *fasthttp.RequestCtx) bool {
	header := &ctx.Request.Header
	switch {
	case !s.allowsOrigin(header):
		refuseText(ctx, fasthttp.StatusForbidden, "this origin may not call")
	case header.IsGet() || header.IsHead():
		ctx.SetContentType(jsonType)
		ctx.SetBodyString(jsonrpc.Service)
	case !header.IsPost():
		ctx.Response.Header.Set(fasthttp.HeaderAllow, "GET, HEAD, POST")
		refuseText(ctx, fasthttp.StatusMethodNotAllowed, "calls are POST requests")
	case !isJSON(header.ContentType()):
		refuseText(ctx, fasthttp.StatusUnsupportedMediaType, "the content type of calls is application/json")
	case !isIdentity(header.ContentEncoding()):
		refuseText(ctx, fasthttp.StatusUnsupportedMediaType, "bodies must not be compressed")
	default:
		return true
	}
	return false
}

// allowsOrigin tells whether the origin of a request may call. Where several are named each has to.
func (s *Server) allowsOrigin(header *fasthttp.RequestHeader) bool {
	for _, origin := range header.PeekAll(fasthttp.HeaderOrigin) {
		if !s.origins.allows(origin) {
			return false
		}
	}
	return true
}

// expect decides about a request that waits for leave to send its body: what is refused whatever the body says is
// refused before.
func (s *Server) expect(ctx *fasthttp.RequestCtx) (status int) {
	if !s.isCall(ctx) {
		return ctx.Response.StatusCode()
	}
	if ctx.Request.Header.ContentLength() > maxRequestBytes {
		refuseJSON(ctx, fasthttp.StatusRequestEntityTooLarge, requestTooLarge())
		return fasthttp.StatusRequestEntityTooLarge
	}
	return fasthttp.StatusContinue
}

// respond hands the response of the exchange to fasthttp without copying it.
func (s *Server) respond(ctx *fasthttp.RequestCtx, x *pooledExchange) {
	body := x.out.buf
	switch {
	case len(body) == 0:
		ctx.SetStatusCode(fasthttp.StatusNoContent)
		return
	case len(body) <= largeResponse:
		// Header and body leave in one system call.
		ctx.Response.SetBodyRaw(body)
	default:
		x.sender = chunkSender{rest: body, conn: ctx.Conn(), memory: s.service.memory}
		ctx.Response.SetBodyStream(&x.sender, len(body))
	}
	ctx.SetContentType(jsonType)
	if x.origin.answered {
		x.header = x.origin.appendHeader(x.header[:0])
		ctx.Response.Header.SetBytesV(jsonrpc.HeaderAnswer, x.header)
	}
}

// readBody reads the body of a call into the exchange, at most maxRequestBytes of it whatever
// the headers say. It returns false when it answered the request instead.
func (s *Server) readBody(ctx *fasthttp.RequestCtx, x *pooledExchange) bool {
	length := ctx.Request.Header.ContentLength()
	stream := ctx.RequestBodyStream()
	if stream == nil || length == 0 {
		return true
	}
	if length > maxRequestBytes {
		refuseTooLarge(ctx, stream, length)
		return false
	}
	for {
		if len(x.body) > unmeteredBytes && x.metered == 0 && !s.meter(ctx, x, length) {
			return false
		}
		if len(x.body) == cap(x.body) {
			bigger := make([]byte, len(x.body), nextBodySize(cap(x.body), length, x.metered > 0))
			copy(bigger, x.body)
			x.body = bigger
		}
		n, err := stream.Read(x.body[len(x.body):cap(x.body)])
		x.body = x.body[:len(x.body)+n]
		switch {
		case len(x.body) > maxRequestBytes:
			refuseTooLarge(ctx, stream, -1)
			return false
		case err == io.EOF:
			x.settle()
			return true
		case err != nil:
			refuseBroken(ctx, err)
			return false
		}
	}
}

// meter takes memory for a body of which more than unmeteredBytes have arrived: as much as was
// announced, or for a chunked body as much as it may have, of which settle gives the rest back. It
// takes it in one piece: bodies that wait for more while they hold some would wait for each other.
// It returns false when it answered the request instead.
func (s *Server) meter(ctx *fasthttp.RequestCtx, x *pooledExchange, announced int) bool {
	bytes := int64(announced)
	if announced < 0 {
		bytes = maxRequestBytes
	}
	wait, cancel := context.WithTimeout(s.base, readTimeout)
	defer cancel()
	if err := s.requestMemory.acquire(wait, bytes); err != nil {
		refuseJSON(ctx, fasthttp.StatusServiceUnavailable, tooManyLargeRequests(&s.service.limits))
		ctx.SetConnectionClose()
		return false
	}
	x.metered = bytes
	return true
}

// settle gives back what was taken beyond the memory that the whole body holds.
func (x *pooledExchange) settle() {
	if rest := x.metered - int64(cap(x.body)); rest > 0 {
		x.server.requestMemory.release(rest)
		x.metered -= rest
	}
}

// nextBodySize is the next capacity of a body buffer: what the header announced, else doubled
// from 4 KiB. It has room for one byte more than the body may have, so that its end is found
// without growing again, and until the body is metered no more than what tells that it has to be.
func nextBodySize(size, announced int, metered bool) int {
	largest := unmeteredBytes + 1
	if metered {
		largest = maxRequestBytes + 1
	}
	if announced > size {
		return min(announced+1, largest)
	}
	return min(max(4<<10, 2*size), largest)
}

// refuseTooLarge answers 413. Of the rest of the body as much is read as makes sense, so that
// a client that writes all before it reads gets the answer.
func refuseTooLarge(ctx *fasthttp.RequestCtx, stream io.Reader, length int) {
	if length <= maxDrainBytes {
		_, err := io.CopyN(io.Discard, stream, maxDrainBytes)
		if err != io.EOF {
			ctx.SetConnectionClose()
		}
	} else {
		ctx.SetConnectionClose()
	}
	refuseJSON(ctx, fasthttp.StatusRequestEntityTooLarge, requestTooLarge())
}

func requestTooLarge() *jsonrpc.Error {
	return jsonrpc.LimitExceeded("request body is larger than 1048576 bytes", jsonrpc.ReasonRequestSize, maxRequestBytes)
}

// refuseBroken answers a body that could not be read to its end.
func refuseBroken(ctx *fasthttp.RequestCtx, err error) {
	status, text := requestFault(err)
	refuseText(ctx, status, text)
	ctx.SetConnectionClose()
}

// requestFault is the answer to a request that could not be read.
func requestFault(err error) (status int, text string) {
	var timeout interface{ Timeout() bool }
	var small *fasthttp.ErrSmallBuffer
	switch {
	case errors.As(err, &small):
		return fasthttp.StatusRequestHeaderFieldsTooLarge, "headers are too large"
	case errors.As(err, &timeout) && timeout.Timeout():
		return fasthttp.StatusRequestTimeout, "the request took too long to arrive"
	}
	return fasthttp.StatusBadRequest, "malformed request"
}

func refuseText(ctx *fasthttp.RequestCtx, status int, text string) {
	ctx.SetStatusCode(status)
	ctx.SetContentType(textType)
	ctx.SetBodyString(text + "\n")
}

func refuseJSON(ctx *fasthttp.RequestCtx, status int, e *jsonrpc.Error) {
	ctx.SetStatusCode(status)
	ctx.SetContentType(jsonType)
	ctx.SetBody(appendError(nil, nullID, e))
}

// isJSON tells whether a content type is application/json, with any parameters.
func isJSON(contentType []byte) bool {
	media, _, _ := bytes.Cut(contentType, []byte{';'})
	return bytes.EqualFold(bytes.TrimSpace(media), []byte(jsonType))
}

// isIdentity tells whether a content encoding leaves the body as it is.
func isIdentity(encoding []byte) bool {
	return len(encoding) == 0 || bytes.EqualFold(encoding, []byte("identity"))
}

// chunkSender sends a large body and gives the client a new deadline for each chunk, so that a
// slow reader is served and one that stopped reading is cut off soon.
type chunkSender struct {
	rest   []byte
	conn   net.Conn
	memory *memory
}

// WriteTo implements io.WriterTo.
func (s *chunkSender) WriteTo(w io.Writer) (sent int64, err error) {
	sending := s.memory.send(s.conn)
	defer s.memory.sent(sending)
	for len(s.rest) > 0 {
		if err := s.conn.SetWriteDeadline(time.Now().Add(stallTimeout)); err != nil {
			return sent, err
		}
		n, err := w.Write(s.rest[:min(writeChunk, len(s.rest))])
		sent += int64(n)
		s.rest = s.rest[n:]
		if err != nil {
			return sent, err
		}
		sending.moved()
	}
	return sent, nil
}

// Read implements io.Reader for fasthttp, which prefers WriteTo.
func (s *chunkSender) Read(p []byte) (int, error) {
	if len(s.rest) == 0 {
		return 0, io.EOF
	}
	n := copy(p, s.rest)
	s.rest = s.rest[n:]
	return n, nil
}
