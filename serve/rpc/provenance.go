package rpc

import (
	"strconv"

	"github.com/leani-go/leani/api/jsonrpc"
	"github.com/leani-go/leani/chain"
)

// provenance says where answers come from: the header of an HTTP response has that of all its answers
// together. Errors have none. The zero value says nothing.
type provenance struct {
	answered bool
	store    bool           // the store was read; else only what the node knows of itself
	recent   bool           // blocks of the recent window were read
	sealed   bool           // blocks of files were read
	finality chain.Finality // lowest level of those blocks; 0 without blocks
}

// add makes p the provenance of its answers and another one.
func (p *provenance) add(o provenance) {
	p.answered = p.answered || o.answered
	p.store, p.recent, p.sealed = p.store || o.store, p.recent || o.recent, p.sealed || o.sealed
	if o.finality != 0 && (p.finality == 0 || o.finality < p.finality) {
		p.finality = o.finality
	}
}

// appendHeader appends the value of the header: a dictionary of RFC 8941.
func (p *provenance) appendHeader(dst []byte) []byte {
	if !p.store {
		return append(dst, "source=node"...)
	}
	dst = append(dst, "source=store"...)
	switch {
	case p.recent && p.sealed:
		dst = append(dst, ", path=mixed"...)
	case p.recent:
		dst = append(dst, ", path=recent"...)
	case p.sealed:
		dst = append(dst, ", path=materialized"...)
	}
	if p.finality != 0 {
		dst = append(append(dst, ", finality="...), p.finality.String()...)
	}
	return dst
}

// touch notes that the answer is made of blocks of the view.
func (c *call) touch(blocks chain.Range) {
	switch {
	case blocks.Empty():
	case c.touched.Empty():
		c.touched = blocks
	default:
		c.touched.From, c.touched.To = min(c.touched.From, blocks.From), max(c.touched.To, blocks.To)
	}
}

// traced is the provenance of an answer from the open view, if there is one.
func (c *call) traced() provenance {
	p := provenance{answered: true, store: c.view != nil}
	if c.view == nil || c.touched.Empty() {
		return p
	}
	recent := c.view.Recent()
	p.recent = !recent.Intersect(c.touched).Empty()
	p.sealed = !recent.Covers(c.touched)
	p.finality = finalityOf(c.view, c.touched.To-1)
	return p
}

// finalityOf is the level of a block of the view: what the node itself verified of it.
func finalityOf(view View, number uint64) chain.Finality {
	if final, ok := view.Finalized(); ok && number <= final.Number {
		return chain.Finalized
	}
	if attested, ok := view.Attested(); ok && number <= attested.Number {
		return chain.Attested
	}
	return chain.Unattested
}

// appendProvenance appends the member of the capabilities that tells the same of any block.
func (c *call) appendProvenance(dst []byte) []byte {
	recent := c.view.Recent()
	var window, files []chain.Range
	if !recent.Empty() {
		window = append(window, recent)
	}
	for _, r := range c.view.Coverage() {
		if recent.Empty() {
			files = append(files, r)
			continue
		}
		for _, part := range []chain.Range{{From: r.From, To: min(r.To, recent.From)}, {From: max(r.From, recent.To), To: r.To}} {
			if !part.Empty() {
				files = append(files, part)
			}
		}
	}
	dst = append(dst, `"provenance":{"header":"`+jsonrpc.HeaderAnswer+`","sources":["store"],"paths":{"recent":`...)
	dst = append(appendRanges(dst, window), `,"materialized":`...)
	dst = append(appendRanges(dst, files), `},"finality":{"finalized":`...)
	dst = appendMark(dst, c.view.Finalized)
	dst = append(dst, `,"attested":`...)
	return append(appendMark(dst, c.view.Attested), `}}`...)
}

// appendMark appends the number of a marked block, or null.
func appendMark(dst []byte, mark func() (chain.BlockRef, bool)) []byte {
	ref, ok := mark()
	if !ok {
		return append(dst, "null"...)
	}
	return strconv.AppendUint(dst, ref.Number, 10)
}
