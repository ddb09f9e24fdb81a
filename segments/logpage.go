package segments

import (
	"encoding/binary"
	"errors"
	"math/bits"

	"github.com/leani-go/leani/codec"
)

// A log page holds all fields of a run of consecutive logs, each field as a packed column of its
// own, so that reading one log touches one page:
//
//	rows        u16   number of logs
//	breaks      u16   number of breaks
//	block       u32   position of the first log's block in the file
//	transaction u32   index of the first log's transaction in its block
//	log         u32   index of the first log in its block
//	topics      u16   number of packed topic codes
//	shape width, topic width, length width: u8 each; reserved u8
//	advance     u16   number of advance bits
//	reserved    u16
//	data        u32   bytes of trimmed data
//	breaks      {row u16, blocks u32, transaction u32} each
//	shapes      packed codes, one a row
//	extra       two bit planes: topics beyond the first, 0 to 3
//	topics      packed codes
//	advance     unary: for each row as many ones as transactions lie between it and the row
//	            before, then a zero
//	lengths     packed sizes of the trimmed data of each row
//	anchors     u16 for each 16th row: where its trimmed data starts
//	data        trimmed data of all rows
//
// A break at a row says that the block changes there, or that the transaction index jumps far: the
// row starts a new count with the given index, its block lies the given number of blocks after the
// previous row's, and its advance is zero.

const (
	logPageHeader  = 32
	breakSize      = 10
	anchorRows     = 16
	maximumAdvance = 200 // ones in a row before a break is cheaper
)

// breakAt is one break of a log page.
type breakAt struct {
	row         uint16
	blocks      uint32
	transaction uint32
}

// logPageBuilder collects rows of one page.
type logPageBuilder struct {
	block, transaction, log uint32 // of the first row
	lastTransaction         uint32
	breaks                  []breakAt
	shapes                  []uint32
	topics                  []uint32
	extra                   [2][]byte
	advance                 codec.BitWriter
	advanceBits             int
	lengths                 []uint32
	data                    []byte
	maxShape, maxTopic      uint32
	maxLength               uint32
	buf                     []byte
}

func (p *logPageBuilder) rows() int { return len(p.shapes) }

// size estimates the raw size with one more row.
func (p *logPageBuilder) size(topics int, length int) int {
	rows := p.rows() + 1
	width := int(codec.Width(uint64(max(p.maxLength, uint32(length)))))
	return logPageHeader + len(p.breaks)*breakSize +
		(rows*(int(codec.Width(uint64(p.maxShape)))+2+width)+(len(p.topics)+topics)*int(codec.Width(uint64(p.maxTopic)))+p.advanceBits)/8 +
		rows/anchorRows*2 + len(p.data) + length + 8
}

func (p *logPageBuilder) reset() {
	advance := p.advance.Finish()
	*p = logPageBuilder{
		breaks: p.breaks[:0], shapes: p.shapes[:0], topics: p.topics[:0],
		extra: [2][]byte{p.extra[0][:0], p.extra[1][:0]}, lengths: p.lengths[:0], data: p.data[:0], buf: p.buf[:0],
	}
	p.advance.Reset(advance[:0])
}

// add appends a row. newBlocks is the number of blocks since the row before, 0 within a block.
func (p *logPageBuilder) add(shape uint32, topics []uint32, newBlocks, transaction uint32, data []byte) {
	row := len(p.shapes)
	switch {
	case row == 0:
	case newBlocks > 0 || transaction-p.lastTransaction > maximumAdvance:
		p.breaks = append(p.breaks, breakAt{uint16(row), newBlocks, transaction})
	default:
		for range transaction - p.lastTransaction {
			p.advance.Add(1, 1)
			p.advanceBits++
		}
	}
	p.advance.Add(0, 1)
	p.advanceBits++
	p.lastTransaction = transaction
	p.shapes = append(p.shapes, shape)
	p.maxShape = max(p.maxShape, shape)
	if row%8 == 0 {
		p.extra[0], p.extra[1] = append(p.extra[0], 0), append(p.extra[1], 0)
	}
	n := byte(len(topics))
	p.extra[0][row/8] |= n & 1 << (row % 8)
	p.extra[1][row/8] |= n >> 1 << (row % 8)
	for _, t := range topics {
		p.topics = append(p.topics, t)
		p.maxTopic = max(p.maxTopic, t)
	}
	p.lengths = append(p.lengths, uint32(len(data)))
	p.maxLength = max(p.maxLength, uint32(len(data)))
	p.data = append(p.data, data...)
}

