package jsonrpc

import (
	"fmt"
	"strconv"
)

// Error is the error object of a response. It is immutable once made.
type Error struct {
	Code    int
	Message string
	// Data is the encoded JSON of the data member; nil leaves the member out.
	Data []byte
}

// Error writes code, message and data for logs and tests.
func (e *Error) Error() string {
	if e.Data == nil {
		return fmt.Sprintf("%d %s", e.Code, e.Message)
	}
	return fmt.Sprintf("%d %s %s", e.Code, e.Message, e.Data)
}

// AppendJSON appends the error object.
func (e *Error) AppendJSON(dst []byte) []byte {
	dst = append(dst, `{"code":`...)
	dst = strconv.AppendInt(dst, int64(e.Code), 10)
	dst = append(dst, `,"message":`...)
	dst = AppendString(dst, e.Message)
	if e.Data != nil {
		dst = append(dst, `,"data":`...)
		dst = append(dst, e.Data...)
	}
	return append(dst, '}')
}

// ParseError answers a body that is no UTF-8 JSON text.
func ParseError(detail string) *Error {
	return &Error{Code: CodeParse, Message: MessageParse, Data: detailData(detail)}
}

// InvalidRequest answers what is no call. The optional detail is added to the message, because
// this code carries no data.
func InvalidRequest(detail string) *Error {
	if detail == "" {
		return &Error{Code: CodeInvalidRequest, Message: MessageInvalidRequest}
	}
	return &Error{Code: CodeInvalidRequest, Message: MessageInvalidRequest + ": " + detail}
}

// MethodNotFound answers an unknown or unsupported method.
func MethodNotFound() *Error {
	return &Error{Code: CodeMethodNotFound, Message: MessageMethodNotFound}
}

// InvalidParams answers parameters that the method does not take.
func InvalidParams(detail string) *Error {
	return &Error{Code: CodeInvalidParams, Message: MessageInvalidParams, Data: detailData(detail)}
}

// BeyondHead answers a log query one of whose bounds lies above the head.
func BeyondHead(bound string, number, head uint64) *Error {
	return &Error{
		Code:    CodeInvalidParams,
		Message: MessageBeyondHead,
		Data:    detailData(fmt.Sprintf("%s %#x is above the head %#x", bound, number, head)),
	}
}

// Internal answers a failure of the node. The detail is for everybody to read: no paths, no
// store errors.
func Internal(detail string, retryable bool) *Error {
	data := append([]byte(`{"retryable":`), strconv.FormatBool(retryable)...)
	data = append(data, `,"detail":`...)
	return &Error{Code: CodeInternal, Message: MessageInternal, Data: append(AppendString(data, detail), '}')}
}

// Unavailable answers a call whose material or capability is not there.
func Unavailable(reason string) *Error {
	return &Error{Code: CodeUnavailable, Message: MessageUnavailable, Data: append(unavailableData(reason), '}')}
}

// UnavailableHistory answers a call for which history on demand was asked and failed. It says whether trying again
// may help, which depends on the reason alone.
func UnavailableHistory(reason string) *Error {
	retryable := reason == ReasonHistoryFailed || reason == ReasonHistoryTime
	data := append([]byte(`{"reason":"`), reason...)
	data = strconv.AppendBool(append(data, `","retryable":`...), retryable)
	return &Error{Code: CodeUnavailable, Message: MessageUnavailable, Data: append(data, '}')}
}

// UnavailableMethod is Unavailable for a method that is refused as a whole; it names the method.
func UnavailableMethod(reason, method string) *Error {
	data := append(unavailableData(reason), `,"method":`...)
	return &Error{Code: CodeUnavailable, Message: MessageUnavailable, Data: append(AppendString(data, method), '}')}
}

// UnavailableLogs answers a log query that needs blocks the node does not hold; first and last
// bound the first missing run.
func UnavailableLogs(first, last uint64) *Error {
	data := append(unavailableData(ReasonLogRange), `,"missing":`...)
	data = append(appendBounds(data, "fromBlock", first, "toBlock", last), "}}"...)
	return &Error{Code: CodeUnavailable, Message: MessageUnavailable, Data: data}
}

