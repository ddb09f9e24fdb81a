package segments

import (
	"encoding/binary"
	"errors"

	"github.com/leani-go/leani/codec"
)

// Long posting lists lie in posting pages, in blocks of up to 128 positions:
//
//	blocks  u16, reserved u16
//	headers of all blocks: base u32, offset u16, shift u8, count-1 u8
//	Elias-Fano lists of all blocks
//
// offset is where the block's list starts behind the headers. A list goes on from the last block of
// one page to the first of the next; the page table's first row is the base of a page's first block,
// so that a search for a position inside a list reads only table and target pages.

const (
	postingBlock      = 128
	postingPageHeader = 4
	postingHeader     = 8
)

// postingsWriter appends long lists to the postings column.
type postingsWriter struct {
	column   *columnWriter
	headers  []byte
	payload  []byte
	block    [postingBlock]uint32
	n        int
	raw      []byte
	firstRow uint32 // base of the open page's first block
	rows     uint64 // positions written
	closed   int    // blocks of the page written last
}

// place says where a list lies.
type place struct {
	page  uint32 // the first page
	block uint32 // the first block in it
	pages uint32 // pages after the first
	end   uint32 // one past the list's last block in its last page
}

// begin starts a list.
func (w *postingsWriter) begin() place {
	return place{page: uint32(len(w.column.table)), block: uint32(len(w.headers) / postingHeader)}
}

func (w *postingsWriter) add(position uint32) {
	w.block[w.n] = position
	if w.n++; w.n == postingBlock {
		w.flushBlock()
	}
}

// end closes the list that began at p.
func (w *postingsWriter) end(p place) place {
	w.flushBlock()
	// The last block lies in the open page, or closed the page before it.
	last, blocks := uint32(len(w.column.table)), len(w.headers)/postingHeader
	if blocks == 0 {
		last--
		blocks = w.closed
	}
	p.pages, p.end = last-p.page, uint32(blocks)
	return p
}

func (w *postingsWriter) flushBlock() {
	if w.n == 0 {
		return
	}
	values := w.block[:w.n]
	base := values[0]
	bound := uint64(values[w.n-1]-base) + 1
	shift := codec.EliasFanoShift(w.n, bound)
	if len(w.headers) == 0 {
		w.firstRow = base
	}
	w.headers = binary.LittleEndian.AppendUint32(w.headers, base)
	w.headers = binary.LittleEndian.AppendUint16(w.headers, uint16(len(w.payload)))
	w.headers = append(w.headers, byte(shift), byte(w.n-1))
	w.payload = codec.AppendEliasFano(w.payload, values, base, shift, bound)
	w.rows += uint64(w.n)
	w.n = 0
	if postingPageHeader+len(w.headers)+len(w.payload) >= randomPageSize-256 {
		w.flushPage()
	}
}

func (w *postingsWriter) flushPage() {
	if len(w.headers) == 0 {
		return
	}
	w.raw = binary.LittleEndian.AppendUint16(w.raw[:0], uint16(len(w.headers)/postingHeader))
	w.raw = append(w.raw, 0, 0)
	w.raw = append(w.raw, w.headers...)
	w.raw = append(w.raw, w.payload...)
	w.column.writePage(codec.None, w.raw, w.firstRow)
	w.closed = len(w.headers) / postingHeader
	w.headers, w.payload = w.headers[:0], w.payload[:0]
}

func (w *postingsWriter) finish() {
	w.flushPage()
	w.column.column.rows = min(w.rows, 1<<32)
}

var errPostingPage = errors.New("posting page does not hold what its header says")

// postingPage is a checked view of a posting page.
type postingPage struct {
	run     pageRun // to is the base of the next page's first block
	blocks  int
	headers []byte
	payload []byte // with slack
}

func (p *postingPage) parse(run pageRun) error {
	raw := run.raw
	if len(raw) < postingPageHeader {
		return errPostingPage
	}
	n := int(binary.LittleEndian.Uint16(raw))
	if n == 0 || raw[2]|raw[3] != 0 || postingPageHeader+n*postingHeader > len(raw) {
		return errPostingPage
	}
	*p = postingPage{
		run: run, blocks: n, headers: raw[postingPageHeader : postingPageHeader+n*postingHeader],
		payload: raw[postingPageHeader+n*postingHeader : len(raw)+codec.Slack],
	}
	return nil
}

// findBlock is the last block of [from, to) whose base is at most target, from when there is none.
func (p *postingPage) findBlock(from, to int, target uint32) int {
	for from+1 < to && p.base(from+1) <= target {
		from++
	}
	return from
}

func (p *postingPage) base(block int) uint32 {
	return binary.LittleEndian.Uint32(p.headers[block*postingHeader:])
}

// block is a block of a posting page that was found to lie within it.
type block struct {
	base  uint32
	n     int
	shift uint
	unary int
	list  []byte // with slack
}

// block locates a block.
func (p *postingPage) block(number int) (block, error) {
	h := p.headers[number*postingHeader:]
	b := block{base: binary.LittleEndian.Uint32(h), shift: uint(h[6]), n: int(h[7]) + 1}
	start, end := int(binary.LittleEndian.Uint16(h[4:])), len(p.payload)-codec.Slack
	if number+1 < p.blocks {
		end = int(binary.LittleEndian.Uint16(h[postingHeader+4:]))
	}
	b.unary = end - start - codec.PackedSize(b.n, b.shift)
	if b.n > postingBlock || start > end || end > len(p.payload)-codec.Slack || b.unary < 0 {
		return block{}, errPostingPage
	}
	b.list = p.payload[start : end+codec.Slack]
	return b, nil
}

// decode fills dst with the positions of a block, which ascend and are below bound.
func (p *postingPage) decode(number int, bound uint64, dst *[postingBlock]uint32) (int, error) {
	b, err := p.block(number)
	if err != nil {
		return 0, err
	}
	v := dst[:b.n]
	if err := codec.DecodeEliasFano(v, b.list, b.base, b.shift, b.unary); err != nil {
		return 0, err
	}
	if !ascending(v) || uint64(v[b.n-1]) >= bound {
		return 0, errPostingPage
	}
	return b.n, nil
}