// encode returns the raw page, valid until the next call.
func (p *logPageBuilder) encode() []byte {
	le := binary.LittleEndian
	shapeWidth, topicWidth, lengthWidth := codec.Width(uint64(p.maxShape)), codec.Width(uint64(p.maxTopic)), codec.Width(uint64(p.maxLength))
	b := p.buf[:0]
	b = le.AppendUint16(b, uint16(len(p.shapes)))
	b = le.AppendUint16(b, uint16(len(p.breaks)))
	b = le.AppendUint32(b, p.block)
	b = le.AppendUint32(b, p.transaction)
	b = le.AppendUint32(b, p.log)
	b = le.AppendUint16(b, uint16(len(p.topics)))
	b = append(b, byte(shapeWidth), byte(topicWidth), byte(lengthWidth), 0)
	b = le.AppendUint16(b, uint16(p.advanceBits))
	b = append(b, 0, 0, 0, 0)
	b = le.AppendUint32(b, uint32(len(p.data)))
	for _, k := range p.breaks {
		b = le.AppendUint16(b, k.row)
		b = le.AppendUint32(b, k.blocks)
		b = le.AppendUint32(b, k.transaction)
	}
	b = codec.AppendPacked(b, p.shapes, shapeWidth)
	b = append(b, p.extra[0]...)
	b = append(b, p.extra[1]...)
	b = codec.AppendPacked(b, p.topics, topicWidth)
	advance := p.advance.Finish()
	b = append(b, advance...)
	p.advance.Reset(advance[:0])
	b = codec.AppendPacked(b, p.lengths, lengthWidth)
	at := uint32(0)
	for i, n := range p.lengths {
		if i%anchorRows == 0 && i > 0 {
			b = le.AppendUint16(b, uint16(at))
		}
		at += n
	}
	b = append(b, p.data...)
	p.buf = b
	return b
}

var errLogPage = errors.New("log page does not hold what its header says")

// logPage is a decoded log page: a view of its columns. Reading a row needs no checks beyond the row
// number, since parse checked that all columns lie inside the page.
type logPage struct {
	from, to   uint32 // rows of the file
	block      uint32
	tx         uint32
	log        uint32
	breaks     []byte
	shapes     codec.Packed
	extra      [2][]byte
	topics     codec.Packed
	topicCount int
	advance    []byte
	advances   uint
	lengths    codec.Packed
	anchors    []byte
	data       []byte

	// place remembers where the last row's transaction was found, so that rows read in order cost
	// a step each.
	place rowPlace
}

// rowPlace is a position in the advance bits.
type rowPlace struct {
	row    int  // row whose place this is
	bit    uint // position of the row's zero bit
	block  uint32
	tx     uint32
	log    uint32 // index of the row in its block
	breaks int    // breaks passed
}

