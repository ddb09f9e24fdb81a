// Package jsonrpc is the wire vocabulary of the Ethereum JSON-RPC surface: the protocol
// version, method names, error codes, the reasons that errors carry, and the error object with
// its encoder. docs/rpc.md is the prose that goes with it.
//
// It holds no transport, no parser and no method: serve/rpc does. Nothing here depends on how
// answers are produced, so that a client or a test can import it alone.
//
// A code, a message of a standard code and a reason never change once released. All values are
// immutable after they are made and safe for concurrent use.
package jsonrpc
