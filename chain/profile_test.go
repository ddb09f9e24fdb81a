package chain

import (
	"slices"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"pgregory.net/rapid"
)

// drawFreeScope makes a scope of few values, so that scopes overlap.
func drawFreeScope(t *rapid.T) *FilterScope {
	address := rapid.Custom(func(t *rapid.T) common.Address { return common.Address{rapid.Byte().Draw(t, "address") % 3} })
	hash := rapid.Custom(func(t *rapid.T) common.Hash { return common.Hash{rapid.Byte().Draw(t, "hash") % 3} })
	s := &FilterScope{
		Addresses:         rapid.SliceOfN(address, 0, 4).Draw(t, "addresses"),
		TransactionHashes: rapid.SliceOfN(hash, 0, 2).Draw(t, "transactions"),
		TransactionTypes:  rapid.SliceOfN(rapid.ByteRange(0, 3), 0, 3).Draw(t, "types"),
		Senders:           rapid.SliceOfN(address, 0, 2).Draw(t, "senders"),
		Recipients:        rapid.SliceOfN(address, 0, 2).Draw(t, "recipients"),
	}
	for range rapid.IntRange(0, 3).Draw(t, "topics") {
		s.Topics = append(s.Topics, TopicFilter{rapid.Uint8Range(0, 2).Draw(t, "position"), rapid.SliceOfN(hash, 0, 3).Draw(t, "alternatives")})
	}
	if rapid.Bool().Draw(t, "blocks") {
		from := rapid.Uint64Range(0, 5).Draw(t, "from")
		s.Blocks = &Range{From: from, To: from + rapid.Uint64Range(0, 5).Draw(t, "length")}
	}
	return s
}

// A normalized scope selects the same logs, covers what the other covers, and is the same for every order of the
// same values.
func TestNormalizedScope(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, other := drawFreeScope(t), drawFreeScope(t)
		n := s.Normalized()
		if !n.TopicsOrdered() || n.String() != n.Normalized().String() {
			t.Fatalf("%+v", n)
		}
		if !s.Covers(n) || !n.Covers(s) || s.Covers(other) != n.Covers(other) || other.Covers(s) != other.Covers(n) {
			t.Fatalf("%+v and %+v do not cover each other, or not the same", s, n)
		}
		shuffled := *s
		for _, list := range []*[]common.Address{&shuffled.Addresses, &shuffled.Senders, &shuffled.Recipients} {
			*list = append(rapid.Permutation(*list).Draw(t, "order"), *list...)
		}
		shuffled.Topics = rapid.Permutation(s.Topics).Draw(t, "order of topics")
		m := shuffled.Normalized()
		if !slices.Equal(m.Addresses, n.Addresses) || !slices.Equal(m.Senders, n.Senders) ||
			!slices.EqualFunc(m.Topics, n.Topics, func(a, b TopicFilter) bool { return compareTopics(a, b) == 0 }) {
			t.Fatalf("%+v is not %+v", m, n)
		}
		address, topic := common.Address{rapid.Byte().Draw(t, "of") % 3}, common.Hash{rapid.Byte().Draw(t, "topic") % 3}
		l := Log{Address: &address, NumTopics: 1, Topics: [MaximumTopics]*common.Hash{&topic}}
		o := LogOrigin{Block: rapid.Uint64Range(0, 10).Draw(t, "block")}
		if s.Matches(&l, &o) != n.Matches(&l, &o) {
			t.Fatalf("%+v and %+v select different logs", s, n)
		}
	})
}

// A profile supplies what its material does, and what follows from it; partial material supplies nothing.
//
// INV-10
func TestProfileSupplies(t *testing.T) {
	a, b := common.Address{1}, common.Address{2}
	scope := func(list ...common.Address) *FilterScope { return &FilterScope{Addresses: list} }
	logs := func(c Completeness, s *FilterScope) (p Profile) {
		p.Materials[CapabilityLogs] = FilteredMaterial(s, c)
		p.Details = DetailHeaderRLP
		return p
	}
	var body, receipts Profile
	body.Materials[CapabilityTransactions] = CompleteMaterial()
	receipts.Materials[CapabilityReceipts] = CompleteMaterial()
	need := func(s *FilterScope, list ...Capability) Requirement {
		return Requirement{Capabilities: NewCapabilities(list...), Scope: s}
	}
	for i, c := range []struct {
		profile Profile
		need    Requirement
		want    bool
	}{
		{Profile{}, Requirement{}, true},
		{Profile{}, need(nil, CapabilityHeader), false},
		{body, need(nil, CapabilityBody, CapabilityCalldata, CapabilityTransactions), true},
		{body, need(nil, CapabilityReceipts), false},
		{receipts, need(nil, CapabilityLogs), true},
		{receipts, need(scope(a), CapabilityLogs, CapabilityReceipts), true},
		{logs(DatasetDeclared, scope(a, b)), need(scope(a), CapabilityLogs), true},
		{logs(VerifiedPredicate, scope(a)), need(scope(a), CapabilityLogs), true},
		{logs(Partial, scope(a)), need(scope(a), CapabilityLogs), false},
		{logs(DatasetDeclared, scope(a)), need(scope(a, b), CapabilityLogs), false},
		{logs(DatasetDeclared, scope(a)), need(nil, CapabilityLogs), false},
		{logs(DatasetDeclared, &FilterScope{}), need(nil, CapabilityLogs), true},
		{logs(DatasetDeclared, scope(a)), need(scope(a), CapabilityReceipts), false},
		{logs(DatasetDeclared, scope(a)), Requirement{Capabilities: NewCapabilities(CapabilityLogs), Scope: scope(a), Details: DetailEnvelopes}, false},
		{logs(DatasetDeclared, scope(a)), Requirement{Capabilities: NewCapabilities(CapabilityLogs), Scope: scope(a), Details: DetailHeaderRLP}, true},
		{body, need(nil, CapabilityMempool), false},
		{body, need(nil, CapabilityConsensusFinality), false},
	} {
		if got := c.profile.Supplies(7, &c.need); got != c.want {
			t.Errorf("case %d: got %v", i, got)
		}
	}
	// Outside of its blocks a selection has nothing to say.
	p := logs(DatasetDeclared, &FilterScope{Blocks: &Range{From: 5, To: 8}})
	n := need(nil, CapabilityLogs)
	if !p.Supplies(7, &n) || p.Supplies(8, &n) {
		t.Error("the blocks of a scope are not obeyed")
	}
}
