package segments

import (
	"encoding/binary"

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

// tableSize counts what decides about the size of a table: terms with one position, other terms, and
// the positions of short lists.
type tableSize struct{ singles, others, inlined uint64 }

// add counts a term with a number of positions.
func (s *tableSize) add(positions uint64) {
	switch {
	case positions == 1:
		s.singles++
	case positions < inlinePositions:
		s.others++
		s.inlined += positions
	default:
		s.others++
	}
}

// pages estimates from its entropy how many pages a table takes whose positions are below bound.
func (s *tableSize) pages(bound uint64) uint64 {
	const perTerm = 2 + 10 + 1 // Elias-Fano of the terms of a page, and the bit that says which have lists
	width := uint64(codec.Width(bound))
	bits := s.singles*(perTerm+width) + s.others*(perTerm+14+12) + s.inlined*(width/2+4)
	return max(1, (bits/8+tableTargetBytes-1)/tableTargetBytes)
}

func pageOf(term uint32, pages uint64) uint64 { return uint64(term) * pages >> 32 }

// pageStart is the smallest term of page p.
func pageStart(p, pages uint64) uint64 { return (p<<32 + pages - 1) / pages }

// begin starts the list of the next term, which is greater than the one before.
func (w *tableWriter) begin(term uint32) {
	w.flushTo(pageOf(term, w.pages))
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

// flushTo writes the pages before page.
func (w *tableWriter) flushTo(page uint64) {
	for w.page < page && w.column.file.err == nil {
		w.flush()
	}
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
	w.flushTo(w.pages)
	w.column.column.rows = w.rows
}
