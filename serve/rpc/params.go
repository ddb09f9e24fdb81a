package rpc

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/ethereum/go-ethereum/common"

	"github.com/leani-go/leani/api/jsonrpc"
	"github.com/leani-go/leani/chain"
	"github.com/leani-go/leani/internal/hexenc"
)

// maxPositions is the most parameters that any served method takes.
const maxPositions = 3

// positions are the parameters of a call by position.
type positions [maxPositions]value

// readPositions reads exactly n parameters. For no parameters the member may also be absent,
// null or an empty object.
func readPositions(params value, n int) (positions, error) { return readBetween(params, n, n) }

// readOne reads the only parameter, which is called so in errors.
func readOne[T any](params value, read func(value, string) (T, error), name string) (only T, err error) {
	p, err := readPositions(params, 1)
	if err != nil {
		return only, err
	}
	return read(p[0], name)
}

// readTwo reads the two parameters that there are.
func readTwo[T, U any](params value, readFirst func(value, string) (T, error), firstName string,
	readSecond func(value, string) (U, error), secondName string) (first T, second U, err error) {
	p, err := readPositions(params, 2)
	if err != nil {
		return first, second, err
	}
	if first, err = readFirst(p[0], firstName); err != nil {
		return first, second, err
	}
	second, err = readSecond(p[1], secondName)
	return first, second, err
}

// readBetween reads at least and at most so many parameters; those that are absent are nil.
func readBetween(params value, least, most int) (positions, error) {
	var (
		p     positions
		count int
	)
	switch {
	case params == nil || params.isNull():
	case params.kind() == '{':
		members := params.members()
		if _, _, any := members.next(); any {
			return p, jsonrpc.InvalidParams("parameters have to be an array")
		}
	default:
		for elements := params.elements(); ; count++ {
			element, ok := elements.next()
			if !ok {
				break
			}
			if count < most {
				p[count] = element
			}
		}
	}
	if count < least || count > most {
		want := strconv.Itoa(least)
		if least < most {
			want = fmt.Sprintf("%d to %d", least, most)
		}
		return p, jsonrpc.InvalidParams(fmt.Sprintf("got %d parameters, want %s", count, want))
	}
	return p, nil
}

// tag is a block named by its place in the chain instead of its number.
type tag uint8

const (
	tagNone tag = iota // the number counts
	tagLatest
	tagFinalized
	tagSafe
	tagPending
)

// selector is a block number or a tag. "earliest" is the number 0.
type selector struct {
	tag    tag
	number uint64
}

// readSelector reads a block number or tag. The name says what it is in errors.
func readSelector(v value, name string) (selector, error) {
	text, ok := v.text()
	if !ok {
		return selector{}, jsonrpc.InvalidParams(name + " has to be a string: a quantity or a tag")
	}
	switch string(text) {
	case "latest":
		return selector{tag: tagLatest}, nil
	case "finalized":
		return selector{tag: tagFinalized}, nil
	case "safe":
		return selector{tag: tagSafe}, nil
	case "earliest":
		return selector{}, nil
	case "pending":
		return selector{tag: tagPending}, nil
	}
	number, err := hexenc.ParseQuantity(text)
	if err != nil {
		return selector{}, invalid(name+" is neither a tag nor a quantity", err)
	}
	return selector{number: number}, nil
}

// readQuantity reads a QUANTITY, which has to be a string.
func readQuantity(v value, name string) (uint64, error) {
	text, ok := v.text()
	if !ok {
		return 0, jsonrpc.InvalidParams(name + " has to be a string: a quantity")
	}
	number, err := hexenc.ParseQuantity(text)
	if err != nil {
		return 0, invalid(name, err)
	}
	return number, nil
}

// readCount reads a QUANTITY, or a decimal number in a string or without one, as go-ethereum does where parameters are of its type
// HexOrDecimal64. Fractions, exponents, signs and leading zeros are refused.
func readCount(v value, name string) (uint64, error) {
	digits, ok := v.text()
	if !ok {
		digits = v
	}
	if len(digits) > 1 && digits[0] == '0' && (digits[1] == 'x' || digits[1] == 'X') {
		return readQuantity(v, name)
	}
	number, err := strconv.ParseUint(string(digits[:min(len(digits), 32)]), 10, 64)
	if err != nil || len(digits) > 1 && digits[0] == '0' {
		return 0, jsonrpc.InvalidParams(name + " has to be a quantity or a whole decimal number")
	}
	return number, nil
}

