package rpc

import (
	"context"
	"errors"
	"net"
	"sync/atomic"
	"time"

	"github.com/leani-go/leani/api/jsonrpc"
)

// exchange is one request of the transport and its response: a body in, a body out. From open to
// release it belongs to the goroutine that serves the request; then it can be used again.
type exchange struct {
	service *service
	base    context.Context // the server's or the socket's; ends at a forced shutdown
	socket  *socket         // nil over HTTP
	conn    net.Conn        // of the request, nil over WebSocket
	last    bool            // the client has said that no request will follow
	gone    atomic.Bool     // the client was seen to have gone

	body     []byte
	requests []request // of a batch; they alias body
	out      response
	origin   provenance // of all answers
	call     call

	ctx     context.Context // nil until context is called
	cancel  context.CancelFunc
	unwatch func() // ends watching the connection; nil until extend is called
}

// open readies a new or released exchange for a request.
func (x *exchange) open(s *service, base context.Context) {
	x.service, x.base, x.out.memory = s, base, s.memory
	if x.call.context == nil {
		x.call.context, x.call.extend, x.call.encode = x.context, x.extend, s.newEncoder()
	}
	if x.out.buf == nil {
		x.out.buf = s.memory.get(smallBuffer)
	}
}

// release ends the request. Its body and response are gone with it, and the exchange can be
// opened again.
func (x *exchange) release() {
	x.out.close()
	x.call.reset()
	clear(x.requests)
	x.requests = x.requests[:0]
	if cap(x.body) > unmeteredBytes+1 {
		x.body = nil
	}
	x.body = x.body[:0]
	x.origin = provenance{}
	x.service, x.base, x.socket, x.conn, x.last = nil, nil, nil, nil, false
	x.gone.Store(false)
}

// context bounds the work on the request. It is made when first needed: most calls to the
// node's metadata never do.
func (x *exchange) context() context.Context {
	if x.ctx == nil {
		x.ctx, x.cancel = context.WithTimeout(x.base, x.service.limits.RequestTime)
	}
	return x.ctx
}

// extend gives the request, once, as much time from now on, if that is more than it has. From then on its context also ends
// when its client is seen to have gone: what takes long must not be done for nobody.
func (x *exchange) extend(d time.Duration) {
	if x.unwatch != nil {
		return
	}
	before := x.context()
	if deadline, _ := before.Deadline(); time.Until(deadline) < d && before.Err() == nil {
		ctx, cancel := context.WithTimeout(x.base, d)
		release := x.cancel
		x.ctx, x.cancel = ctx, func() { cancel(); release() }
	}
	x.unwatch = func() {}
	if x.conn != nil {
		cancel := x.cancel
		x.unwatch = watchPeer(x.conn, x.last, func() {
			x.gone.Store(true)
			cancel()
		})
	}
}

// run answers the body. An empty response means that there is nothing to answer.
func (x *exchange) run() {
	defer func() {
		if x.unwatch != nil {
			x.unwatch()
			x.unwatch = nil
		}
		if x.ctx != nil {
			x.cancel()
			x.ctx, x.cancel = nil, nil
		}
		x.out.finish()
	}()
	v, err := checkJSON(x.body)
	switch {
	case err != nil:
		x.refuse(jsonrpc.ParseError(err.Error()))
	case v.kind() == '[':
		x.runBatch(v)
	default:
		x.runSingle(v)
	}
}

// refuse answers the request as a whole with one error.
func (x *exchange) refuse(e *jsonrpc.Error) {
	x.out.buf = appendError(x.out.buf[:0], nullID, e)
}

func (x *exchange) runSingle(v value) {
	r := decodeRequest(v)
	x.answer(&r, x.service.limits.MaxResponseBytes)
}

// runBatch answers the calls of a batch in order. The response stays within its limit: while a
// call runs, room is set aside for refusing all calls behind it. (Only where the limit is so
// small that refusals would take more than half of it may they pass it: else no call would run.)
// After the first call whose answer does not fit none runs any more, but notifications do.
func (x *exchange) runBatch(v value) {
	limits := &x.service.limits
	count := 0
	for elements := v.elements(); ; count++ {
		if _, ok := elements.next(); !ok {
			break
		}
		if count == limits.MaxBatchRequests {
			x.refuse(jsonrpc.InvalidRequest("the batch has too many calls"))
			return
		}
	}
	if count == 0 {
		x.refuse(jsonrpc.InvalidRequest("the batch is empty"))
		return
	}

	tooLarge := x.service.wireError(errOversize, "")
	refusal := len(appendError(nil, nil, tooLarge)) + len(",")
	aside := 0
	for elements := v.elements(); ; {
		element, ok := elements.next()
		if !ok {
			break
		}
		r := decodeRequest(element)
		x.requests = append(x.requests, r)
		if r.answered() {
			aside += refusal + len(r.id)
		}
	}

	full := false
	x.out.buf = append(x.out.buf, '[')
	for i := range x.requests {
		r := &x.requests[i]
		if !r.answered() {
			x.answer(r, limits.MaxResponseBytes)
			continue
		}
		aside -= refusal + len(r.id)
		if len(x.out.buf) > len("[") {
			x.out.buf = append(x.out.buf, ',')
		}
		if full {
			x.out.buf = appendError(x.out.buf, r.id, tooLarge)
			continue
		}
		full = !x.answer(r, limits.MaxResponseBytes-min(aside, limits.MaxResponseBytes/2)-len("]"))
	}
	if len(x.out.buf) == len("[") {
		x.out.buf = x.out.buf[:0]
		return
	}
	x.out.buf = append(x.out.buf, ']')
}

// answer runs one call and appends its answer, if it gets one, so that the response stays
// within limit bytes. It returns false when the answer did not fit and was replaced by an error
// that says so.
func (x *exchange) answer(r *request, limit int) (fits bool) {
	out := &x.out
	start := len(out.buf)
	var err error
	if r.fault != nil {
		err = r.fault
	} else {
		out.buf = appendHead(out.buf, r.id)
		out.buf = append(out.buf, `,"result":`...)
		out.limit = limit - len("}")
		err = x.service.run(x, r)
	}
	if x.gone.Load() && errors.Is(err, context.Canceled) {
		err = errGone
	}
	if !r.answered() {
		out.buf = out.buf[:start]
		return true
	}
	if err == nil {
		out.buf = append(out.buf, '}')
	} else {
		out.buf = appendError(out.buf[:start], r.id, x.service.wireError(err, string(r.method)))
	}
	if len(out.buf) > limit {
		out.buf = appendError(out.buf[:start], r.id, x.service.wireError(errOversize, ""))
		return false
	}
	if err != nil {
		return !as[*oversizeError](err)
	}
	x.origin.add(x.call.origin)
	return true
}