// UnavailableHistoryRange answers a log query of which history on demand takes too many blocks: more than the limit are missing.
// It proposes the blocks from first to last, of which no more are, as TooManyLogs does for too many logs.
func UnavailableHistoryRange(limit, first, last uint64) *Error {
	data := append(unavailableData(ReasonHistoryRange), ',')
	data = append(appendMembers(data, "from", first, "to", last), `,"limit":`...)
	return &Error{Code: CodeUnavailable, Message: MessageUnavailable, Data: append(strconv.AppendUint(data, limit, 10), '}')}
}

// NoHistorySourceForLogs answers a log query that needs blocks which neither the node nor a history source holds; first and last
// bound the first run that the node misses.
func NoHistorySourceForLogs(first, last uint64) *Error {
	data := append(unavailableData(ReasonNoHistorySource), `,"missing":`...)
	data = append(appendBounds(data, "fromBlock", first, "toBlock", last), "}}"...)
	return &Error{Code: CodeUnavailable, Message: MessageUnavailable, Data: data}
}

// FilterNotFound answers a poll of a filter that was never installed, was uninstalled or expired, with code and
// text of go-ethereum.
func FilterNotFound() *Error {
	return &Error{Code: CodeInvalidInput, Message: MessageFilterNotFound}
}

// LimitExceeded answers a call that passed a limit.
func LimitExceeded(message, reason string, limit uint64) *Error {
	data := append([]byte(`{"reason":`), '"')
	data = append(data, reason...)
	data = append(data, `","limit":`...)
	data = strconv.AppendUint(data, limit, 10)
	return &Error{Code: CodeLimitExceeded, Message: message, Data: append(data, '}')}
}

// Busy answers a call for which there is no place now: what there is too much of, and how many places there are. The
// message has words by which clients know an error that is worth another try.
func Busy(tooMuch string, limit uint64) *Error {
	return LimitExceeded("rate limited: "+tooMuch, ReasonBusy, limit)
}

// TooManyLogs answers a log query with more results than the limit, and proposes the blocks
// from first to last, which stay within it.
func TooManyLogs(limit, first, last uint64) *Error {
	return &Error{
		Code:    CodeLimitExceeded,
		Message: tooManyLogs(limit) + tryRange(first, last),
		Data:    hintData(nil, limit, first, last),
	}
}

// TooManyLogsInBlock is TooManyLogs where the first block alone passes the limit, so that no
// smaller range helps.
func TooManyLogsInBlock(limit uint64) *Error {
	return LimitExceeded(tooManyLogs(limit), ReasonLogResults, limit)
}

// ResponseTooLarge answers a call whose result does not fit in the response.
func ResponseTooLarge(limit uint64) *Error {
	return LimitExceeded(responseTooLarge(limit), ReasonResponseSize, limit)
}

// LogsTooLarge is ResponseTooLarge for a log query, with the proposal of TooManyLogs.
func LogsTooLarge(limit, first, last uint64) *Error {
	reason := append([]byte(`"reason":"`), ReasonResponseSize...)
	return &Error{
		Code:    CodeLimitExceeded,
		Message: responseTooLarge(limit) + tryRange(first, last),
		Data:    hintData(append(reason, `",`...), limit, first, last),
	}
}

func tooManyLogs(limit uint64) string {
	return fmt.Sprintf("query returned more than %d results.", limit)
}

func responseTooLarge(limit uint64) string {
	return fmt.Sprintf("response is larger than %d bytes.", limit)
}

// tryRange is the sentence that client libraries look for in order to split their query.
func tryRange(first, last uint64) string {
	return fmt.Sprintf(" Try with this block range [%#x, %#x].", first, last)
}

// hintData encodes a proposed range and the limit behind the given members.
func hintData(members []byte, limit, first, last uint64) []byte {
	data := append([]byte{'{'}, members...)
	data = append(appendMembers(data, "from", first, "to", last), `,"limit":`...)
	return append(strconv.AppendUint(data, limit, 10), '}')
}

func unavailableData(reason string) []byte {
	data := append([]byte(`{"reason":"`), reason...)
	return append(data, `","retryable":false`...)
}

func detailData(detail string) []byte {
	return append(AppendString([]byte(`{"detail":`), detail), '}')
}

// appendBounds opens an object and appends two block numbers as its members.
func appendBounds(dst []byte, from string, first uint64, to string, last uint64) []byte {
	return appendMembers(append(dst, '{'), from, first, to, last)
}

func appendMembers(dst []byte, from string, first uint64, to string, last uint64) []byte {
	return fmt.Appendf(dst, `"%s":"%#x","%s":"%#x"`, from, first, to, last)
}
