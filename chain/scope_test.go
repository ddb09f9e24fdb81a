package chain

import (
	"slices"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"pgregory.net/rapid"
)

// Values come from small sets, so that scopes and logs often agree, and each set has one value that
// no scope names, so that a list never names all there are.
const (
	scopeValues = 3
	scopeBlocks = 4
)

func drawScope(t *rapid.T, name string) *FilterScope {
	value := rapid.ByteRange(0, scopeValues-1)
	hash := rapid.Map(value, func(b byte) common.Hash { return common.Hash{b} })
	address := rapid.Map(value, func(b byte) common.Address { return common.Address{b} })
	// Most fields are wildcards: otherwise hardly any scope would cover another.
	some := func() int { return rapid.SampledFrom([]int{0, 0, 0, 1, 2}).Draw(t, name+" size") }
	topic := rapid.Custom(func(t *rapid.T) TopicFilter {
		return TopicFilter{
			Position:     rapid.Uint8Range(0, MaximumTopics).Draw(t, "position"),
			Alternatives: rapid.SliceOfN(hash, 0, 3).Draw(t, "alternatives"),
		}
	})
	n := some()
	s := &FilterScope{
		Addresses:         rapid.SliceOfN(address, n, n).Draw(t, name+" addresses"),
		TransactionHashes: rapid.SliceOfN(hash, 0, some()).Draw(t, name+" transactions"),
		TransactionTypes:  rapid.SliceOfN(value, 0, some()).Draw(t, name+" types"),
		Senders:           rapid.SliceOfN(address, 0, some()).Draw(t, name+" senders"),
		Recipients:        rapid.SliceOfN(address, 0, some()).Draw(t, name+" recipients"),
		Topics:            rapid.SliceOfN(topic, 0, some()).Draw(t, name+" topics"),
	}
	if rapid.Bool().Draw(t, name+" has blocks") {
		from := rapid.Uint64Range(0, scopeBlocks).Draw(t, name+" from")
		s.Blocks = &Range{From: from, To: from + rapid.Uint64Range(0, 2).Draw(t, name+" blocks")}
	}
	return s
}

// loosened is a scope with some conditions taken away or widened, which mostly covers the first.
func loosened(t *rapid.T, s *FilterScope) *FilterScope {
	out := *s
	if rapid.Bool().Draw(t, "without blocks") {
		out.Blocks = nil
	}
	if len(s.Addresses) > 0 {
		out.Addresses = append(slices.Clone(s.Addresses), common.Address{2})
	}
	out.Topics = slices.Clone(s.Topics)
	for i := range out.Topics {
		out.Topics[i].Alternatives = append(slices.Clone(out.Topics[i].Alternatives), common.Hash{1})
	}
	if n := len(out.Topics); n > 0 && rapid.Bool().Draw(t, "without a topic") {
		out.Topics = out.Topics[:n-1]
	}
	return &out
}

// everyLog calls f with logs until it returns false: one for each combination of values that a scope can
// tell apart, in a subspace of them that the test chose.
func everyLog(a, b *FilterScope, f func(*Log, *LogOrigin) bool) {
	topicLists := [][]byte{nil}
	for n, start := 0, 0; n < MaximumTopics; n++ {
		end := len(topicLists)
		for _, list := range topicLists[start:end] {
			for v := range byte(scopeValues + 1) {
				topicLists = append(topicLists, append(slices.Clone(list), v))
			}
		}
		start = end
	}
	values := func(constrained bool) []byte {
		if !constrained {
			return []byte{scopeValues}
		}
		return []byte{0, 1, 2, scopeValues}
	}
	blocks := []uint64{0}
	if a.Blocks != nil || b.Blocks != nil {
		blocks = []uint64{0, 1, 2, 3, 4, 5, 6, 99}
	}
	for _, topics := range topicLists {
		if len(a.Topics)+len(b.Topics) == 0 && len(topics) > 0 {
			return
		}
		l := Log{NumTopics: uint8(len(topics))}
		for i, v := range topics {
			l.Topics[i] = &common.Hash{v}
		}
		for _, block := range blocks {
			for _, address := range values(len(a.Addresses)+len(b.Addresses) > 0) {
				l.Address = &common.Address{address}
				for _, hash := range values(len(a.TransactionHashes)+len(b.TransactionHashes) > 0) {
					for _, kind := range values(len(a.TransactionTypes)+len(b.TransactionTypes) > 0) {
						for _, from := range values(len(a.Senders)+len(b.Senders) > 0) {
							for _, to := range values(len(a.Recipients)+len(b.Recipients) > 0) {
								o := LogOrigin{Block: block, TransactionHash: &common.Hash{hash}, TransactionType: &kind, Sender: &common.Address{from}}
								if to != scopeValues {
									o.Recipient = &common.Address{to}
								}
								if !f(&l, &o) {
									return
								}
							}
						}
					}
				}
			}
		}
	}
}

