package segments

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/bits"

	"github.com/leani-go/leani/codec"
)

var errTablePage = errors.New("hash table page does not hold what its header says")

// tablePage is a checked view of a hash table page.
type tablePage struct {
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

// parse views page number of a table of pages pages.
func (p *tablePage) parse(raw []byte, number, pages uint32) error {
	le := binary.LittleEndian
	if len(raw) < tablePageHeader {
		return errTablePage
	}
	terms, lists := int(le.Uint32(raw)), int(le.Uint32(raw[4:]))
	unary, payload := int(le.Uint32(raw[8:])), int(le.Uint32(raw[12:]))
	if terms > 8*len(raw) || lists > terms || payload > len(raw) || unary > len(raw) {
		return errTablePage
	}
	*p = tablePage{start: uint32(pageStart(uint64(number), uint64(pages))), terms: terms, unary: unary, shift: uint(raw[16])}
	rest := raw[tablePageHeader : len(raw)+codec.Slack]
	if p.shift > 32 || raw[19] != 0 {
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
	list   place    // where they lie when they are many

	start, end int // bytes in the payload of the page; none for a single position
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
	out := positions{start: offset}
	head, k := binary.Uvarint(b)
	count := head >> 1
	if k <= 0 || count == 0 || count > bound {
		return positions{}, errTablePage
	}
	b = b[k:]
	out.count = count
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
		if !ascending(out.inline) || uint64(out.inline[n-1]) >= bound {
			return positions{}, errTablePage
		}
		out.end = end - len(b) + size
		return out, nil
	}
	for _, to := range []*uint32{&out.list.page, &out.list.block, &out.list.pages, &out.list.end} {
		v, k := binary.Uvarint(b)
		if k <= 0 || bits.Len64(v) > 32 {
			return positions{}, errTablePage
		}
		*to, b = uint32(v), b[k:]
	}
	out.end = end - len(b)
	return out, nil
}

// ascending tells whether values are in order without repeats. Elias-Fano lists of damaged pages need
// not be.
func ascending(values []uint32) bool {
	for i := 1; i < len(values); i++ {
		if values[i] <= values[i-1] {
			return false
		}
	}
	return true
}

// lookup finds a term in a hash table whose positions are below bound. The zero positions mean that it
// is not there.
func (x *Index) lookup(c *column, term uint32, bound uint64, access *Access) (positions, error) {
	if c.pages == 0 {
		return positions{}, nil
	}
	var memo tableMemo
	run, err := x.page(c, uint32(pageOf(term, uint64(c.pages))), access, &memo)
	if err != nil {
		return positions{}, err
	}
	var page tablePage
	if err := page.parse(run.raw, run.number, c.pages); err != nil {
		return positions{}, x.damaged(&run, err)
	}
	from, to := codec.FindEliasFano(page.list, page.terms, term-page.start, page.shift, page.unary)
	if from == to {
		return positions{}, nil
	}
	p, err := page.at(from, bound, nil)
	if err == nil && !x.reaches(c, &p) {
		err = errTablePage
	}
	if err != nil {
		return positions{}, x.damaged(&run, fmt.Errorf("term %08x: %w", term, err))
	}
	return p, nil
}

// reaches tells whether the positions of a list in a table are there: long lists belong to log terms and
// lie in the postings.
func (x *Index) reaches(c *column, p *positions) bool {
	return p.inline != nil || c == x.terms && uint64(p.list.page)+uint64(p.list.pages) < uint64(x.postings.pages)
}
