package segments

import (
	"github.com/ethereum/go-ethereum/common"
	"github.com/leani-go/leani/chain"
)

// Matcher decides whether a log matches a filter, fast for long lists.
type Matcher struct {
	filter    *chain.LogFilter
	addresses map[common.Address]struct{}
	topics    [chain.MaximumTopics]map[common.Hash]struct{}
	never     bool
}

// longList is the number of alternatives above which a set is faster than comparing each.
const longList = 8

// NewMatcher prepares a filter, which must not change while the matcher is used. A matcher is
// immutable and safe for concurrent use.
func NewMatcher(filter *chain.LogFilter) *Matcher {
	m := &Matcher{filter: filter, never: len(filter.Topics) > chain.MaximumTopics}
	if len(filter.Addresses) > longList {
		m.addresses = make(map[common.Address]struct{}, len(filter.Addresses))
		for _, a := range filter.Addresses {
			m.addresses[a] = struct{}{}
		}
	}
	if m.never {
		return m
	}
	for i, alternatives := range filter.Topics {
		if len(alternatives) > longList {
			m.topics[i] = make(map[common.Hash]struct{}, len(alternatives))
			for _, t := range alternatives {
				m.topics[i][t] = struct{}{}
			}
		}
	}
	return m
}

// Match tells whether a log matches, as chain.LogFilter.Match does.
func (m *Matcher) Match(l *chain.Log) bool { return m.head(l) && m.rest(l) }

// head checks address, topic count and first topic.
func (m *Matcher) head(l *chain.Log) bool {
	if m.never || len(m.filter.Topics) > int(l.NumTopics) {
		return false
	}
	if m.addresses != nil {
		if _, ok := m.addresses[*l.Address]; !ok {
			return false
		}
	} else if len(m.filter.Addresses) > 0 && !oneOf(m.filter.Addresses, l.Address) {
		return false
	}
	return len(m.filter.Topics) == 0 || m.topic(0, l.Topics[0])
}

// rest checks the topics beyond the first, after head.
func (m *Matcher) rest(l *chain.Log) bool {
	for i := 1; i < len(m.filter.Topics); i++ {
		if !m.topic(i, l.Topics[i]) {
			return false
		}
	}
	return true
}

func (m *Matcher) topic(i int, t *common.Hash) bool {
	if m.topics[i] != nil {
		_, ok := m.topics[i][*t]
		return ok
	}
	return len(m.filter.Topics[i]) == 0 || oneOf(m.filter.Topics[i], t)
}

func oneOf[T comparable](list []T, v *T) bool {
	for i := range list {
		if list[i] == *v {
			return true
		}
	}
	return false
}
