package chain

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/ethereum/go-ethereum/common"
)

// Profile is what frames of one kind have in common: which material they hold and how far it can be
// relied on. Frames of one profile answer the same questions, each for its own block.
type Profile struct {
	ChainID uint64
	Schema  string
	Details Details
	// Ommers tells whether the list of ommers is there.
	Ommers bool
	// Materials are the states by capability. Scopes are shared: read only.
	Materials [capabilityCount]Material
}

// Profile is the profile of the frame. Scopes are brought into one form: lists are sorted and hold no value
// twice, so that frames of equal material have equal profiles whatever the order was in which somebody asked
// for it.
func (f *Frame) Profile() Profile {
	p := Profile{ChainID: f.ChainID, Schema: f.Schema, Details: f.Details, Ommers: f.Ommers != nil}
	for c := range f.Materials {
		m := f.Materials[c]
		if m.State == MaterialFiltered && m.Scope != nil {
			m.Scope = m.Scope.Normalized()
		}
		p.Materials[c] = m
	}
	return p
}

// Describe sets what the profile says about a frame.
func (p *Profile) Describe(f *Frame) {
	f.ChainID, f.Schema, f.Details, f.Materials = p.ChainID, p.Schema, p.Details, p.Materials
}

// Lines describe the profile for people: pairs of what and how.
func (p *Profile) Lines() [][2]string {
	lines := [][2]string{{"chain", strconv.FormatUint(p.ChainID, 10)}, {"schema", p.Schema}}
	for _, c := range MaterialKinds.List() {
		m := &p.Materials[c]
		text := "complete"
		switch m.State {
		case MaterialMissing:
			text = "missing: " + m.Reason.String()
		case MaterialFiltered:
			text = "a selection: " + m.Completeness.String() + "; " + m.Scope.String()
		}
		lines = append(lines, [2]string{c.String(), text})
	}
	ommers := "missing"
	if p.Ommers {
		ommers = "complete"
	}
	var details []string
	for i, name := range detailNames {
		if p.Details>>i&1 != 0 {
			details = append(details, name)
		}
	}
	return append(lines, [2]string{"Ommers", ommers}, [2]string{"details", strings.Join(details, ", ")})
}

// String describes the scope by how much it restricts.
func (s *FilterScope) String() string {
	if s == nil {
		return "no scope"
	}
	var parts []string
	if s.Blocks != nil {
		parts = append(parts, fmt.Sprintf("blocks [%d, %d)", s.Blocks.From, s.Blocks.To))
	}
	for _, list := range []struct {
		count int
		name  string
	}{
		{len(s.Addresses), "addresses"}, {len(s.Topics), "restrictions of topics"}, {len(s.TransactionHashes), "transaction hashes"},
		{len(s.TransactionTypes), "transaction types"}, {len(s.Senders), "senders"}, {len(s.Recipients), "recipients"},
	} {
		if list.count > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", list.count, list.name))
		}
	}
	if len(parts) == 0 {
		return "everything"
	}
	return strings.Join(parts, ", ")
}

// Requirement is what somebody needs of a frame. The zero value needs nothing.
type Requirement struct {
	// Capabilities must all be supplied.
	Capabilities Capabilities
	// Scope is what is needed of them; nil is everything.
	Scope *FilterScope
	// Details that are needed of what is there.
	Details Details
}

// everything is the scope that selects all there is.
var everything = &FilterScope{}

// Supplies tells whether a frame of the profile, for the block with that number, answers for all that is
// needed. Transactions supply the body and calldata, receipts supply logs. Material that is declared partial
// supplies nothing.
func (p *Profile) Supplies(block uint64, need *Requirement) bool {
	if _, missing := p.Details.Missing(need.Details); missing {
		return false
	}
	scope := need.Scope
	if scope == nil {
		scope = everything
	}
	for _, c := range need.Capabilities.List() {
		if !p.supplies(c, block, scope) {
			return false
		}
	}
	return true
}

func (p *Profile) supplies(c Capability, block uint64, scope *FilterScope) bool {
	switch c {
	case CapabilityBody, CapabilityCalldata:
		c = CapabilityTransactions
	case CapabilityLogs:
		if p.Materials[CapabilityReceipts].Supplies(block, scope) {
			return true
		}
	}
	return MaterialKinds.Has(c) && p.Materials[c].Supplies(block, scope)
}

// Normalized is the scope with its lists sorted and no value in one twice; it selects the same. Nothing of it
// is shared with s but the range of blocks.
func (s *FilterScope) Normalized() *FilterScope {
	n := &FilterScope{
		Blocks:            s.Blocks,
		Addresses:         sortedSet(s.Addresses, common.Address.Cmp),
		TransactionHashes: sortedSet(s.TransactionHashes, common.Hash.Cmp),
		Senders:           sortedSet(s.Senders, common.Address.Cmp),
		Recipients:        sortedSet(s.Recipients, common.Address.Cmp),
	}
	n.TransactionTypes = sortedSet(s.TransactionTypes, func(a, b byte) int { return int(a) - int(b) })
	for _, t := range s.Topics {
		n.Topics = append(n.Topics, TopicFilter{t.Position, sortedSet(t.Alternatives, common.Hash.Cmp)})
	}
	slices.SortFunc(n.Topics, compareTopics)
	n.Topics = slices.CompactFunc(n.Topics, func(a, b TopicFilter) bool { return compareTopics(a, b) == 0 })
	return n
}

// TopicsOrdered tells whether the restrictions of topics are in the order of a normalized scope.
func (s *FilterScope) TopicsOrdered() bool {
	for i := 1; i < len(s.Topics); i++ {
		if compareTopics(s.Topics[i-1], s.Topics[i]) >= 0 {
			return false
		}
	}
	return true
}

// compareTopics is the order of restrictions in a normalized scope.
func compareTopics(a, b TopicFilter) int {
	if a.Position != b.Position {
		return int(a.Position) - int(b.Position)
	}
	return slices.CompareFunc(a.Alternatives, b.Alternatives, func(x, y common.Hash) int { return bytes.Compare(x[:], y[:]) })
}

func sortedSet[T comparable](list []T, compare func(a, b T) int) []T {
	if len(list) == 0 {
		return nil
	}
	list = slices.Clone(list)
	slices.SortFunc(list, compare)
	return slices.Compact(list)
}
