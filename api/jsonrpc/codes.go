package jsonrpc

// Version is the only value of the "jsonrpc" member (JSON-RPC 2.0, section 4).
const Version = "2.0"

// Profile names the set of methods this node implements; leani_getCapabilities reports it.
const Profile = "leani-evm-free-v1"

// Service is what a GET request of the endpoint is answered with.
const Service = `{"service":"leani-json-rpc","jsonrpc":"2.0"}`

// HeaderAnswer is the HTTP response header that says where the answers come from.
const HeaderAnswer = "leani-answer"

// Error codes. The first five are JSON-RPC 2.0, section 5.1. The custom range of that section,
// -32000 to -32099, holds the other three; EIP-1474 knows them as "invalid input", "method not supported" and
// "limit exceeded", so that clients treat them sensibly.
const (
	CodeParse          = -32700 // the body is no UTF-8 JSON text
	CodeInvalidRequest = -32600 // JSON, but no call
	CodeMethodNotFound = -32601 // the method is unknown or not served
	CodeInvalidParams  = -32602 // missing, surplus or mistyped parameters
	CodeInternal       = -32603 // the node failed; the cause is in its log
	CodeInvalidInput   = -32000 // a filter is not installed; client libraries install it anew
	CodeUnavailable    = -32004 // material or a capability is not there; data.reason says which
	CodeLimitExceeded  = -32005 // a limit was passed
)

// Messages of the codes that always carry the same one. What is wrong in particular stands in
// the error's data.
const (
	MessageParse          = "Parse error"
	MessageInvalidRequest = "Invalid Request"
	MessageMethodNotFound = "Method not found"
	MessageInvalidParams  = "Invalid params"
	MessageInternal       = "Internal error"
	MessageUnavailable    = "Data unavailable"
	MessageFilterNotFound = "filter not found"
)

// MessageBeyondHead is the message of the -32602 that a log query gets whose blocks lie beyond
// the head; ethereum/execution-apis fixes the text.
const MessageBeyondHead = "block range extends beyond current head block"
