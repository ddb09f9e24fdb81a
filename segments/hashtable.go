package segments

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/bits"

	"github.com/leani-go/leani/codec"
)

// A hash table maps 32-bit terms to ascending lists of positions. Its pages split the terms evenly:
// page p of n holds the terms t with t*n>>32 == p, so that a look-up computes its page. A page:
//
//	terms     u32
//	lists     u32   terms with more than one position
//	unary     u32   bytes of the unary part of the terms
//	payload   u32   bytes
//	shift u8, position width u8, offset width u8, reserved u8
//	terms     Elias-Fano list of what is left of each term behind the start of the page
//	listed    one bit a term: it has more than one position
//	positions packed, one for each term with a single position
//	offsets   packed, for each other term where its list starts in the payload
//	payload   for each other term the uvarint count<<1 | long, then
//	          short: Elias-Fano over all positions of the index
//	          long: first page, first block, further pages, end block of the postings, uvarints

const (
	tablePageHeader = 20
	// tableTargetBytes is how full pages are on average: they vary, and half a page more than
	// randomPageSize would cost a read little.
	tableTargetBytes = 3600
	// inlinePositions is the length from which a list lies in the postings, if the table has any.
	inlinePositions = postingBlock
)

// tableWriter writes a hash table from terms in ascending order.
type tableWriter struct {
	column    *columnWriter
	postings  *postingsWriter // nil when all lists are inline
	pages     uint64
	positions uint64 // bound of all positions

	page    uint64 // the open page
	terms   []uint32
	listed  []byte
	singles []uint32
	offsets []uint32
	payload []byte

	raw    []byte   // scratch
	rows   uint64   // terms written
	inline []uint32 // the open list while it is short
	inLong bool     // the open list went to the postings
	list   place
	count  uint64
}

// tablePages estimates the pages of a table from its entropy: single terms, other terms, and their
// positions.
func tablePages(singles, others, inlined, positions uint64) uint64 {
	perTerm := uint64(2 + 10 + 1)
	width := uint64(codec.Width(positions))
	total := singles*(perTerm+width) + others*(perTerm+14+12) + inlined*(width/2+4)
	return max(1, (total/8+tableTargetBytes-1)/tableTargetBytes)
}

func pageOf(term uint32, pages uint64) uint64 { return uint64(term) * pages >> 32 }

// pageStart is the smallest term of page p.
func pageStart(p, pages uint64) uint64 { return (p<<32 + pages - 1) / pages }

// begin starts the list of the next term, which is greater than the one before.
func (w *tableWriter) begin(term uint32) {
	for p := pageOf(term, w.pages); w.page < p; {
		w.flush()
	}
	w.terms = append(w.terms, term)
	w.inline, w.inLong, w.count = w.inline[:0], false, 0
}

// add appends a position above the one before.
func (w *tableWriter) add(position uint32) {
	if w.inLong {
		w.postings.add(position)
		w.count++
		return
	}
	w.inline = append(w.inline, position)
	if len(w.inline) == inlinePositions && w.postings != nil {
		w.inLong = true
		w.count = inlinePositions
		w.list = w.postings.begin()
		for _, p := range w.inline {
			w.postings.add(p)
		}
	}
}

// end closes the list.
func (w *tableWriter) end() {
	i := len(w.terms) - 1
	if i%8 == 0 {
		w.listed = append(w.listed, 0)
	}
	if !w.inLong && len(w.inline) == 1 {
		w.singles = append(w.singles, w.inline[0])
		return
	}
	w.listed[i/8] |= 1 << (i % 8)
	w.offsets = append(w.offsets, uint32(len(w.payload)))
	if w.inLong {
		p := w.postings.end(w.list)
		for _, v := range []uint64{w.count<<1 | 1, uint64(p.page), uint64(p.block), uint64(p.pages), uint64(p.end)} {
			w.payload = binary.AppendUvarint(w.payload, v)
		}
		return
	}
	n := len(w.inline)
	w.payload = binary.AppendUvarint(w.payload, uint64(n)<<1)
	w.payload = codec.AppendEliasFano(w.payload, w.inline, 0, codec.EliasFanoShift(n, w.positions), w.positions)
}

// flush writes the open page and opens the next.
func (w *tableWriter) flush() {
	le := binary.LittleEndian
	start, end := pageStart(w.page, w.pages), pageStart(w.page+1, w.pages)
	n, span := len(w.terms), end-start
	shift := codec.EliasFanoShift(n, span)
	width := codec.Width(max(w.positions, 1) - 1)
	offsetWidth := codec.Width(uint64(len(w.payload)))
	b := le.AppendUint32(w.raw[:0], uint32(n))
	b = le.AppendUint32(b, uint32(len(w.offsets)))
	b = le.AppendUint32(b, uint32(codec.EliasFanoUnary(n, shift, span)))
	b = le.AppendUint32(b, uint32(len(w.payload)))
	b = append(b, byte(shift), byte(width), byte(offsetWidth), 0)
	b = codec.AppendEliasFano(b, w.terms, uint32(start), shift, span)
	b = append(b, w.listed...)
	b = codec.AppendPacked(b, w.singles, width)
	b = codec.AppendPacked(b, w.offsets, offsetWidth)
	b = append(b, w.payload...)
	w.column.writePage(codec.None, b, uint32(w.page))
	w.rows += uint64(n)
	w.terms, w.listed, w.singles, w.offsets, w.payload, w.raw = w.terms[:0], w.listed[:0], w.singles[:0], w.offsets[:0], w.payload[:0], b
	w.page++
}

