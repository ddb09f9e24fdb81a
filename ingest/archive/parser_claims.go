package archive

import (
	"math"

	"github.com/ethereum/go-ethereum/common"

	"github.com/leani-go/leani/chain"
)

// This file reads what a frame says about itself: scopes, provenance and verification. It is short and rare,
// so that values are memory of their own.

var (
	scopeShape = shape{
		names:    []string{"block_range", "addresses", "topics", "transaction_hashes", "transaction_types", "senders", "recipients"},
		required: 0b11110,
	}
	topicShape = shape{names: []string{"position", "alternatives"}, required: first(2)}
	rangeShape = shape{names: []string{"start", "end"}, required: first(2)}
)

func (p *Parser) scope() *chain.FilterScope {
	s := &p.s
	scope := new(chain.FilterScope)
	for o := s.object(&scopeShape); ; {
		switch s.member(&o) {
		case none:
			return scope
		case 0:
			scope.Blocks = s.blockRange()
		case 1:
			scope.Addresses = s.addresses()
		case 2:
			for more := s.list(); more; more = s.element() {
				if len(scope.Topics) == maximumTopics {
					s.fail("a scope of more than %d topics", maximumTopics)
				}
				scope.Topics = append(scope.Topics, s.topicFilter())
			}
		case 3:
			scope.TransactionHashes = s.hashes()
		case 4:
			scope.TransactionTypes = s.octets(nil)
		case 5:
			scope.Senders = s.addresses()
		case 6:
			scope.Recipients = s.addresses()
		}
	}
}

func (s *scanner) topicFilter() (t chain.TopicFilter) {
	for o := s.object(&topicShape); ; {
		switch s.member(&o) {
		case none:
			return t
		case 0:
			t.Position = uint8(s.integer(math.MaxUint8))
		case 1:
			t.Alternatives = s.hashes()
		}
	}
}

// blockRange reads a range with both ends, or null. One that ends with the largest number there is loses its
// last block, which does not exist.
func (s *scanner) blockRange() *chain.Range {
	if s.null() {
		return nil
	}
	var start, end uint64
	for o := s.object(&rangeShape); ; {
		switch s.member(&o) {
		case none:
			if s.err == nil && end < start {
				s.failAt(o.start, "the range ends with %d before it starts with %d", end, start)
			}
			return &chain.Range{From: start, To: min(end, math.MaxUint64-1) + 1}
		case 0:
			start = s.integer(math.MaxUint64)
		case 1:
			end = s.integer(math.MaxUint64)
		}
	}
}

func (s *scanner) hashValue() (h common.Hash) {
	if b := s.fixed(nil, common.HashLength); b != nil {
		h = common.Hash(b)
	}
	return h
}

func (s *scanner) hashes() (list []common.Hash) {
	for more := s.list(); more; more = s.element() {
		list = append(list, s.hashValue())
	}
	return list
}

func (s *scanner) addresses() (list []common.Address) {
	for more := s.list(); more; more = s.element() {
		if b := s.fixed(nil, common.AddressLength); b != nil {
			list = append(list, common.Address(b))
		}
	}
	return list
}

// optionalText reads a string, or null as nothing.
func (s *scanner) optionalText() string {
	if s.null() {
		return ""
	}
	return string(s.str())
}

// Bounds of what a frame says about itself. They are far above any real one, and keep a line from taking several
// times its length in memory, and its scopes from taking forever to compare.
const (
	maximumSteps      = 1024 // of its way
	maximumProjection = 4096 // columns of a step
	maximumTopics     = 256  // restrictions of a scope
)

var (
	provenanceShape = shape{
		names:    []string{"source_id", "source_kind", "trust", "range", "object", "observed_at_unix_ms", "projection"},
		required: 0b1100111,
	}
	sourceObjectShape = shape{names: []string{"locator", "version", "checksum", "schema"}, required: first(1)}
)

func (s *scanner) provenance() (p chain.Provenance) {
	for o := s.object(&provenanceShape); ; {
		switch s.member(&o) {
		case none:
			return p
		case 0:
			p.SourceID = string(s.str())
		case 1:
			p.Kind = parseWord(s, chain.ParseSourceKind)
		case 2:
			p.Trust = parseWord(s, chain.ParseTrust)
		case 3:
			p.Range = s.blockRange()
		case 4:
			p.Object = s.sourceObject()
		case 5:
			p.ObservedAt = s.integer(math.MaxUint64)
		case 6:
			for more := s.list(); more; more = s.element() {
				if len(p.Projection) == maximumProjection {
					s.fail("a projection of more than %d columns", maximumProjection)
				}
				p.Projection = append(p.Projection, string(s.str()))
			}
		}
	}
}

func (s *scanner) sourceObject() *chain.SourceObject {
	if s.null() {
		return nil
	}
	object := new(chain.SourceObject)
	for o := s.object(&sourceObjectShape); ; {
		switch s.member(&o) {
		case none:
			return object
		case 0:
			object.Locator = string(s.str())
		case 1:
			object.Version = s.optionalText()
		case 2:
			if !s.null() {
				h := s.hashValue()
				object.Checksum = &h
			}
		case 3:
			object.Schema = s.optionalText()
		}
	}
}

var (
	verificationShape = shape{
		names: []string{"header_hash", "parent_continuity", "transactions_root", "receipts_root", "withdrawals_root", "dataset_checksum",
			"consensus_anchor"},
		required: first(6),
	}
	checkShape  = shape{names: []string{"status", "detail"}, required: first(1)}
	anchorShape = shape{names: []string{"finality", "execution_block_hash", "beacon_slot", "beacon_block_root"}, required: first(4)}
)

func (s *scanner) verification() (r chain.VerificationReport) {
	checks := r.Checks()
	for o := s.object(&verificationShape); ; {
		switch i := s.member(&o); i {
		case none:
			return r
		case len(checks):
			if !s.null() {
				r.Anchor = s.anchor()
			}
		default:
			*checks[i] = s.check()
		}
	}
}

func (s *scanner) check() (c chain.Check) {
	for o := s.object(&checkShape); ; {
		switch s.member(&o) {
		case none:
			return c
		case 0:
			c.Status = parseWord(s, chain.ParseCheckStatus)
		case 1:
			c.Detail = s.optionalText()
		}
	}
}

func (s *scanner) anchor() *chain.ConsensusAnchor {
	a := new(chain.ConsensusAnchor)
	for o := s.object(&anchorShape); ; {
		switch s.member(&o) {
		case none:
			return a
		case 0:
			a.Finality = parseWord(s, parseFinality)
		case 1:
			a.ExecutionBlockHash = s.hashValue()
		case 2:
			a.BeaconSlot = s.integer(math.MaxUint64)
		case 3:
			a.BeaconBlockRoot = s.hashValue()
		}
	}
}
