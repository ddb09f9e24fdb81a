package archive

import (
	"fmt"
	"math"
	"slices"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"

	"github.com/leani-go/leani/chain"
	"github.com/leani-go/leani/internal/bloom"
	"github.com/leani-go/leani/internal/header"
)

// Parser reads frames from lines. It belongs to one goroutine; the zero value is ready.
type Parser struct {
	s     scanner
	frame *chain.Frame
	// arena is the memory that the frame aliases. It grows by what is decoded; a line of n bytes
	// decodes to less than n/2+arenaSlack bytes.
	arena []byte

	hasOmmers      bool               // the line has ommers, or they follow from the header
	hasWithdrawals bool               // the header commits to withdrawals
	logsAt, logs   int                // place and length of the list in the logs material
	complete       chain.Capabilities // what the line has, also of what is dropped
	schema         []byte             // what the frame says; nil when it says nothing
	fields         headerFields

	blooms []*types.Bloom // that the receipts carry, where they are encoded
	check  []types.Bloom
	bits   bloom.Memo
}

// arenaSlack is room for what a line implies without saying it, such as an empty list of ommers.
const arenaSlack = 64

var frameShape = shape{names: []string{
	"chain_id", "block", "finality", "header", "transactions", "receipts", "logs", "withdrawals",
	"blob_sidecars", "traces", "state_diffs", "provenance", "verification",
	// Ours, beyond the format: other readers skip them.
	"ommers", "schema_version",
}, required: first(13)}

// frameMaterials are the capabilities of the members from header on.
var frameMaterials = [...]chain.Capability{
	chain.CapabilityHeader, chain.CapabilityTransactions, chain.CapabilityReceipts, chain.CapabilityLogs,
	chain.CapabilityWithdrawals, chain.CapabilityBlobSidecars, chain.CapabilityTraces, chain.CapabilityStateDiffs,
}

const firstMaterial = 3 // its position in frameShape

// Parse reads a line into f. padded is the line with 8 zero bytes after it. The frame aliases arena, which
// is what Parse appends to; with room for half the line and 64 bytes it is never moved. What the line says
// about finality, materials, provenance and verification is taken as it is: it is the reader of an object that
// decides what of it is believed. Nothing is said about whether the frame is true.
//
// Material that this product does not keep (sidecars, traces and state diffs) is read and dropped, and the
// frame says that nobody requested it.
func (p *Parser) Parse(padded, arena []byte, f *chain.Frame) error {
	f.Reset()
	if arena == nil {
		arena = make([]byte, 0, len(padded)/2+arenaSlack)
	}
	*p = Parser{frame: f, arena: arena[:0], blooms: p.blooms[:0], check: p.check, bits: p.bits}
	p.s.reset(padded)
	p.members()
	if err := p.s.finish(); err != nil {
		return err
	}
	if err := p.joinLogs(); err != nil {
		return err
	}
	return p.joinHeader()
}

func (p *Parser) members() {
	s, f := &p.s, p.frame
	for o := s.object(&frameShape); ; {
		switch i := s.member(&o); i {
		case none:
			return
		case 0:
			f.ChainID = s.integer(math.MaxUint64)
		case 1:
			p.block()
		case 2:
			f.Finality = parseWord(s, parseFinality)
		case 11:
			for more := s.list(); more; more = s.element() {
				if len(f.Provenance) == maximumSteps {
					s.fail("a way of more than %d steps", maximumSteps)
				}
				f.Provenance = append(f.Provenance, s.provenance())
			}
		case 12:
			f.Verification = s.verification()
		case 13:
			p.hasOmmers = p.ommers()
		case 14:
			if !s.null() {
				p.schema = s.str()
			}
		default:
			p.material(frameMaterials[i-firstMaterial])
		}
	}
}

// parseWord reads a string that stands for a value.
func parseWord[T any](s *scanner, parse func(string) (T, error)) (v T) {
	s.peek()
	start := s.pos
	word := s.str()
	if s.err != nil {
		return v
	}
	v, err := parse(string(word))
	if err != nil {
		s.failAt(start, "%v", err)
	}
	return v
}

// octets reads bytes into the arena.
func (p *Parser) octets() []byte {
	n := len(p.arena)
	p.arena = p.s.octets(p.arena)
	return p.arena[n:len(p.arena):len(p.arena)]
}

// checkOctets reads bytes that nobody keeps.
func (p *Parser) checkOctets() {
	n := len(p.arena)
	p.arena = p.s.octets(p.arena)[:n]
}

func (p *Parser) checkFixed(n int) {
	if b := p.s.fixed(p.arena, n); b != nil {
		p.arena = b[:len(p.arena)]
	}
}

// hash and address read into the arena. They are nil after an error.
func (p *Parser) hash() *common.Hash {
	if b := p.fixed(common.HashLength); b != nil {
		return (*common.Hash)(b)
	}
	return nil
}

func (p *Parser) address() *common.Address {
	if b := p.fixed(common.AddressLength); b != nil {
		return (*common.Address)(b)
	}
	return nil
}

func (p *Parser) fixed(size int) []byte {
	n := len(p.arena)
	b := p.s.fixed(p.arena, size)
	if b == nil {
		return nil
	}
	p.arena = b
	return b[n:]
}

