package rpc

import (
	"context"
	"errors"

	"github.com/leani-go/leani/api/jsonrpc"
	"github.com/leani-go/leani/chain"
	"github.com/leani-go/leani/internal/corrupt"
)

// Details of -32603. They tell the client whether to try again and nothing about the machine.
const (
	detailStore    = "the store could not answer; the node's log has the cause"
	detailCorrupt  = "stored data is damaged; the node's log says where"
	detailBug      = "the method failed; the node's log has the cause"
	detailShutdown = "the node is shutting down"
	detailGone     = "the client closed its side of the connection before it had the answer"
)

// errGone says that nobody waits for the answer, as far as that can be seen.
var errGone = errors.New("the client is gone")

// errorRule maps the errors that match to what the client gets.
type errorRule struct {
	matches func(error) bool
	answer  func(err error, s *service) *jsonrpc.Error
	// logged marks failures of the node, which are logged in full.
	logged bool
}

// errorRules is the one table from errors of the store, of the chain schedules and of the
// server itself to errors of the wire. The first rule that matches wins. An error that is
// already a *jsonrpc.Error passes as it is.
var errorRules = []errorRule{
	{matches: as[*panicError], answer: internal(detailBug, true), logged: true},
	{matches: as[*HistoryError], answer: historyFailed},
	{matches: as[*HistoryRejection], answer: historyRejected},
	{matches: as[*HistoryBusyError], answer: historyBusy},
	{matches: is(errGone), answer: internal(detailGone, true)},
	{matches: is(errLaneClosed), answer: internal(detailShutdown, true)},
	{matches: is(context.Canceled), answer: internal(detailShutdown, true)},
	{matches: is(context.DeadlineExceeded), answer: timedOut},
	{matches: as[*oversizeError], answer: oversize},
	{matches: is(errLaneFull), answer: laneBusy},
	{matches: is(chain.ErrNotRetained), answer: unavailable(jsonrpc.ReasonBlockNotRetained)},
	{matches: is(chain.ErrBlobScheduleUnavailable), answer: unavailable(jsonrpc.ReasonBlobSchedule)},
	{matches: is(chain.ErrExcessBlobGasMissing), answer: unavailable(jsonrpc.ReasonBlobExcess)},
	{matches: is(chain.ErrQuantityExceedsU128), answer: unavailable(jsonrpc.ReasonQuantityU128)},
	{matches: is(chain.ErrScheduleUnavailable), answer: unavailable(jsonrpc.ReasonConfigChain)},
	{matches: is(chain.ErrPredatesSchedule), answer: unavailable(jsonrpc.ReasonConfigPredates)},
	{matches: corrupt.Is, answer: internal(detailCorrupt, false), logged: true},
	{matches: func(error) bool { return true }, answer: internal(detailStore, true), logged: true},
}

// wireError is what the client gets for an error of a method. Failures of the node are logged
// here, and only here.
func (s *service) wireError(err error, method string) *jsonrpc.Error {
	var wire *jsonrpc.Error
	if errors.As(err, &wire) {
		return wire
	}
	for _, rule := range errorRules {
		if !rule.matches(err) {
			continue
		}
		if rule.logged {
			s.logFailure(err, method)
		}
		return rule.answer(err, s)
	}
	panic("unreachable: the last rule matches every error")
}

func (s *service) logFailure(err error, method string) {
	s.failures.Add(1)
	var p *panicError
	if errors.As(err, &p) {
		s.log.Error("panic in a JSON-RPC method", "method", method, "panic", p.value, "stack", string(p.stack))
		return
	}
	s.log.Error("JSON-RPC method failed", "method", method, "error", err)
}

func is(target error) func(error) bool {
	return func(err error) bool { return errors.Is(err, target) }
}

func as[T error](err error) bool {
	var target T
	return errors.As(err, &target)
}

func unavailable(reason string) func(error, *service) *jsonrpc.Error {
	return func(error, *service) *jsonrpc.Error { return jsonrpc.Unavailable(reason) }
}

func internal(detail string, retryable bool) func(error, *service) *jsonrpc.Error {
	return func(error, *service) *jsonrpc.Error { return jsonrpc.Internal(detail, retryable) }
}

// oversizeError says that a result does not fit in the response. For a log query it may carry
// the blocks whose logs do.
type oversizeError struct {
	fitting chain.Range
}

func (e *oversizeError) Error() string { return "result does not fit in the response" }

// errOversize is the oversizeError without a proposal.
var errOversize = &oversizeError{}

func oversize(err error, s *service) *jsonrpc.Error {
	limit := uint64(s.limits.MaxResponseBytes)
	var e *oversizeError
	if errors.As(err, &e) && !e.fitting.Empty() {
		return jsonrpc.LogsTooLarge(limit, e.fitting.From, e.fitting.To-1)
	}
	return jsonrpc.ResponseTooLarge(limit)
}

// timedOut uses go-ethereum's words, by which indexers know an error that is worth another try.
func timedOut(_ error, s *service) *jsonrpc.Error {
	return jsonrpc.LimitExceeded("request timed out", jsonrpc.ReasonTime, uint64(s.limits.RequestTime.Milliseconds()))
}

func laneBusy(_ error, s *service) *jsonrpc.Error {
	return jsonrpc.Busy("too many heavy queries at once", uint64(s.limits.LaneQueue))
}

func historyFailed(err error, _ *service) *jsonrpc.Error {
	var e *HistoryError
	errors.As(err, &e)
	return jsonrpc.UnavailableHistory(e.Reason)
}

func historyRejected(err error, _ *service) *jsonrpc.Error {
	var e *HistoryRejection
	errors.As(err, &e)
	return jsonrpc.UnavailableHistory(e.Reason)
}

func historyBusy(err error, _ *service) *jsonrpc.Error {
	var e *HistoryBusyError
	errors.As(err, &e)
	return jsonrpc.Busy("too many calls need history on demand at once", e.Limit)
}
