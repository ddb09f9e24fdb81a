package segments

import (
	"encoding/binary"
	"errors"
	"math/bits"

	"github.com/ethereum/go-ethereum/common"
	"github.com/leani-go/leani/codec"
)

// A log page holds all fields of a run of consecutive logs, and the hashes of the transactions from
// that of the first log on, so that reading one log touches one page besides the dictionaries. Each
// field is a packed column of its own:
//
//	rows         u16  number of logs
//	transactions u16  number of hashes
//	first        u32  position in the file of the first transaction
//	block        u32  position in the file of its block
//	topics       u16  number of packed topic codes
//	shape width, topic width, length width, reserved: u8 each
//	advance      u16  number of advance bits
//	reserved     u16
//	data         u32  bytes of trimmed data
//	shapes       packed codes, one a row
//	extra        two bit planes: topics beyond the first, 0 to 3
//	topics       packed codes
//	advance      unary: for each row as many ones as transactions lie between it and the row
//	             before (or the first transaction), then a zero
//	lengths      packed sizes of the trimmed data of each row
//	anchors      u16 for each 16th row but the first: where its trimmed data starts
//	data         trimmed data of all rows
//	hashes       32 bytes each
//
// The pages of a file hold every transaction: one whose logs cross pages is in each of them, and pages
// without rows hold the transactions of quiet stretches.

const (
	logPageHeader = 26
	anchorRows    = 16

	// A page ends at this many logs or transactions, or at randomPageSize bytes. Queries touch
	// single rows, so small pages cost fewer bytes read and cached per answer (docs/adr/0002).
	maximumPageRows         = 64
	maximumPageTransactions = 64

	// maximumCodeWidth is the width in bits of the widest codes and lengths.
	maximumCodeWidth = 32
)

// logPageBuilder collects rows of one page.
type logPageBuilder struct {
	first, block uint32 // of the first transaction
	firstRow     uint32
	last         uint32 // the last row's transaction
	hashes       []byte
	shapes       []uint32
	topics       []uint32
	extra        [2][]byte
	advance      codec.BitWriter
	advanceBits  int
	lengths      []uint32
	data         []byte
	maxShape     uint32
	maxTopic     uint32
	maxLength    uint32
	buf          []byte
}

func (p *logPageBuilder) rows() int         { return len(p.shapes) }
func (p *logPageBuilder) transactions() int { return len(p.hashes) / common.HashLength }

// hasRoom tells whether a row with topics codes and length bytes of data still fits.
func (p *logPageBuilder) hasRoom(topics, length int) bool {
	rows := p.rows()
	if rows == 0 {
		return true
	}
	packed := (rows+1)*(int(codec.Width(uint64(p.maxShape)))+2+int(codec.Width(uint64(max(p.maxLength, uint32(length)))))) +
		(len(p.topics)+topics)*int(codec.Width(uint64(p.maxTopic))) + p.advanceBits
	return rows < maximumPageRows &&
		logPageHeader+packed/8+rows/anchorRows*2+len(p.data)+length+len(p.hashes)+8 <= randomPageSize
}

// start opens a page at a transaction and a row.
func (p *logPageBuilder) start(transaction, block, row uint32) {
	advance := p.advance.Finish()
	*p = logPageBuilder{
		first: transaction, last: transaction, block: block, firstRow: row,
		hashes: p.hashes[:0], shapes: p.shapes[:0], topics: p.topics[:0],
		extra: [2][]byte{p.extra[0][:0], p.extra[1][:0]}, lengths: p.lengths[:0], data: p.data[:0], buf: p.buf[:0],
	}
	p.advance.Reset(advance[:0])
}

// addTransaction appends the next transaction.
func (p *logPageBuilder) addTransaction(hash []byte) { p.hashes = append(p.hashes, hash...) }

// addRow appends a log of the last transaction, whose position is given.
func (p *logPageBuilder) addRow(shape uint32, topics []uint32, transaction uint32, data []byte) {
	row := len(p.shapes)
	for range transaction - p.last {
		p.advance.Add(1, 1)
		p.advanceBits++
	}
	p.advance.Add(0, 1)
	p.advanceBits++
	p.last = transaction
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
	b = le.AppendUint16(b, uint16(p.transactions()))
	b = le.AppendUint32(b, p.first)
	b = le.AppendUint32(b, p.block)
	b = le.AppendUint16(b, uint16(len(p.topics)))
	b = append(b, byte(shapeWidth), byte(topicWidth), byte(lengthWidth), 0)
	b = le.AppendUint16(b, uint16(p.advanceBits))
	b = append(b, 0, 0)
	b = le.AppendUint32(b, uint32(len(p.data)))
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
	b = append(b, p.hashes...)
	p.buf = b
	return b
}

var errLogPage = errors.New("log page does not hold what its header says")

// logPage is a decoded log page: a view of its columns. Reading a row needs no checks beyond the row
// number, since parse checked that all columns lie inside the page.
type logPage struct {
	rows         int
	transactions uint32 // number of hashes
	first        uint32
	block        uint32
	shapes       codec.Packed
	extra        [2][]byte
	topics       codec.Packed
	advance      []byte
	lengths      codec.Packed
	anchors      []byte
	data         []byte
	hashes       []byte

	// Where the transaction of the row read last was found, so that rows read in order cost a step
	// each.
	row         int  // -1 before any
	bit         uint // of the row's zero
	transaction uint32

	// The row behind the one whose data was read last, and where its own data starts.
	dataRow int
	dataAt  int
}

