package hotblock

import (
	"encoding/binary"
	"slices"

	"github.com/ethereum/go-ethereum/common"

	"github.com/leani-go/leani/chain"
	"github.com/leani-go/leani/segments"
)

// The log part begins with the lengths of its columns, each a u32: rows, addresses, words, topics, terms,
// postings. All integers are little endian. The columns follow in this order:
//
//	addresses     20 bytes each, in order of their first use
//	words         32 bytes each: the topics, each once, in order of their first use
//	transactions  u32 a row: position of the transaction in the block, not falling
//	emitters      u32 a row: position in addresses
//	lengths       u32 a row: bytes of data
//	terms         u32 each, rising: 32-bit hashes of address, and of topic and its position
//	ends          u32 a term, rising: end of its list in postings
//	postings      u32 each: the rows of each term, rising
//	topics        u32 each: positions in words, those of one row after the other
//	counts        1 byte a row: number of topics
//	data          the data of all rows
const logCounts = 6

// logEncoder has the scratch memory of an encoder.
type logEncoder struct {
	addresses    map[common.Address]uint32
	words        map[common.Hash]uint32
	transactions []uint32
	emitters     []uint32
	lengths      []uint32
	topics       []uint32
	pairs        []uint64 // term and row
}

func (e *logEncoder) append(dst []byte, b *chain.Block) []byte {
	if e.addresses == nil {
		e.addresses, e.words = make(map[common.Address]uint32), make(map[common.Hash]uint32)
	}
	clear(e.addresses)
	clear(e.words)
	e.transactions, e.emitters, e.lengths, e.topics, e.pairs = e.transactions[:0], e.emitters[:0], e.lengths[:0], e.topics[:0], e.pairs[:0]
	start := len(dst)
	dst = append(dst, make([]byte, 4*logCounts)...)
	transaction := 0
	for row := range b.Logs {
		l := &b.Logs[row]
		for b.Receipts[transaction].LogsEnd <= uint32(row) {
			transaction++
		}
		e.transactions = append(e.transactions, uint32(transaction))
		e.lengths = append(e.lengths, uint32(len(l.Data)))
		code, known := e.addresses[*l.Address]
		if !known {
			code = uint32(len(e.addresses))
			e.addresses[*l.Address] = code
			dst = append(dst, l.Address[:]...)
		}
		e.emitters = append(e.emitters, code)
		e.pair(segments.AddressTerm(l.Address), row)
	}
	for row := range b.Logs {
		l := &b.Logs[row]
		for k, t := range l.Topics[:l.NumTopics] {
			code, known := e.words[*t]
			if !known {
				code = uint32(len(e.words))
				e.words[*t] = code
				dst = append(dst, t[:]...)
			}
			e.topics = append(e.topics, code)
			e.pair(segments.TopicTerm(k, t), row)
		}
	}
	dst = appendUint32s(dst, e.transactions)
	dst = appendUint32s(dst, e.emitters)
	dst = appendUint32s(dst, e.lengths)
	slices.Sort(e.pairs)
	e.pairs = slices.Compact(e.pairs) // two terms of a row with one hash
	terms := 0
	for i, p := range e.pairs {
		if i == 0 || p>>32 != e.pairs[i-1]>>32 {
			dst = binary.LittleEndian.AppendUint32(dst, uint32(p>>32))
			terms++
		}
	}
	for i, p := range e.pairs {
		if i+1 == len(e.pairs) || p>>32 != e.pairs[i+1]>>32 {
			dst = binary.LittleEndian.AppendUint32(dst, uint32(i+1))
		}
	}
	for _, p := range e.pairs {
		dst = binary.LittleEndian.AppendUint32(dst, uint32(p))
	}
	dst = appendUint32s(dst, e.topics)
	for i, n := range [logCounts]int{len(b.Logs), len(e.addresses), len(e.words), len(e.topics), terms, len(e.pairs)} {
		binary.LittleEndian.PutUint32(dst[start+4*i:], uint32(n))
	}
	for row := range b.Logs {
		dst = append(dst, b.Logs[row].NumTopics)
	}
	for row := range b.Logs {
		dst = append(dst, b.Logs[row].Data...)
	}
	return dst
}

func (e *logEncoder) pair(term uint32, row int) {
	e.pairs = append(e.pairs, uint64(term)<<32|uint64(row))
}

// Logs are the decoded logs of a block.
type Logs struct {
	addresses []common.Address
	words     []common.Hash
	terms     []uint32
	ends      []uint32
	postings  []uint32
	rows      []logRow
	topics    []uint32
	data      []byte
}

// logRow is where the values of a log lie.
type logRow struct {
	transaction uint32
	emitter     uint32
	topics      uint32 // position of the first
	data        uint32 // position of the first byte
	size        uint32
	numTopics   uint8
}

const logRowBytes = 24