// parse views a page that holds rows [from, to) of the file.
func (p *logPage) parse(raw []byte, from, to uint32) error {
	le := binary.LittleEndian
	if len(raw) < logPageHeader {
		return errLogPage
	}
	padded := raw[:len(raw)+codec.Slack]
	rows, breaks, topics := int(le.Uint16(raw)), int(le.Uint16(raw[2:])), int(le.Uint16(raw[16:]))
	*p = logPage{
		from: from, to: to, block: le.Uint32(raw[4:]), tx: le.Uint32(raw[8:]), log: le.Uint32(raw[12:]),
		topicCount: topics, advances: uint(le.Uint16(raw[22:])),
	}
	data := int(le.Uint32(raw[28:]))
	if rows == 0 || uint32(rows) != to-from || uint(rows) > p.advances {
		return errLogPage
	}
	rest := padded[logPageHeader:]
	take := func(n int) (b []byte) {
		if n < 0 || len(rest) < n+codec.Slack {
			rest = nil
			return nil
		}
		b, rest = rest[:n+codec.Slack], rest[n:]
		return b
	}
	p.breaks = take(breaks * breakSize)
	var ok bool
	if p.shapes, rest, ok = codec.NewPacked(rest, rows, uint(raw[18])); !ok {
		return errLogPage
	}
	p.extra[0], p.extra[1] = take((rows+7)/8), take((rows+7)/8)
	if p.topics, rest, ok = codec.NewPacked(rest, topics, uint(raw[19])); !ok {
		return errLogPage
	}
	p.advance = take(int(p.advances+7) / 8)
	if p.lengths, rest, ok = codec.NewPacked(rest, rows, uint(raw[20])); !ok {
		return errLogPage
	}
	p.anchors = take((rows - 1) / anchorRows * 2)
	if len(rest) != data+codec.Slack || p.extra[1] == nil || p.advance == nil {
		return errLogPage
	}
	p.data = rest[:data]
	extra := codec.Rank(p.extra[0], uint(rows)) + 2*codec.Rank(p.extra[1], uint(rows))
	if int(extra) != topics || p.advances-codec.Rank(p.advance, p.advances) != uint(rows) {
		return errLogPage
	}
	last := -1
	for i := range breaks {
		row := int(le.Uint16(p.breaks[i*breakSize:]))
		if row <= last || row == 0 || row >= rows {
			return errLogPage
		}
		last = row
	}
	p.place = rowPlace{row: -1, block: p.block, tx: p.tx, log: p.log - 1}
	return nil
}

// shape is the shape code of row i of the page.
func (p *logPage) shape(i int) uint32 { return uint32(p.shapes.At(i)) }

// extraTopics is the number of topic codes of row i, and the position of the first.
func (p *logPage) extraTopics(i int) (first, n int) {
	first = int(codec.Rank(p.extra[0], uint(i)) + 2*codec.Rank(p.extra[1], uint(i)))
	n = int(p.extra[0][i>>3]>>(i&7)&1) + 2*int(p.extra[1][i>>3]>>(i&7)&1)
	return first, n
}

// trimmed is the trimmed data of row i.
func (p *logPage) trimmed(i int) ([]byte, error) {
	at := 0
	if a := i / anchorRows; a > 0 {
		at = int(binary.LittleEndian.Uint16(p.anchors[(a-1)*2:]))
	}
	for k := i - i%anchorRows; k < i; k++ {
		at += int(p.lengths.At(k))
	}
	end := at + int(p.lengths.At(i))
	if end > len(p.data) {
		return nil, errLogPage
	}
	return p.data[at:end], nil
}

// locate moves place to row i.
func (p *logPage) locate(i int) *rowPlace {
	at := &p.place
	if i < at.row {
		*at = rowPlace{row: -1, block: p.block, tx: p.tx, log: p.log - 1}
	}
	for at.row < i {
		// The next stop: row i, or the row before the next break.
		stop := i
		breakRow := -1
		if at.breaks*breakSize < len(p.breaks)-codec.Slack {
			breakRow = int(binary.LittleEndian.Uint16(p.breaks[at.breaks*breakSize:]))
			if breakRow <= i {
				stop = breakRow
			}
		}
		at.tx += p.advanceTo(at, stop)
		at.log += uint32(stop - at.row)
		at.row = stop
		if stop == breakRow {
			b := p.breaks[at.breaks*breakSize:]
			blocks := binary.LittleEndian.Uint32(b[2:])
			at.tx = binary.LittleEndian.Uint32(b[6:])
			at.block += blocks
			if blocks > 0 {
				at.log = 0
			}
			at.breaks++
		}
	}
	return at
}

// advanceTo moves the bit position of at to the zero of row stop and returns the ones passed.
func (p *logPage) advanceTo(at *rowPlace, stop int) (ones uint32) {
	zeros := stop - at.row // to pass, the last of them is the row's own
	bit := at.bit
	if at.row >= 0 {
		bit++ // behind the zero of the current row
	}
	for {
		w := ^codec.ReadBits(p.advance, bit, 56) & (1<<56 - 1) // ones mark rows
		if n := bits.OnesCount64(w); n < zeros {
			zeros -= n
			ones += uint32(56 - n)
			bit += 56
			continue
		}
		for range zeros - 1 {
			w &= w - 1
		}
		z := uint(bits.TrailingZeros64(w))
		ones += uint32(z) - uint32(zeros-1)
		at.bit = bit + z
		return ones
	}
}