// parse views a page that holds rows [from, to) of the file.
func (p *logPage) parse(raw []byte, from, to uint32) error {
	le := binary.LittleEndian
	if len(raw) < logPageHeader {
		return errLogPage
	}
	rows, topics, advances := int(le.Uint16(raw)), int(le.Uint16(raw[12:])), uint(le.Uint16(raw[18:]))
	*p = logPage{rows: rows, transactions: uint32(le.Uint16(raw[2:])), first: le.Uint32(raw[4:]), block: le.Uint32(raw[8:]), row: -1}
	p.transaction = p.first
	data := int(le.Uint32(raw[22:]))
	if raw[17]|raw[20]|raw[21] != 0 || uint32(rows) != to-from || uint(rows) > advances || rows > maximumPageRows ||
		p.transactions == 0 || p.transactions > maximumPageTransactions || max(raw[14], raw[15], raw[16]) > maximumCodeWidth {
		return errLogPage
	}
	rest := raw[logPageHeader : len(raw)+codec.Slack]
	ok := true
	take := func(n int) (b []byte) {
		if !ok || n < 0 || len(rest) < n+codec.Slack {
			ok = false
			return nil
		}
		b, rest = rest[:n+codec.Slack], rest[n:]
		return b
	}
	packed := func(n int, width uint) (v codec.Packed) {
		if ok {
			v, rest, ok = codec.NewPacked(rest, n, width)
		}
		return v
	}
	p.shapes = packed(rows, uint(raw[14]))
	p.extra[0], p.extra[1] = take((rows+7)/8), take((rows+7)/8)
	p.topics = packed(topics, uint(raw[15]))
	p.advance = take(int(advances+7) / 8)
	p.lengths = packed(rows, uint(raw[16]))
	p.anchors = take(max(rows-1, 0) / anchorRows * 2)
	p.data = take(data)
	p.hashes = take(int(p.transactions) * common.HashLength)
	if !ok || len(rest) != codec.Slack {
		return errLogPage
	}
	p.data = p.data[:data]
	extra := codec.Rank(p.extra[0], uint(rows)) + 2*codec.Rank(p.extra[1], uint(rows))
	ones := codec.Rank(p.advance, advances)
	if int(extra) != topics || advances-ones != uint(rows) || (rows > 0 && ones >= uint(p.transactions)) {
		return errLogPage
	}
	return nil
}

// shape is the shape code of row i of the page.
func (p *logPage) shape(i int) uint64 { return p.shapes.At(i) }

// extraTopics is the number of topic codes of row i, and the position of the first.
func (p *logPage) extraTopics(i int) (first, n int) {
	first = int(codec.Rank(p.extra[0], uint(i)) + 2*codec.Rank(p.extra[1], uint(i)))
	n = int(p.extra[0][i>>3]>>(i&7)&1) + 2*int(p.extra[1][i>>3]>>(i&7)&1)
	return first, n
}

// trimmed is the trimmed data of row i.
func (p *logPage) trimmed(i int) ([]byte, error) {
	at := p.dataAt
	if i != p.dataRow {
		at = 0
		if a := i / anchorRows; a > 0 {
			at = int(binary.LittleEndian.Uint16(p.anchors[(a-1)*2:]))
		}
		for k := i - i%anchorRows; k < i; k++ {
			at += int(p.lengths.At(k))
		}
	}
	end := at + int(p.lengths.At(i))
	if end > len(p.data) {
		return nil, errLogPage
	}
	p.dataRow, p.dataAt = i+1, end
	return p.data[at:end], nil
}

// checkLengths checks what trimmed relies on: that the lengths of all rows divide the data among them.
func (p *logPage) checkLengths() error {
	at := 0
	for i := range p.rows {
		if a := i / anchorRows; i%anchorRows == 0 && a > 0 && at != int(binary.LittleEndian.Uint16(p.anchors[(a-1)*2:])) {
			return errLogPage
		}
		at += int(p.lengths.At(i))
	}
	if at != len(p.data) {
		return errLogPage
	}
	return nil
}

// hash is the hash of a transaction, given by its position in the file, which must be in the page.
func (p *logPage) hash(transaction uint32) *common.Hash {
	return (*common.Hash)(p.hashes[(transaction-p.first)*common.HashLength:])
}

// transactionOf is the position in the file of the transaction of row i.
func (p *logPage) transactionOf(i int) uint32 {
	if i < p.row {
		p.row, p.transaction = -1, p.first
	}
	if i == p.row {
		return p.transaction
	}
	zeros := i - p.row // to pass, the last of them is the row's own
	bit := uint(0)
	if p.row >= 0 {
		bit = p.bit + 1
	}
	for {
		w := ^codec.ReadBits(p.advance, bit, 56) & (1<<56 - 1) // ones mark rows
		if n := bits.OnesCount64(w); n < zeros {
			zeros -= n
			p.transaction += uint32(56 - n)
			bit += 56
			continue
		}
		for range zeros - 1 {
			w &= w - 1
		}
		z := uint(bits.TrailingZeros64(w))
		p.transaction += uint32(z) - uint32(zeros-1)
		p.bit, p.row = bit+z, i
		return p.transaction
	}
}
