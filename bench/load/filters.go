package load

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"

	"github.com/ethereum/go-ethereum/common"

	"github.com/leani-go/leani/chain"
)

// filterCount is how many different filters are subscribed to.
const filterCount = 512

// filterObject is a filter as JSON-RPC has it.
func filterObject(f *chain.LogFilter) map[string]any {
	object := make(map[string]any)
	switch len(f.Addresses) {
	case 0:
	case 1:
		object["address"] = f.Addresses[0]
	default:
		object["address"] = f.Addresses
	}
	if len(f.Topics) > 0 {
		topics := make([]any, len(f.Topics))
		for i, t := range f.Topics {
			switch len(t) {
			case 0:
			case 1:
				topics[i] = t[0]
			default:
				topics[i] = t
			}
		}
		object["topics"] = topics
	}
	return object
}

// callOf is a call with one parameter.
func callOf(method string, parameter any) ([]byte, error) {
	text, err := json.Marshal([]any{parameter})
	if err != nil {
		return nil, err
	}
	return fmt.Appendf(nil, `{"jsonrpc":"2.0","id":1,"method":%q,"params":%s}`, method, text), nil
}

// Averages of the logs that a filter may select in a block: most filters are of somebody who follows little, and one in busyFilters of
// somebody who follows much.
const (
	fewLogs, manyLogs = 3, 40
	busyFilters       = 16
	sampleBlocks      = 25
)

// selects is how many logs a filter selects in a block, on average over some of the newest blocks of the history.
func (s *scenario) selects(f *chain.LogFilter) float64 {
	sample := s.history[len(s.history)-min(len(s.history), sampleBlocks):]
	n := 0
	for _, b := range sample {
		for i := range b.Logs {
			if f.Match(&b.Logs[i]) {
				n++
			}
		}
	}
	return float64(n) / float64(len(sample))
}

// makeFilters draws filters of many shapes from the logs of some blocks, so that most of them select something now and then, and
// some nothing at all.
func (s *scenario) makeFilters(random *rand.Rand) error {
	log := func() *chain.Log {
		for {
			b := s.history[random.IntN(len(s.history))]
			if len(b.Logs) == 0 {
				continue
			}
			if l := &b.Logs[random.IntN(len(b.Logs))]; l.NumTopics > 1 {
				return l
			}
		}
	}
	some := func(n int, of func(l *chain.Log) common.Hash) (list []common.Hash) {
		for range n {
			list = append(list, of(log()))
		}
		return list
	}
	topic := func(i int) func(l *chain.Log) common.Hash {
		return func(l *chain.Log) common.Hash {
			for int(l.NumTopics) <= i {
				l = log()
			}
			return *l.Topics[i]
		}
	}
	for len(s.filters) < filterCount {
		var f chain.LogFilter
		l := log()
		switch shape := random.IntN(100); {
		case shape < 10: // a contract, whatever it does
			f.Addresses = []common.Address{*l.Address}
		case shape < 35: // an account at a contract
			f.Addresses = []common.Address{*l.Address}
			f.Topics = [][]common.Hash{{*l.Topics[0]}, {*l.Topics[1]}}
		case shape < 55: // what an account sends
			f.Topics = [][]common.Hash{{*l.Topics[0]}, {*l.Topics[1]}}
		case shape < 70: // what some accounts get, with any event
			f.Topics = [][]common.Hash{nil, nil, some(5, topic(2))}
		case shape < 80: // events of an account at one of many contracts
			for range 50 {
				f.Addresses = append(f.Addresses, *log().Address)
			}
			f.Topics = [][]common.Hash{nil, some(3, topic(1))}
		case shape < 90: // alternatives at several positions
			f.Topics = [][]common.Hash{some(3, topic(0)), some(20, topic(1)), some(20, topic(2))}
		case shape < 95: // a topic where no log has one
			f.Topics = [][]common.Hash{nil, nil, nil, {common.BigToHash(common.Big1)}}
		default: // a contract that is not there
			f.Addresses = []common.Address{common.BytesToAddress(l.Topics[1][:])}
			f.Addresses[0][0] ^= 0xff
		}
		if n := s.selects(&f); n > manyLogs || n > fewLogs && len(s.filters)%busyFilters != 0 {
			continue
		}
		params, err := json.Marshal([]any{"logs", filterObject(&f)})
		if err != nil {
			return err
		}
		s.filters = append(s.filters, &followed{params: params, filter: f})
	}
	return nil
}

// filterOf is the number of the filter that a subscription of a socket has.
func filterOf(socket, subscription int) int { return (socket*127 + subscription*31) % filterCount }