// readHash reads a 32-byte hash.
func readHash(v value, name string) (common.Hash, error) {
	text, ok := v.text()
	if !ok {
		return common.Hash{}, jsonrpc.InvalidParams(name + " has to be a string: 32 bytes of hex")
	}
	hash, err := hexenc.ParseHash(text)
	if err != nil {
		return common.Hash{}, invalid(name, err)
	}
	return hash, nil
}

// readBool reads true or false.
func readBool(v value, name string) (bool, error) {
	switch v.kind() {
	case 't':
		return true, nil
	case 'f':
		return false, nil
	}
	return false, jsonrpc.InvalidParams(name + " has to be a boolean")
}

// hashTextLength is the length of a 32-byte hash as text. Where a method takes hashes and
// numbers alike, this is what tells them apart: no quantity is that long.
const hashTextLength = 2 + 2*common.HashLength

// isHashText tells whether the value is a string of the length of a hash.
func isHashText(v value) bool {
	text, ok := v.text()
	return ok && len(text) == hashTextLength
}

// readBlockName reads the object of EIP-1898 that names a block by hash or by number, and gives that. Its
// requireCanonical makes no difference: there are no other blocks here.
func readBlockName(v value) (name value, byHash bool, err error) {
	var hash, number value
	repeated := false
	for members := v.members(); ; {
		name, member, ok := members.next()
		if !ok {
			break
		}
		switch {
		case name.is("blockHash"):
			repeated = repeated || hash != nil
			hash = member
		case name.is("blockNumber"):
			repeated = repeated || number != nil
			number = member
		}
	}
	switch byHash = present(hash); {
	case repeated:
		return nil, false, jsonrpc.InvalidParams("a member of the block stands twice")
	case byHash == present(number):
		return nil, false, jsonrpc.InvalidParams("a block that is an object has to have either blockHash or blockNumber")
	case byHash:
		return hash, true, nil
	}
	return number, false, nil
}

// invalid says what is wrong with a named parameter. The text of the parameter is not repeated:
// the client knows it, and it may be long.
func invalid(name string, err error) error {
	return jsonrpc.InvalidParams(name + ": " + err.Error())
}

// logQuery is the parameter of eth_getLogs.
type logQuery struct {
	// byHash selects the one block with this hash. Otherwise the bounds count, both inclusive.
	byHash   bool
	hash     common.Hash
	from, to selector
}

// readLogQuery reads a filter object. Addresses and topics go to filter, whose slices are
// reused. Members of other names are ignored, as execution clients do.
func readLogQuery(v value, limits *Limits, filter *chain.LogFilter) (logQuery, error) {
	filter.Addresses, filter.Topics = filter.Addresses[:0], filter.Topics[:0]
	if v.kind() != '{' {
		return logQuery{}, jsonrpc.InvalidParams("the filter has to be an object")
	}
	var (
		from, to, hash, address, topics value
		repeated                        bool
	)
	for members := v.members(); ; {
		name, member, ok := members.next()
		if !ok {
			break
		}
		var field *value
		switch {
		case name.is("fromBlock"):
			field = &from
		case name.is("toBlock"):
			field = &to
		case name.is("blockHash"):
			field = &hash
		case name.is("address"):
			field = &address
		case name.is("topics"):
			field = &topics
		default:
			continue
		}
		repeated = repeated || *field != nil
		*field = member
	}
	if repeated {
		return logQuery{}, jsonrpc.InvalidParams("a member of the filter stands twice")
	}

	query := logQuery{from: selector{tag: tagLatest}, to: selector{tag: tagLatest}}
	var err error
	if present(hash) {
		if present(from) || present(to) {
			return logQuery{}, jsonrpc.InvalidParams("blockHash excludes fromBlock and toBlock")
		}
		query.byHash = true
		if query.hash, err = readHash(hash, "blockHash"); err != nil {
			return logQuery{}, err
		}
	}
	if present(from) {
		if query.from, err = readSelector(from, "fromBlock"); err != nil {
			return logQuery{}, err
		}
	}
	if present(to) {
		if query.to, err = readSelector(to, "toBlock"); err != nil {
			return logQuery{}, err
		}
	}
	if present(address) {
		if err := readAddresses(address, limits.MaxLogAddresses, filter); err != nil {
			return logQuery{}, err
		}
	}
	if present(topics) {
		if err := readTopics(topics, limits.MaxLogTopicAlternatives, filter); err != nil {
			return logQuery{}, err
		}
	}
	return query, nil
}

