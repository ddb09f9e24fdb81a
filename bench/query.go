package bench

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"

	"github.com/leani-go/leani/chain"
)

// NoExpectation is the expectation of calls that do not return logs.
const NoExpectation = -1

// methodLogs is the method of log queries.
const methodLogs = "eth_getLogs"

// Query is one JSON-RPC call of a query file, a line of JSON each.
type Query struct {
	ID     string            `json:"id"`
	Class  string            `json:"class"` // queries of a class are measured together
	Method string            `json:"method"`
	Params []json.RawMessage `json:"params"`
	Expect int               `json:"expect"` // logs that it must return, or NoExpectation

	// What a log query asks for; set by ReadQueries.
	Filter    chain.LogFilter `json:"-"`
	Blocks    chain.Range     `json:"-"` // unless BlockHash is set
	BlockHash *common.Hash    `json:"-"`

	body []byte
}

// IsLogs tells whether the query is a log query.
func (q *Query) IsLogs() bool { return q.Method == methodLogs }

// Body is the HTTP body of the call.
func (q *Query) Body() []byte { return q.body }

// ReadQueries reads a query file.
func ReadQueries(path string) ([]Query, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("open queries: %w", err)
	}
	defer func() { _ = f.Close() }()
	var list []Query
	for d := json.NewDecoder(bufio.NewReader(f)); ; {
		var q Query
		if err := d.Decode(&q); errors.Is(err, io.EOF) {
			return list, nil
		} else if err != nil {
			return nil, fmt.Errorf("read queries %s: query %d: %w", path, len(list), err)
		}
		if err := q.parse(); err != nil {
			return nil, fmt.Errorf("read queries %s: query %s: %w", path, q.ID, err)
		}
		list = append(list, q)
	}
}

// WriteQueries writes a query file.
func WriteQueries(path string, list []Query) (err error) {
	f, err := os.Create(path)
	if err != nil {
		return fmt.Errorf("write queries: %w", err)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	w := bufio.NewWriter(f)
	for i := range list {
		line, err := json.Marshal(&list[i])
		if err != nil {
			return fmt.Errorf("write queries %s: %w", path, err)
		}
		if _, err := w.Write(append(line, '\n')); err != nil {
			return fmt.Errorf("write queries: %w", err)
		}
	}
	if err := w.Flush(); err != nil {
		return fmt.Errorf("write queries: %w", err)
	}
	return nil
}

// Classes lists the classes of queries in their order.
func Classes(list []Query) []string {
	var names []string
	for i := range list {
		if !slices.Contains(names, list[i].Class) {
			names = append(names, list[i].Class)
		}
	}
	return names
}

// OfClass selects the queries of a class.
func OfClass(list []Query, class string) []Query {
	var out []Query
	for i := range list {
		if list[i].Class == class {
			out = append(out, list[i])
		}
	}
	return out
}

// LogQueries selects the log queries.
func LogQueries(list []Query) []Query {
	return slices.DeleteFunc(slices.Clone(list), func(q Query) bool { return !q.IsLogs() })
}

// LookUps selects the calls that are not log queries.
func LookUps(list []Query) []Query {
	return slices.DeleteFunc(slices.Clone(list), func(q Query) bool { return q.IsLogs() })
}

// parse fills what follows from method and parameters.
func (q *Query) parse() error {
	params, err := json.Marshal(q.Params)
	if err != nil {
		return err
	}
	q.body = fmt.Appendf(nil, `{"jsonrpc":"2.0","id":1,"method":%q,"params":%s}`, q.Method, params)
	if !q.IsLogs() {
		return nil
	}
	if len(q.Params) != 1 {
		return fmt.Errorf("got %d parameters, want 1", len(q.Params))
	}
	var p struct {
		FromBlock, ToBlock hexutil.Uint64
		BlockHash          *common.Hash
		Address            oneOrMany[common.Address]
		Topics             []oneOrMany[common.Hash]
	}
	if err := json.Unmarshal(q.Params[0], &p); err != nil {
		return err
	}
	q.BlockHash = p.BlockHash
	if q.BlockHash == nil {
		q.Blocks = chain.Range{From: uint64(p.FromBlock), To: uint64(p.ToBlock) + 1}
	}
	q.Filter.Addresses = p.Address
	for _, t := range p.Topics {
		q.Filter.Topics = append(q.Filter.Topics, t)
	}
	return nil
}

// oneOrMany is null, a value, or a list of values.
type oneOrMany[T any] []T

// UnmarshalJSON implements json.Unmarshaler.
func (l *oneOrMany[T]) UnmarshalJSON(text []byte) error {
	if text[0] == '[' {
		return json.Unmarshal(text, (*[]T)(l))
	}
	var one *T
	if err := json.Unmarshal(text, &one); err != nil {
		return err
	}
	if one != nil {
		*l = []T{*one}
	}
	return nil
}

// newLogQuery makes a query of a filter; blocks are half-open.
func newLogQuery(class string, f chain.LogFilter, blocks chain.Range, hash *common.Hash) (Query, error) {
	object := map[string]any{}
	if hash != nil {
		object["blockHash"] = hash
	} else {
		object["fromBlock"] = hexutil.Uint64(blocks.From)
		object["toBlock"] = hexutil.Uint64(blocks.To - 1)
	}
	if len(f.Addresses) > 0 {
		object["address"] = f.Addresses
	}
	if len(f.Topics) > 0 {
		topics := make([]any, len(f.Topics))
		for i, t := range f.Topics {
			if len(t) > 0 {
				topics[i] = t
			}
		}
		object["topics"] = topics
	}
	text, err := json.Marshal(object)
	if err != nil {
		return Query{}, err
	}
	q := Query{Class: class, Method: methodLogs, Params: []json.RawMessage{text}}
	return q, q.parse()
}
