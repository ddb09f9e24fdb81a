package chain

import (
	"slices"

	"github.com/ethereum/go-ethereum/common"
)

// FilterScope says which logs and transactions were asked for where material is not complete. An
// empty list and a nil range ask for everything: they are wildcards.
//
// It is not a LogFilter: each restriction of a topic names its position, a restriction without
// alternatives selects nothing, and transactions can be selected too.
type FilterScope struct {
	// Blocks are the blocks asked for; nil asks for all.
	Blocks *Range
	// Addresses are the emitters of logs.
	Addresses []common.Address
	// Topics must all allow a log.
	Topics []TopicFilter
	// TransactionHashes, TransactionTypes, Senders and Recipients select by the transaction. What is
	// not known of a transaction, and the recipient that a creation does not have, is selected by
	// the wildcard alone.
	TransactionHashes []common.Hash
	TransactionTypes  []byte
	Senders           []common.Address
	Recipients        []common.Address
}

// TopicFilter allows the logs that have one of the alternatives at a position. Without alternatives
// it allows none.
type TopicFilter struct {
	Position     uint8
	Alternatives []common.Hash
}

// LogOrigin is what a scope can ask of a log beside its content. A nil pointer is what is not known or,
// as the recipient, a creation.
type LogOrigin struct {
	Block           uint64
	TransactionHash *common.Hash
	TransactionType *byte
	Sender          *common.Address
	Recipient       *common.Address
}

// Matches tells whether the scope asks for a log.
func (s *FilterScope) Matches(l *Log, o *LogOrigin) bool {
	if !s.MatchesTransaction(o) || len(s.Addresses) > 0 && !contains(s.Addresses, l.Address) {
		return false
	}
	for i := range s.Topics {
		t := &s.Topics[i]
		if t.Position >= l.NumTopics || !contains(t.Alternatives, l.Topics[t.Position]) {
			return false
		}
	}
	return true
}

// MatchesTransaction tells whether the scope asks for logs of a transaction, whatever they are.
func (s *FilterScope) MatchesTransaction(o *LogOrigin) bool {
	return (s.Blocks == nil || s.Blocks.Contains(o.Block)) &&
		allows(s.TransactionHashes, o.TransactionHash) &&
		allows(s.TransactionTypes, o.TransactionType) &&
		allows(s.Senders, o.Sender) &&
		allows(s.Recipients, o.Recipient)
}

// allows tells whether a list, or its being empty, selects a value that may be unknown.
func allows[T comparable](list []T, v *T) bool {
	return len(list) == 0 || v != nil && contains(list, v)
}

// Covers tells whether everything that o asks for is asked for by s too: whether s can stand in for
// o. What is asked for under several conditions is compared condition by condition, which is exact
// as long as no list names every value there is.
func (s *FilterScope) Covers(o *FilterScope) bool {
	if o.empty() {
		return true
	}
	if s.Blocks != nil && (o.Blocks == nil || !s.Blocks.Covers(*o.Blocks)) {
		return false
	}
	return s.coversInBlock(o)
}

// CoversAt is Covers for one block: outside of its blocks o asks for nothing, and s has nothing.
func (s *FilterScope) CoversAt(block uint64, o *FilterScope) bool {
	switch {
	case o.empty(), o.Blocks != nil && !o.Blocks.Contains(block):
		return true
	case s.Blocks != nil && !s.Blocks.Contains(block):
		return false
	}
	return s.coversInBlock(o)
}

// coversInBlock compares everything but the blocks. o is not empty.
func (s *FilterScope) coversInBlock(o *FilterScope) bool {
	for _, t := range s.Topics {
		allowed, constrained := o.allowedAt(t.Position)
		if !constrained || !subset(allowed, t.Alternatives) {
			return false
		}
	}
	return listCovers(s.Addresses, o.Addresses) &&
		listCovers(s.TransactionHashes, o.TransactionHashes) &&
		listCovers(s.TransactionTypes, o.TransactionTypes) &&
		listCovers(s.Senders, o.Senders) &&
		listCovers(s.Recipients, o.Recipients)
}

// empty tells whether no log can match: a condition allows nothing, or two exclude each other.
func (s *FilterScope) empty() bool {
	if s.Blocks != nil && s.Blocks.Empty() {
		return true
	}
	for _, t := range s.Topics {
		if allowed, _ := s.allowedAt(t.Position); len(allowed) == 0 || t.Position >= MaximumTopics {
			return true
		}
	}
	return false
}

// allowedAt are the topics that all conditions on a position allow; false when there is none.
func (s *FilterScope) allowedAt(position uint8) (allowed []common.Hash, constrained bool) {
	for _, t := range s.Topics {
		switch {
		case t.Position != position:
		case !constrained:
			allowed, constrained = t.Alternatives, true
		default:
			allowed = slices.DeleteFunc(slices.Clone(allowed), func(h common.Hash) bool { return !slices.Contains(t.Alternatives, h) })
		}
	}
	return allowed, constrained
}

// listCovers tells whether a list whose being empty means everything holds all of another such list.
func listCovers[T comparable](list, other []T) bool {
	return len(list) == 0 || len(other) > 0 && subset(other, list)
}

// subset tells whether every value of a list is one of another.
func subset[T comparable](list, of []T) bool {
	const few = 1 << 12 // comparisons that cost less than a table
	if len(list)*len(of) > few {
		table := make(map[T]struct{}, len(of))
		for _, v := range of {
			table[v] = struct{}{}
		}
		for _, v := range list {
			if _, ok := table[v]; !ok {
				return false
			}
		}
		return true
	}
	for _, v := range list {
		if !slices.Contains(of, v) {
			return false
		}
	}
	return true
}