// DecodeLogs decodes the log part of a block of so many transactions. The result aliases part.
func DecodeLogs(part []byte, transactions uint32) (*Logs, error) {
	b, err := content(part)
	if err != nil {
		return nil, err
	}
	if len(b) < 4*logCounts {
		return nil, malformed("logs of %d bytes", len(b))
	}
	var n [logCounts]uint64
	for i := range n {
		n[i] = uint64(binary.LittleEndian.Uint32(b[4*i:]))
	}
	rows, addresses, words, topics, terms, postings := n[0], n[1], n[2], n[3], n[4], n[5]
	r := reader{b: b[4*logCounts:]}
	addressColumn, wordColumn := r.take(addresses*common.AddressLength), r.take(words*common.HashLength)
	transactionColumn, emitterColumn, lengthColumn := r.take(4*rows), r.take(4*rows), r.take(4*rows)
	termColumn, endColumn, postingColumn := r.take(4*terms), r.take(4*terms), r.take(4*postings)
	topicColumn, countColumn := r.take(4*topics), r.take(rows)
	if r.bad {
		return nil, malformed("columns of logs in %d bytes", len(b))
	}
	l := &Logs{
		addresses: make([]common.Address, addresses), words: make([]common.Hash, words), rows: make([]logRow, rows),
		terms: uint32s(termColumn), ends: uint32s(endColumn), postings: uint32s(postingColumn), topics: uint32s(topicColumn), data: r.b,
	}
	for i := range l.addresses {
		copy(l.addresses[i][:], addressColumn[i*common.AddressLength:])
	}
	for i := range l.words {
		copy(l.words[i][:], wordColumn[i*common.HashLength:])
	}
	var last logRow
	var data uint64
	for i := range l.rows {
		w := logRow{
			transaction: binary.LittleEndian.Uint32(transactionColumn[4*i:]), emitter: binary.LittleEndian.Uint32(emitterColumn[4*i:]),
			size: binary.LittleEndian.Uint32(lengthColumn[4*i:]), numTopics: countColumn[i],
			topics: last.topics + uint32(last.numTopics), data: uint32(data),
		}
		data += uint64(w.size)
		if w.transaction < last.transaction || w.transaction >= transactions || uint64(w.emitter) >= addresses ||
			w.numTopics > chain.MaximumTopics || data > uint64(len(l.data)) {
			return nil, malformed("log %d", i)
		}
		l.rows[i], last = w, w
	}
	if uint64(last.topics)+uint64(last.numTopics) != topics || data != uint64(len(l.data)) {
		return nil, malformed("topics or data of logs")
	}
	for _, code := range l.topics {
		if uint64(code) >= words {
			return nil, malformed("topic %d of %d", code, words)
		}
	}
	return l, l.checkTerms()
}

// checkTerms checks the order of terms and lists.
func (l *Logs) checkTerms() error {
	start := uint32(0)
	for i, end := range l.ends {
		if i > 0 && l.terms[i] <= l.terms[i-1] || end <= start || uint64(end) > uint64(len(l.postings)) {
			return malformed("term %d of logs", i)
		}
		for k := start; k < end; k++ {
			if uint64(l.postings[k]) >= uint64(len(l.rows)) || k > start && l.postings[k] <= l.postings[k-1] {
				return malformed("list of term %d of logs", i)
			}
		}
		start = end
	}
	if uint64(start) != uint64(len(l.postings)) {
		return malformed("lists of logs")
	}
	return nil
}

// Len is the number of logs.
func (l *Logs) Len() int { return len(l.rows) }

// Bytes is roughly the memory of the logs.
func (l *Logs) Bytes() int64 {
	return int64(len(l.addresses)*common.AddressLength+len(l.words)*common.HashLength+len(l.rows)*logRowBytes) +
		4*int64(len(l.terms)+len(l.ends)+len(l.postings)+len(l.topics)) + int64(len(l.data))
}

// Terms lists the terms of the block, rising. The slice is shared: read only.
func (l *Logs) Terms() []uint32 { return l.terms }

// Find gives the rows of a term, rising, nil when there are none. The slice is shared: read only. Terms are
// hashes: the rows have still to be compared with what was asked for.
func (l *Logs) Find(term uint32) []uint32 {
	n := len(l.terms)
	if n == 0 {
		return nil
	}
	i := Nearest(l.terms, term)
	if i == n || l.terms[i] != term {
		return nil
	}
	start := uint32(0)
	if i > 0 {
		start = l.ends[i-1]
	}
	return l.postings[start:l.ends[i]]
}

// Row fills in a log and gives the position of its transaction. Address, topics and data are shared: read only.
func (l *Logs) Row(i uint32, dst *chain.Log) (transaction uint32) {
	w := &l.rows[i]
	dst.Address = &l.addresses[w.emitter]
	dst.NumTopics = w.numTopics
	dst.Topics = [chain.MaximumTopics]*common.Hash{}
	for k := range uint32(w.numTopics) {
		dst.Topics[k] = &l.words[l.topics[w.topics+k]]
	}
	dst.Data = l.data[w.data : w.data+w.size : w.data+w.size]
	return w.transaction
}

// Load sets the logs of a block whose receipts are loaded, and compares the two.
func (l *Logs) Load(dst *chain.Block) error {
	dst.Logs = slices.Grow(dst.Logs[:0], len(l.rows))[:len(l.rows)]
	receipt := 0
	for i := range l.rows {
		for receipt < len(dst.Receipts) && dst.Receipts[receipt].LogsEnd <= uint32(i) {
			receipt++
		}
		if l.Row(uint32(i), &dst.Logs[i]) != uint32(receipt) {
			return malformed("log %d does not belong to receipt %d", i, receipt)
		}
	}
	if n := len(dst.Receipts); n > 0 && int(dst.Receipts[n-1].LogsEnd) != len(l.rows) || n == 0 && len(l.rows) > 0 {
		return malformed("receipts do not have %d logs", len(l.rows))
	}
	return nil
}
