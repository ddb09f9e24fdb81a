package rpc

import (
	"crypto/rand"
	"encoding/hex"
	"slices"

	"github.com/ethereum/go-ethereum/common"

	"github.com/leani-go/leani/api/jsonrpc"
	"github.com/leani-go/leani/chain"
)

// socketMethodTable is what is served over WebSocket besides methodTable.
func socketMethodTable() map[string]method {
	return map[string]method{jsonrpc.Subscribe: subscribe, jsonrpc.Unsubscribe: unsubscribe}
}

// Kinds of subscriptions.
const (
	kindNewHeads = "newHeads"
	kindLogs     = "logs"
)

// subscription is what a client wants to be told. It does not change.
type subscription struct {
	id string
	// opening is a notification up to its result, notificationEnd what follows.
	opening []byte
	// heads tells new heads from logs, which filter selects.
	heads  bool
	filter chain.LogFilter
	bytes  int // of the filter
}

const notificationEnd = "}}"

// newSubscription gives a subscription an id that cannot be guessed.
func newSubscription() *subscription {
	var random [16]byte
	_, _ = rand.Read(random[:]) // does not fail
	s := &subscription{id: "0x" + hex.EncodeToString(random[:])}
	s.opening = []byte(`{"jsonrpc":"2.0","method":"` + jsonrpc.Subscription + `","params":{"subscription":"` + s.id + `","result":`)
	return s
}

// subscribe answers eth_subscribe. The subscription starts when the answer is queued, so that no notification
// comes before it.
func subscribe(c *call) error {
	kind, p, err := readKind(c.params)
	if err != nil {
		return err
	}
	s := newSubscription()
	switch kind {
	case kindNewHeads:
		if p != nil {
			return jsonrpc.InvalidParams("newHeads has no further parameter")
		}
		s.heads = true
	case kindLogs:
		if err := s.readFilter(p, &c.limits); err != nil {
			return err
		}
	default:
		return jsonrpc.Unavailable(jsonrpc.ReasonSubscriptionKind)
	}
	if !c.hub.live() {
		return jsonrpc.Unavailable(jsonrpc.ReasonLiveDisconnected)
	}
	if len(c.out.buf)+len(s.id)+len(`""`) > c.out.limit {
		return errOversize
	}
	if err := c.socket.admit(s); err != nil {
		return err
	}
	return c.text(s.id)
}

// readKind reads the parameters of eth_subscribe: a kind, and one more value or none.
func readKind(params value) (kind string, rest value, err error) {
	if params == nil || params.kind() != '[' {
		return "", nil, jsonrpc.InvalidParams("parameters have to be an array")
	}
	elements := params.elements()
	first, ok := elements.next()
	if !ok {
		return "", nil, jsonrpc.InvalidParams("the kind of subscription is missing")
	}
	text, ok := first.text()
	if !ok {
		return "", nil, jsonrpc.InvalidParams("the kind of subscription has to be a string")
	}
	rest, ok = elements.next()
	if _, more := elements.next(); ok && more {
		return "", nil, jsonrpc.InvalidParams("a subscription has at most two parameters")
	}
	return string(text), rest, nil
}

// readFilter reads the filter of a log subscription; without one all logs are selected. The bounds that client
// libraries add without being asked are let pass: from the first block or a tag, to the latest. Others would
// promise a selection by block that subscriptions do not make.
func (s *subscription) readFilter(v value, limits *Limits) error {
	if !present(v) {
		return nil
	}
	query, err := readLogQuery(v, limits, &s.filter)
	switch {
	case err != nil:
		return err
	case query.byHash:
		return jsonrpc.InvalidParams("a log subscription has no blockHash")
	case query.from.tag == tagNone && query.from.number != 0:
		return jsonrpc.InvalidParams("a log subscription begins with the next block: no fromBlock")
	case query.to.tag != tagLatest && query.to.tag != tagPending:
		return jsonrpc.InvalidParams("a log subscription has no end: no toBlock")
	}
	f := &s.filter
	f.Addresses = slices.Clip(f.Addresses)
	s.bytes = len(f.Addresses) * common.AddressLength
	for i := range f.Topics {
		f.Topics[i] = slices.Clip(f.Topics[i])
		s.bytes += len(f.Topics[i]) * common.HashLength
	}
	return nil
}

// unsubscribe answers eth_unsubscribe.
func unsubscribe(c *call) error {
	p, err := readPositions(c.params, 1)
	if err != nil {
		return err
	}
	id, ok := p[0].text()
	if !ok {
		return jsonrpc.InvalidParams("the subscription has to be a string")
	}
	answer := "false"
	if c.socket.remove(string(id)) {
		answer = "true"
	}
	c.out.buf = append(c.out.buf, answer...)
	return nil
}
