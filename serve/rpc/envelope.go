package rpc

import "github.com/leani-go/leani/api/jsonrpc"

// appendHead opens a response object with its version and id.
func appendHead(dst []byte, id value) []byte {
	dst = append(dst, `{"jsonrpc":"2.0","id":`...)
	return append(dst, id...)
}

// appendError appends a whole response object with an error.
func appendError(dst []byte, id value, e *jsonrpc.Error) []byte {
	dst = append(appendHead(dst, id), `,"error":`...)
	return append(e.AppendJSON(dst), '}')
}
