package rpc

import (
	"github.com/leani-go/leani/api/jsonrpc"
)

// request is one call as it stands in the body, which it aliases.
type request struct {
	id     value  // absent (nil) makes the call a notification
	method []byte // decoded
	params value  // absent: nil
	// fault is set for what is no call, or a call that cannot be run as it is.
	fault *jsonrpc.Error
}

// nullID is the id of answers to calls whose own id is missing or unusable.
var nullID = value("null")

// answered tells whether the response holds an answer to the call: all but notifications do.
func (r *request) answered() bool { return r.id != nil }

// decodeRequest reads one call out of a checked text. It does not fail: what is wrong with the
// call becomes its fault.
//
// A call without id is a notification and is never answered, not even when its version or its
// parameters are wrong. An object without id and without method is no call, and is answered
// with a null id like anything else that is none.
func decodeRequest(v value) request {
	if v.kind() != '{' {
		return request{id: nullID, fault: jsonrpc.InvalidRequest("a call has to be an object")}
	}
	var (
		r        request
		version  value
		method   value
		repeated bool
	)
	once := func(field *value, v value) {
		repeated = repeated || *field != nil
		*field = v
	}
	for m := v.members(); ; {
		name, member, ok := m.next()
		if !ok {
			break
		}
		switch {
		case name.is("jsonrpc"):
			once(&version, member)
		case name.is("id"):
			once(&r.id, member)
		case name.is("method"):
			once(&method, member)
		case name.is("params"):
			once(&r.params, member)
		}
	}

	isMethod := false
	if method != nil {
		r.method, isMethod = method.text()
	}
	badID := r.id != nil && r.id.kind() != '"' && !r.id.isNumber() && !r.id.isNull()
	switch {
	case badID:
		r.fault = jsonrpc.InvalidRequest("an id has to be a string, a number or null")
	case repeated:
		r.fault = jsonrpc.InvalidRequest("a member stands twice")
	case version == nil || !version.is(jsonrpc.Version):
		r.fault = jsonrpc.InvalidRequest(`"jsonrpc" has to be "2.0"`)
	case !isMethod:
		r.fault = jsonrpc.InvalidRequest(`"method" has to be a string`)
	case r.params != nil && r.params.kind() != '[' && r.params.kind() != '{' && !r.params.isNull():
		r.fault = jsonrpc.InvalidRequest(`"params" has to be an array`)
	}
	// An id that stands twice is not known, whichever of the two is taken.
	if badID || r.id != nil && repeated || r.id == nil && !isMethod {
		r.id = nullID
	}
	return r
}
