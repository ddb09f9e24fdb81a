package segments

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/ethereum/go-ethereum/common"

	"github.com/leani-go/leani/chain"
)

// A profile is stored as
//
//	version       u8, 1
//	chain id      uvarint
//	schema        text
//	details       u8
//	ommers        flag
//	materials     u8, and for each kind of material in the order of its number:
//	  capability  u8
//	  state       u8: 0 missing, 1 filtered, 2 complete
//	  missing     reason u8
//	  filtered    completeness u8, scope
//
// and a scope as flag and, if set, from and to as uvarints; then the lists of addresses, topics (position u8,
// list of hashes), transaction hashes, transaction types, senders and recipients, each a uvarint and that many
// items. The lists of a scope ascend: equal profiles have equal bytes.

const profileVersion = 1

// MaximumProfile bounds an encoded profile in bytes.
const MaximumProfile = 1 << 18

// detailBits are the details that have a meaning.
const detailBits = byte(chain.DetailsExact)

// AppendProfile appends the encoding of a profile, whose scopes must be normalized. Profiles are equal when
// their encodings are.
func AppendProfile(dst []byte, p *chain.Profile) ([]byte, error) {
	if byte(p.Details)&^detailBits != 0 {
		return dst, fmt.Errorf("encode profile: details %#x are unknown", byte(p.Details))
	}
	start := len(dst)
	dst = append(dst, profileVersion)
	dst = binary.AppendUvarint(dst, p.ChainID)
	dst = appendText(dst, p.Schema)
	dst = append(dst, byte(p.Details))
	dst = appendFlag(dst, p.Ommers)
	kinds := chain.MaterialKinds.List()
	dst = append(dst, byte(len(kinds)))
	for _, c := range kinds {
		m := &p.Materials[c]
		dst = append(dst, byte(c), byte(m.State))
		switch m.State {
		case chain.MaterialMissing:
			dst = append(dst, byte(m.Reason))
		case chain.MaterialFiltered:
			if m.Scope == nil {
				return dst[:start], fmt.Errorf("encode profile: %s are filtered by no scope", c)
			}
			dst = append(dst, byte(m.Completeness))
			dst = appendScope(dst, m.Scope)
		}
	}
	if n := len(dst) - start; n > MaximumProfile {
		return dst[:start], fmt.Errorf("encode profile: %d bytes pass the limit of %d", n, MaximumProfile)
	}
	if _, err := DecodeProfile(dst[start:]); err != nil { // a state outside the vocabulary, a scope in another form
		return dst[:start], fmt.Errorf("encode profile: %w", err)
	}
	return dst, nil
}

// DecodeProfile is the inverse of AppendProfile. It accepts nothing that AppendProfile does not write.
func DecodeProfile(b []byte) (*chain.Profile, error) {
	if len(b) > MaximumProfile {
		return nil, fmt.Errorf("decode profile: %d bytes pass the limit of %d", len(b), MaximumProfile)
	}
	r := wireReader{b: b}
	if v := r.octet(math.MaxUint8); !r.bad && v != profileVersion {
		return nil, fmt.Errorf("decode profile: version %d is unknown", v)
	}
	p := &chain.Profile{ChainID: r.number(math.MaxUint64), Schema: r.text()}
	details := r.octet(math.MaxUint8)
	if details&^detailBits != 0 {
		r.fail()
	}
	p.Details, p.Ommers = chain.Details(details), r.flag()
	kinds := chain.MaterialKinds.List()
	if int(r.octet(math.MaxUint8)) != len(kinds) {
		r.fail()
	}
	for _, c := range kinds {
		if chain.Capability(r.octet(math.MaxUint8)) != c {
			r.fail()
			break
		}
		m := &p.Materials[c]
		m.State = chain.MaterialState(r.octet(byte(chain.MaterialComplete)))
		switch m.State {
		case chain.MaterialMissing:
			m.Reason = chain.MissingReason(r.octet(byte(chain.Pruned)))
		case chain.MaterialFiltered:
			m.Completeness = chain.Completeness(r.octet(byte(chain.Partial)))
			m.Scope = r.scope()
		}
	}
	if err := r.done(); err != nil {
		return nil, fmt.Errorf("decode profile: %w", err)
	}
	return p, nil
}

func appendScope(dst []byte, s *chain.FilterScope) []byte {
	dst = appendFlag(dst, s.Blocks != nil)
	if s.Blocks != nil {
		dst = binary.AppendUvarint(dst, s.Blocks.From)
		dst = binary.AppendUvarint(dst, s.Blocks.To)
	}
	dst = appendAddresses(dst, s.Addresses)
	dst = binary.AppendUvarint(dst, uint64(len(s.Topics)))
	for i := range s.Topics {
		dst = append(dst, s.Topics[i].Position)
		dst = appendHashes(dst, s.Topics[i].Alternatives)
	}
	dst = appendHashes(dst, s.TransactionHashes)
	dst = appendBytes(dst, s.TransactionTypes)
	dst = appendAddresses(dst, s.Senders)
	return appendAddresses(dst, s.Recipients)
}

// scope reads a scope whose lists ascend.
func (r *wireReader) scope() *chain.FilterScope {
	s := new(chain.FilterScope)
	if r.flag() {
		s.Blocks = &chain.Range{From: r.number(math.MaxUint64), To: r.number(math.MaxUint64)}
	}
	s.Addresses = r.addresses()
	for range r.count(2) {
		t := chain.TopicFilter{Position: r.octet(math.MaxUint8), Alternatives: r.hashes()}
		s.Topics = append(s.Topics, t)
	}
	s.TransactionHashes = r.hashes()
	types := r.bytes()
	for i := range types {
		if i > 0 && types[i] <= types[i-1] {
			r.fail()
			return s
		}
	}
	if len(types) > 0 {
		s.TransactionTypes = append([]byte(nil), types...)
	}
	s.Senders = r.addresses()
	s.Recipients = r.addresses()
	if !r.bad && !s.TopicsOrdered() {
		r.fail()
	}
	return s
}

func appendHashes(dst []byte, list []common.Hash) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(list)))
	for i := range list {
		dst = append(dst, list[i][:]...)
	}
	return dst
}

func appendAddresses(dst []byte, list []common.Address) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(list)))
	for i := range list {
		dst = append(dst, list[i][:]...)
	}
	return dst
}

// hashes and addresses read lists that ascend; nil for none.
func (r *wireReader) hashes() (list []common.Hash) {
	for range r.count(common.HashLength) {
		h := r.hashValue()
		if n := len(list); n > 0 && list[n-1].Cmp(h) >= 0 {
			r.fail()
			return nil
		}
		list = append(list, h)
	}
	return list
}

func (r *wireReader) addresses() (list []common.Address) {
	for range r.count(common.AddressLength) {
		var a common.Address
		if p := r.address(); p != nil {
			a = *p
		}
		if n := len(list); n > 0 && list[n-1].Cmp(a) >= 0 {
			r.fail()
			return nil
		}
		list = append(list, a)
	}
	return list
}
