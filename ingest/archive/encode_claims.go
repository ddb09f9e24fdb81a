package archive

import (
	"github.com/ethereum/go-ethereum/common"

	"github.com/leani-go/leani/chain"
)

func (e *encoder) blockRange(r *chain.Range) {
	if r == nil || r.Empty() { // a range with both ends has at least one block
		e.text("null")
		return
	}
	e.text(`{"start":`)
	e.number(r.From)
	e.text(`,"end":`)
	e.number(r.To - 1)
	e.text("}")
}

func (e *encoder) addresses(list []common.Address) {
	e.text("[")
	for i := range list {
		e.comma(i)
		e.octets("", list[i][:])
	}
	e.text("]")
}

func (e *encoder) hashes(list []common.Hash) {
	e.text("[")
	for i := range list {
		e.comma(i)
		e.octets("", list[i][:])
	}
	e.text("]")
}

func (e *encoder) scope(s *chain.FilterScope) {
	e.text(`{"block_range":`)
	e.blockRange(s.Blocks)
	e.text(`,"addresses":`)
	e.addresses(s.Addresses)
	e.text(`,"topics":[`)
	for i, t := range s.Topics {
		e.comma(i)
		e.text(`{"position":`)
		e.number(uint64(t.Position))
		e.text(`,"alternatives":`)
		e.hashes(t.Alternatives)
		e.text("}")
	}
	e.text(`],"transaction_hashes":`)
	e.hashes(s.TransactionHashes)
	e.octets(`,"transaction_types":`, s.TransactionTypes)
	e.text(`,"senders":`)
	e.addresses(s.Senders)
	e.text(`,"recipients":`)
	e.addresses(s.Recipients)
	e.text("}")
}

func (e *encoder) optionalText(s string) {
	if s == "" {
		e.text("null")
	} else {
		e.quote(s)
	}
}

func (e *encoder) provenance(p *chain.Provenance) {
	e.text(`{"source_id":`)
	e.quote(p.SourceID)
	e.text(`,"source_kind":`)
	e.quote(p.Kind.String())
	e.text(`,"trust":`)
	e.quote(p.Trust.String())
	e.text(`,"range":`)
	e.blockRange(p.Range)
	e.text(`,"object":`)
	if o := p.Object; o == nil {
		e.text("null")
	} else {
		e.text(`{"locator":`)
		e.quote(o.Locator)
		e.text(`,"version":`)
		e.optionalText(o.Version)
		e.text(`,"checksum":`)
		if o.Checksum != nil {
			e.octets("", o.Checksum[:])
		} else {
			e.text("null")
		}
		e.text(`,"schema":`)
		e.optionalText(o.Schema)
		e.text("}")
	}
	e.text(`,"observed_at_unix_ms":`)
	e.number(p.ObservedAt)
	e.text(`,"projection":[`)
	for i, column := range p.Projection {
		e.comma(i)
		e.quote(column)
	}
	e.text("]}")
}

func (e *encoder) verification(r *chain.VerificationReport) {
	for i, c := range r.Checks() {
		if i == 0 {
			e.text("{")
		} else {
			e.text(",")
		}
		e.quote(verificationShape.names[i])
		e.text(`:{"status":`)
		e.quote(c.Status.String())
		e.text(`,"detail":`)
		e.optionalText(c.Detail)
		e.text("}")
	}
	e.text(`,"consensus_anchor":`)
	if a := r.Anchor; a == nil {
		e.text("null")
	} else {
		e.text(`{"finality":`)
		e.quote(a.Finality.Name())
		e.octets(`,"execution_block_hash":`, a.ExecutionBlockHash[:])
		e.text(`,"beacon_slot":`)
		e.number(a.BeaconSlot)
		e.octets(`,"beacon_block_root":`, a.BeaconBlockRoot[:])
		e.text("}")
	}
	e.text("}")
}
