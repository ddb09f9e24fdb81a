package rpc

import (
	"slices"
	"strconv"

	"github.com/leani-go/leani/api/jsonrpc"
	"github.com/leani-go/leani/chain"
)

// provenance says where answers come from: the header of an HTTP response has that of all its answers
// together. Errors have none. The zero value says nothing.
type provenance struct {
	answered bool
	store    bool            // the store was read; else only what the node knows of itself
	recent   bool            // blocks of the recent window were read
	sealed   bool            // blocks of files were read
	sources  []HistorySource // whose blocks were fetched on demand
	finality chain.Finality  // lowest level of those blocks; 0 without blocks
}

// add makes p the provenance of its answers and another one.
func (p *provenance) add(o provenance) {
	p.answered = p.answered || o.answered
	p.store, p.recent, p.sealed = p.store || o.store, p.recent || o.recent, p.sealed || o.sealed
	for _, source := range o.sources {
		if !slices.Contains(p.sources, source) {
			p.sources = append(slices.Clip(p.sources), source)
		}
	}
	if o.finality != 0 && (p.finality == 0 || o.finality < p.finality) {
		p.finality = o.finality
	}
}

// appendHeader appends the value of the header: a dictionary of RFC 8941.
func (p *provenance) appendHeader(dst []byte) []byte {
	if !p.store {
		return append(dst, "source=node"...)
	}
	retained := p.recent || p.sealed
	switch {
	case len(p.sources) == 0:
		dst = append(dst, "source=store"...)
	case len(p.sources) == 1 && !retained:
		dst = appendSourceID(append(dst, "source="...), p.sources[0].ID)
	default:
		dst = append(dst, "source=("...)
		if retained {
			dst = append(dst, "store "...)
		}
		for i, source := range p.sources {
			if i > 0 {
				dst = append(dst, ' ')
			}
			dst = appendSourceID(dst, source.ID)
		}
		dst = append(dst, ')')
	}
	switch {
	case p.recent && p.sealed, retained && len(p.sources) > 0:
		dst = append(dst, ", path=mixed"...)
	case p.recent:
		dst = append(dst, ", path=recent"...)
	case p.sealed:
		dst = append(dst, ", path=materialized"...)
	case len(p.sources) > 0:
		dst = append(dst, ", path=on_demand"...)
	}
	if p.finality != 0 {
		dst = append(append(dst, ", finality="...), p.finality.String()...)
	}
	if trust := p.trust(); trust != "" {
		dst = append(append(dst, ", trust="...), trust...)
	}
	return dst
}

// trustedDataset is the lower one of the words of HistorySource.Trust.
const trustedDataset = "trusted_dataset"

// trust is the lowest trust of sources, empty without.
func (p *provenance) trust() (trust string) {
	for _, source := range p.sources {
		if trust == "" || source.Trust == trustedDataset {
			trust = source.Trust
		}
	}
	return trust
}

// appendSourceID appends an id as a string of RFC 8941, which has printable ASCII alone; anything else becomes a
// question mark.
func appendSourceID(dst []byte, id string) []byte {
	dst = append(dst, '"')
	for _, r := range id {
		switch {
		case r == '"' || r == '\\':
			dst = append(dst, '\\', byte(r))
		case r < ' ' || r > '~':
			dst = append(dst, '?')
		default:
			dst = append(dst, byte(r))
		}
	}
	return append(dst, '"')
}

// noteFetched notes where the blocks of a request came from. They are as final as the node knows their retained
// descendants to be; without such there is no link that a mark could speak of.
func (f *fetch) noteFetched() {
	level := chain.Finality(0)
	for _, g := range f.gaps {
		of := chain.Unattested
		if g.above.known {
			of = finalityOf(f.view, g.To)
		}
		if level == 0 || of < level {
			level = of
		}
	}
	f.fetched.add(provenance{sources: []HistorySource{f.source}, finality: level})
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
	p.add(c.fetched)
	if c.view == nil || c.touched.Empty() {
		return p
	}
	recent := c.view.Recent()
	p.recent = !recent.Intersect(c.touched).Empty()
	p.sealed = !recent.Covers(c.touched)
	p.add(provenance{finality: finalityOf(c.view, c.touched.To-1)})
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
	dst = append(dst, `"provenance":{"header":"`+jsonrpc.HeaderAnswer+`","sources":["store"`...)
	if c.history != nil {
		for _, source := range c.history.Abilities().Sources {
			dst = jsonrpc.AppendString(append(dst, ','), source.ID)
		}
	}
	dst = append(dst, `],"paths":{"recent":`...)
	dst = append(appendRanges(dst, window), `,"materialized":`...)
	dst = appendRanges(dst, files)
	if head, known := c.view.Head(); known && c.history != nil {
		dst = append(dst, `,"on_demand":`...)
		dst = appendRanges(dst, missing(chain.Range{From: 0, To: head + 1}, c.view.Coverage()))
	}
	dst = append(dst, `},"finality":{"finalized":`...)
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
