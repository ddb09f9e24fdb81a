package segments

import (
	"encoding/binary"
	"math"

	"github.com/leani-go/leani/chain"
)

// This file writes and reads what a frame says about its way here: provenance and verification.

// Parts of a step of provenance that may not be known.
const (
	provenanceHasRange = 1 << iota
	provenanceHasObject
	provenanceHasChecksum
)

func appendClaims(dst []byte, f *chain.Frame, flags uint64) []byte {
	if flags&frameHasProvenance != 0 {
		dst = binary.AppendUvarint(dst, uint64(len(f.Provenance)))
		for i := range f.Provenance {
			dst = appendProvenance(dst, &f.Provenance[i])
		}
	}
	if flags&frameHasChecks != 0 {
		for _, c := range f.Verification.Checks() {
			dst = append(dst, byte(c.Status))
			dst = appendText(dst, c.Detail)
		}
	}
	if flags&frameHasAnchor != 0 {
		a := f.Verification.Anchor
		dst = append(dst, byte(a.Finality))
		dst = append(dst, a.ExecutionBlockHash[:]...)
		dst = binary.AppendUvarint(dst, a.BeaconSlot)
		dst = append(dst, a.BeaconBlockRoot[:]...)
	}
	return dst
}

func appendProvenance(dst []byte, p *chain.Provenance) []byte {
	flags := byte(0)
	if p.Range != nil {
		flags |= provenanceHasRange
	}
	if p.Object != nil {
		flags |= provenanceHasObject
		if p.Object.Checksum != nil {
			flags |= provenanceHasChecksum
		}
	}
	dst = append(dst, flags, byte(p.Kind), byte(p.Trust))
	dst = appendText(dst, p.SourceID)
	if p.Range != nil {
		dst = binary.AppendUvarint(dst, p.Range.From)
		dst = binary.AppendUvarint(dst, p.Range.To)
	}
	if o := p.Object; o != nil {
		dst = appendText(dst, o.Locator)
		dst = appendText(dst, o.Version)
		dst = appendText(dst, o.Schema)
		if o.Checksum != nil {
			dst = append(dst, o.Checksum[:]...)
		}
	}
	dst = binary.AppendUvarint(dst, p.ObservedAt)
	dst = binary.AppendUvarint(dst, uint64(len(p.Projection)))
	for _, s := range p.Projection {
		dst = appendText(dst, s)
	}
	return dst
}

func (r *wireReader) claims(f *chain.Frame, flags uint64) {
	if flags&frameHasProvenance != 0 {
		for range r.positive(6) {
			f.Provenance = append(f.Provenance, r.provenance())
			if r.bad {
				return
			}
		}
	}
	if flags&frameHasChecks != 0 {
		for _, c := range f.Verification.Checks() {
			c.Status, c.Detail = chain.CheckStatus(r.octet(byte(chain.Unavailable))), r.text()
		}
	}
	if flags&frameHasAnchor != 0 {
		f.Verification.Anchor = &chain.ConsensusAnchor{
			Finality:           chain.Finality(r.octet(byte(chain.Finalized))),
			ExecutionBlockHash: r.hashValue(),
			BeaconSlot:         r.number(math.MaxUint64),
			BeaconBlockRoot:    r.hashValue(),
		}
	}
}

func (r *wireReader) provenance() (p chain.Provenance) {
	flags := r.octet(provenanceHasRange | provenanceHasObject | provenanceHasChecksum)
	if flags&provenanceHasChecksum != 0 && flags&provenanceHasObject == 0 {
		r.fail()
	}
	p.Kind, p.Trust = chain.SourceKind(r.octet(byte(chain.Synthetic))), chain.Trust(r.octet(byte(chain.ProtocolVerified)))
	p.SourceID = r.text()
	if flags&provenanceHasRange != 0 {
		p.Range = &chain.Range{From: r.number(math.MaxUint64), To: r.number(math.MaxUint64)}
	}
	if flags&provenanceHasObject != 0 {
		p.Object = &chain.SourceObject{Locator: r.text(), Version: r.text(), Schema: r.text()}
		if flags&provenanceHasChecksum != 0 {
			h := r.hashValue()
			p.Object.Checksum = &h
		}
	}
	p.ObservedAt = r.number(math.MaxUint64)
	for range r.count(1) {
		p.Projection = append(p.Projection, r.text())
	}
	return p
}
