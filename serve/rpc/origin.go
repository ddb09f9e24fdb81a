package rpc

import "bytes"

// originRule decides which web pages may call. Browsers send Origin with every request that
// could come from another site; a request without one is no page's doing and passes.
//
// There is no rule for Host: a page that rebinds its own name to this machine still sends that
// name as its origin, and is refused for it.
type originRule struct {
	allowed map[string]struct{}
}

func newOriginRule(allowed []string) originRule {
	rule := originRule{allowed: make(map[string]struct{}, len(allowed))}
	for _, origin := range allowed {
		rule.allowed[origin] = struct{}{}
	}
	return rule
}

// allows tells whether a page of this origin may call.
func (r originRule) allows(origin []byte) bool {
	if _, ok := r.allowed[string(origin)]; ok {
		return true
	}
	return isLoopbackOrigin(origin)
}

// isLoopbackOrigin accepts http and https on localhost, 127.0.0.1 and [::1] with any port.
func isLoopbackOrigin(origin []byte) bool {
	host, ok := bytes.CutPrefix(origin, []byte("http://"))
	if !ok {
		host, ok = bytes.CutPrefix(origin, []byte("https://"))
	}
	if !ok {
		return false
	}
	for _, name := range [...]string{"localhost", "127.0.0.1", "[::1]"} {
		if port, ok := bytes.CutPrefix(host, []byte(name)); ok && isPort(port) {
			return true
		}
	}
	return false
}

// isPort accepts nothing, or a colon with one to five digits behind it.
func isPort(text []byte) bool {
	if len(text) == 0 {
		return true
	}
	if text[0] != ':' || len(text) < 2 || len(text) > 6 {
		return false
	}
	return skipDigits(text, 1) == len(text)
}