// TestScopeCovers compares Covers with what it means: every log that one scope matches the other one
// matches too. The logs are all that the scopes can tell apart, so that neither answer can hide.
func TestScopeCovers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := drawScope(t, "covered")
		a := drawScope(t, "covering")
		if rapid.Bool().Draw(t, "related") {
			a = loosened(t, b)
		}
		want, wantAt := true, map[uint64]bool{}
		everyLog(a, b, func(l *Log, o *LogOrigin) bool {
			if b.Matches(l, o) && !a.Matches(l, o) {
				want, wantAt[o.Block] = false, true
			}
			return true
		})
		if got := a.Covers(b); got != want {
			t.Fatalf("covers: got %v want %v\n%+v\n%+v", got, want, a, b)
		}
		for _, block := range []uint64{0, 3, 99} {
			if a.Blocks == nil && b.Blocks == nil && block != 0 {
				continue
			}
			if got := a.CoversAt(block, b); got == wantAt[block] {
				t.Fatalf("covers at block %d: got %v\n%+v\n%+v", block, got, a, b)
			}
		}
	})
}

// What is particular about scopes: an empty list of alternatives, short logs, two conditions at one
// position, creations, and what is not known.
func TestScopeMatches(t *testing.T) {
	one, two := common.Hash{1}, common.Hash{2}
	l := &Log{Address: &common.Address{7}, NumTopics: 1, Topics: [MaximumTopics]*common.Hash{&one}}
	for name, c := range map[string]struct {
		scope FilterScope
		want  bool
	}{
		"everything":               {FilterScope{}, true},
		"no alternative":           {FilterScope{Topics: []TopicFilter{{Position: 0}}}, false},
		"topic":                    {FilterScope{Topics: []TopicFilter{{0, []common.Hash{two, one}}}}, true},
		"short log":                {FilterScope{Topics: []TopicFilter{{1, []common.Hash{one}}}}, false},
		"beyond all topics":        {FilterScope{Topics: []TopicFilter{{200, []common.Hash{one}}}}, false},
		"both at one position":     {FilterScope{Topics: []TopicFilter{{0, []common.Hash{one}}, {0, []common.Hash{one, two}}}}, true},
		"one of two at a position": {FilterScope{Topics: []TopicFilter{{0, []common.Hash{one}}, {0, []common.Hash{two}}}}, false},
		"recipient of a creation":  {FilterScope{Recipients: []common.Address{{}}}, false},
		"unknown sender":           {FilterScope{Senders: []common.Address{{}}}, false},
		"unknown type":             {FilterScope{TransactionTypes: []byte{0}}, false},
		"other block":              {FilterScope{Blocks: &Range{From: 4, To: 5}}, false},
	} {
		if got := c.scope.Matches(l, &LogOrigin{Block: 5}); got != c.want {
			t.Errorf("%s: got %v want %v", name, got, c.want)
		}
	}
	// Long lists are compared like short ones.
	var long FilterScope
	for i := range 1000 {
		long.Addresses = append(long.Addresses, common.Address{byte(i), byte(i >> 8)})
	}
	part := FilterScope{Addresses: long.Addresses[300:900]}
	if !long.Covers(&part) || !long.Covers(&long) || part.Covers(&long) {
		t.Error("long lists")
	}
	// Senders and recipients never stand in for one another.
	from := &FilterScope{Senders: []common.Address{{1}}}
	to := &FilterScope{Recipients: []common.Address{{1}}}
	if from.Covers(to) || to.Covers(from) {
		t.Error("senders and recipients are mixed up")
	}
}