func (w *tableWriter) finish() {
	for w.page < w.pages {
		w.flush()
	}
	w.column.column.rows = w.rows
}

var errTablePage = errors.New("hash table page does not hold what its header says")

// tablePage is a checked view of a hash table page.
type tablePage struct {
	run     pageRun
	start   uint32 // smallest term of the page
	terms   int
	shift   uint
	unary   int
	list    []byte // Elias-Fano of terms
	listed  []byte
	singles codec.Packed
	offsets codec.Packed
	payload []byte // with slack
}

func (p *tablePage) parse(run pageRun, number, pages uint64) error {
	le := binary.LittleEndian
	raw := run.raw
	if len(raw) < tablePageHeader {
		return errTablePage
	}
	terms, lists := int(le.Uint32(raw)), int(le.Uint32(raw[4:]))
	unary, payload := int(le.Uint32(raw[8:])), int(le.Uint32(raw[12:]))
	if terms > 8*len(raw) || lists > terms || payload > len(raw) || unary > len(raw) {
		return errTablePage
	}
	*p = tablePage{run: run, start: uint32(pageStart(number, pages)), terms: terms, unary: unary, shift: uint(raw[16])}
	rest := raw[tablePageHeader : len(raw)+codec.Slack]
	if p.shift > 32 {
		return errTablePage
	}
	size := 0
	if terms > 0 {
		size = p.unary + codec.PackedSize(terms, p.shift)
	}
	if len(rest) < size+(terms+7)/8+codec.Slack {
		return errTablePage
	}
	p.list, rest = rest[:size+codec.Slack], rest[size:]
	bitmap := (terms + 7) / 8
	p.listed, rest = rest[:bitmap+codec.Slack], rest[bitmap:]
	if codec.Rank(p.listed, uint(terms)) != uint(lists) {
		return errTablePage
	}
	var ok bool
	if p.singles, rest, ok = codec.NewPacked(rest, terms-lists, uint(raw[17])); !ok {
		return errTablePage
	}
	if p.offsets, rest, ok = codec.NewPacked(rest, lists, uint(raw[18])); !ok || len(rest) != payload+codec.Slack {
		return errTablePage
	}
	p.payload = rest
	return nil
}

// positions are what one term maps to.
type positions struct {
	count  uint64
	inline []uint32 // all of them when they are few, else nil
	list   place
}

// at reads the list of the term with number i in the page. bound is the bound of all positions.
// inline positions are appended to buf.
func (p *tablePage) at(i int, bound uint64, buf []uint32) (positions, error) {
	rank := int(codec.Rank(p.listed, uint(i)))
	if p.listed[i>>3]>>(i&7)&1 == 0 {
		v := p.singles.At(i - rank)
		if v >= bound {
			return positions{}, errTablePage
		}
		return positions{count: 1, inline: append(buf, uint32(v))}, nil
	}
	end := len(p.payload) - codec.Slack
	offset := int(p.offsets.At(rank))
	if offset > end {
		return positions{}, errTablePage
	}
	b := p.payload[offset:end]
	head, k := binary.Uvarint(b)
	count := head >> 1
	if k <= 0 || count == 0 || count > bound {
		return positions{}, errTablePage
	}
	b = b[k:]
	out := positions{count: count}
	if head&1 == 0 {
		if count > uint64(len(b))*8 { // a position takes two bits and more
			return positions{}, errTablePage
		}
		n := int(count)
		shift := codec.EliasFanoShift(n, bound)
		size := codec.EliasFanoSize(n, shift, bound)
		if len(b) < size {
			return positions{}, errTablePage
		}
		out.inline = append(buf, make([]uint32, n)...)[len(buf):]
		if err := codec.DecodeEliasFano(out.inline, b[:size+codec.Slack], 0, shift, codec.EliasFanoUnary(n, shift, bound)); err != nil {
			return positions{}, err
		}
		if uint64(out.inline[n-1]) >= bound {
			return positions{}, errTablePage
		}
		return out, nil
	}
	for _, to := range []*uint32{&out.list.page, &out.list.block, &out.list.pages, &out.list.end} {
		v, k := binary.Uvarint(b)
		if k <= 0 || bits.Len64(v) > 32 {
			return positions{}, errTablePage
		}
		*to, b = uint32(v), b[k:]
	}
	return out, nil
}

// lookup finds a term in a hash table. The zero positions mean that it is not there.
func (f *File) lookup(c *column, term uint32, bound uint64, buf []uint32, access *Access) (positions, error) {
	if c.pages == 0 {
		return positions{}, nil
	}
	number := pageOf(term, uint64(c.pages))
	var page tablePage
	if err := f.tableAt(c, uint32(number), &page, access); err != nil {
		return positions{}, err
	}
	from, to := codec.FindEliasFano(page.list, page.terms, term-page.start, page.shift, page.unary)
	if from == to {
		return positions{}, nil
	}
	p, err := page.at(from, bound, buf)
	if err != nil {
		return positions{}, f.damaged(page.run, fmt.Errorf("term %08x: %w", term, err))
	}
	return p, nil
}

// tableAt reads page i of a hash table.
func (f *File) tableAt(c *column, i uint32, page *tablePage, access *Access) error {
	e, err := f.entry(c, i, access)
	if err != nil {
		return err
	}
	raw, err := f.readPage(e, int(i), access)
	if err != nil {
		return err
	}
	run := pageRun{raw: raw, number: i, offset: e.offset}
	if err := page.parse(run, uint64(i), uint64(c.pages)); err != nil {
		return f.damaged(run, err)
	}
	return nil
}