// present tells whether an optional member is there; null counts as absent.
func present(v value) bool { return v != nil && !v.isNull() }

// readAddresses reads one address or a list of them. Repeats are dropped; the limit counts them.
func readAddresses(v value, limit int, filter *chain.LogFilter) error {
	if v.kind() != '[' {
		return appendAddress(v, filter)
	}
	for elements := v.elements(); ; {
		element, ok := elements.next()
		if !ok {
			filter.Addresses = distinct(filter.Addresses, common.Address.Cmp)
			return nil
		}
		if len(filter.Addresses) == limit {
			return jsonrpc.InvalidParams(fmt.Sprintf("more than %d addresses", limit))
		}
		if err := appendAddress(element, filter); err != nil {
			return err
		}
	}
}

func appendAddress(v value, filter *chain.LogFilter) error {
	text, ok := v.text()
	if !ok {
		return jsonrpc.InvalidParams("address has to be a string, 20 bytes of hex, or an array of them")
	}
	address, err := hexenc.ParseAddress(text)
	if err != nil {
		return invalid("address", err)
	}
	filter.Addresses = append(filter.Addresses, address)
	return nil
}

// readTopics reads the topic positions. Null and an empty list match any topic at a position,
// and so does a list with null in it, which execution clients allow.
func readTopics(v value, limit int, filter *chain.LogFilter) error {
	if v.kind() != '[' {
		return jsonrpc.InvalidParams("topics has to be an array")
	}
	for elements := v.elements(); ; {
		element, ok := elements.next()
		if !ok {
			return nil
		}
		if len(filter.Topics) == maxTopics {
			return jsonrpc.InvalidParams(fmt.Sprintf("more than %d topics", maxTopics))
		}
		alternatives, err := readAlternatives(element, limit, nextTopics(filter))
		if err != nil {
			return err
		}
		filter.Topics[len(filter.Topics)-1] = alternatives
	}
}

// nextTopics adds a position to the filter and returns the memory its list had in an earlier
// query.
func nextTopics(filter *chain.LogFilter) []common.Hash {
	n := len(filter.Topics)
	if n < cap(filter.Topics) {
		filter.Topics = filter.Topics[:n+1]
		return filter.Topics[n][:0]
	}
	filter.Topics = append(filter.Topics, nil)
	return nil
}

// readAlternatives appends the topics of a position to list. Repeats are dropped; the limit counts
// them.
func readAlternatives(v value, limit int, list []common.Hash) ([]common.Hash, error) {
	if v.isNull() {
		return list, nil
	}
	if v.kind() != '[' {
		topic, err := readHash(v, "topic")
		return append(list, topic), err
	}
	wildcard := false
	count := 0
	for elements := v.elements(); ; count++ {
		element, ok := elements.next()
		if !ok {
			break
		}
		if count == limit {
			return nil, jsonrpc.InvalidParams(fmt.Sprintf("more than %d alternatives for a topic", limit))
		}
		if element.isNull() {
			wildcard = true
			continue
		}
		topic, err := readHash(element, "topic")
		if err != nil {
			return nil, err
		}
		list = append(list, topic)
	}
	if wildcard {
		return list[:0], nil
	}
	return distinct(list, common.Hash.Cmp), nil
}

// distinct sorts a list, whose order means nothing, and drops repeats: each would cost a look-up in
// every index file.
func distinct[T comparable](list []T, compare func(a, b T) int) []T {
	slices.SortFunc(list, compare)
	return slices.Compact(list)
}