// hashValue reads a hash as a value of its own.
func (p *Parser) hashValue() (h common.Hash) {
	n := len(p.arena)
	if b := p.fixed(common.HashLength); b != nil {
		h = common.Hash(b)
		p.arena = p.arena[:n]
	}
	return h
}

var blockShape = shape{names: []string{"number", "hash", "parent_hash", "timestamp"}, required: first(4)}

func (p *Parser) block() {
	s, ref := &p.s, &p.frame.BlockRef
	for o := s.object(&blockShape); ; {
		switch s.member(&o) {
		case none:
			return
		case 0:
			ref.Number = s.integer(math.MaxUint64)
		case 1:
			ref.Hash = p.hashValue()
		case 2:
			ref.ParentHash = p.hashValue()
		case 3:
			ref.Timestamp = s.integer(math.MaxUint64)
		}
	}
}

// material reads a kind of material, in one of its three forms.
func (p *Parser) material(c chain.Capability) {
	m := p.frame.Material(c)
	*m = p.form(func(m *chain.Material) { p.value(c, m) })
	if m.Complete() {
		p.complete |= chain.NewCapabilities(c)
	}
	switch c {
	case chain.CapabilityBlobSidecars, chain.CapabilityTraces, chain.CapabilityStateDiffs:
		if m.Present() {
			*m = chain.MissingMaterial(chain.NotRequested)
		}
	}
}

var (
	formShape     = shape{names: []string{"Complete", "Filtered", "Missing"}, strict: true}
	filteredShape = shape{names: []string{"value", "scope", "completeness"}, required: first(3)}
)

// form reads the form of a material; value reads the value in it, and is told the state.
func (p *Parser) form(value func(*chain.Material)) (m chain.Material) {
	s := &p.s
	o := s.object(&formShape)
	switch s.member(&o) {
	case 0:
		m.State = chain.MaterialComplete
		value(&m)
	case 1:
		m.State = chain.MaterialFiltered
		for f := s.object(&filteredShape); ; {
			i := s.member(&f)
			if i == none {
				break
			}
			switch i {
			case 0:
				value(&m)
			case 1:
				m.Scope = p.scope()
			case 2:
				m.Completeness = parseWord(s, chain.ParseCompleteness)
			}
		}
	case 2:
		m.Reason = parseWord(s, chain.ParseMissingReason)
	default:
		s.failAt(o.start, "no form of material: want one of Complete, Filtered and Missing")
	}
	if s.member(&o) != none {
		s.failAt(o.start, "two forms of one material")
	}
	return m
}

// value reads the value of a material.
func (p *Parser) value(c chain.Capability, m *chain.Material) {
	switch c {
	case chain.CapabilityHeader:
		p.header()
	case chain.CapabilityTransactions:
		p.transactions(m)
	case chain.CapabilityReceipts:
		p.receipts(m)
	case chain.CapabilityLogs:
		// What it means depends on the receipts, which may follow.
		p.s.peek()
		p.logsAt = p.s.pos
		p.logs = p.checkLogs()
	case chain.CapabilityWithdrawals:
		p.withdrawals()
	case chain.CapabilityBlobSidecars:
		p.checkList(&sidecarShape)
	case chain.CapabilityTraces:
		p.checkList(&traceShape)
	case chain.CapabilityStateDiffs:
		p.checkList(&stateDiffShape)
	}
}

// checkBlooms compares the blooms that encoded receipts carry with their logs. Receipts must be complete.
func (p *Parser) checkBlooms() error {
	f := p.frame
	if len(p.blooms) != len(f.Receipts) {
		return nil // not all are encoded
	}
	p.check = slices.Grow(p.check[:0], len(p.blooms))[:len(p.blooms)]
	clear(p.check)
	for i := range p.check {
		p.bits.AddLogs(&p.check[i], f.ReceiptLogs(i))
	}
	p.bits.Flush()
	for i := range p.check {
		if p.check[i] != *p.blooms[i] {
			return fmt.Errorf("receipt %d: bloom %x, its logs give %x", i, *p.blooms[i], p.check[i])
		}
	}
	return nil
}

// joinHeader compares the header with the rest of the frame, and takes from it what follows from it.
func (p *Parser) joinHeader() error {
	f := p.frame
	if f.Header == nil {
		return nil
	}
	var h header.Header
	if err := header.Parse(f.Header, &h); err != nil {
		return fmt.Errorf("header: %w", err)
	}
	if h.Number != f.Number || *h.ParentHash != f.ParentHash || h.Timestamp != f.Timestamp {
		return fmt.Errorf("%w: number %d, parent %x, time %d, the frame says %d, %x, %d",
			ErrHash, h.Number, *h.ParentHash, h.Timestamp, f.Number, f.ParentHash, f.Timestamp)
	}
	if err := p.fields.compare(&h); err != nil {
		return err
	}
	if !p.hasOmmers && *h.OmmersHash == emptyOmmers {
		p.hasOmmers, f.Ommers = true, emptyList
	}
	p.hasWithdrawals = h.WithdrawalsRoot != nil
	// Before Shanghai there is no list of withdrawals, of which frames know nothing.
	if w := f.Material(chain.CapabilityWithdrawals); !p.hasWithdrawals && w.Complete() && len(f.Withdrawals) == 1 {
		f.Withdrawals = nil
	}
	return nil
}
