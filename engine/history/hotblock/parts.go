package hotblock

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/ethereum/go-ethereum/common"

	"github.com/leani-go/leani/chain"
)

// The parts of a block.
const (
	PartHeader   = 1 // header RLP
	PartBody     = 2 // transactions, ommers, withdrawals
	PartReceipts = 3 // receipts without logs
	PartLogs     = 4 // logs with their terms
	PartHashes   = 5 // transaction hashes, in order and sorted

	// NumParts is the number of parts; they are numbered from 1.
	NumParts = 5
)

// version begins every part.
const version = 1

// maximumType is the highest type of a transaction or receipt (EIP-2718).
const maximumType = 0x7f

// Errors of the decoders, wrapped with detail.
var (
	ErrMalformed = errors.New("malformed part of a block")
	// ErrIncomplete is returned by Encode for a block without receipts, or whose lists do not fit together.
	ErrIncomplete = errors.New("block is incomplete")
)

func malformed(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrMalformed, fmt.Sprintf(format, args...))
}

// Encoder encodes blocks. The zero value is ready; it belongs to one goroutine.
type Encoder struct {
	parts  [NumParts][]byte
	logs   logEncoder
	sorted []uint32
}

// Encode gives the parts of a complete block, by number from 1. They are valid until the next call.
func (e *Encoder) Encode(b *chain.Block) (parts [NumParts][]byte, err error) {
	if err := check(b); err != nil {
		return parts, fmt.Errorf("encode block %s: %w", b.BlockRef, err)
	}
	for i := range e.parts {
		e.parts[i] = append(e.parts[i][:0], version)
	}
	e.parts[PartHeader-1] = append(e.parts[PartHeader-1], b.Header...)
	e.parts[PartBody-1] = appendBody(e.parts[PartBody-1], b)
	e.parts[PartReceipts-1] = appendReceipts(e.parts[PartReceipts-1], b)
	e.parts[PartLogs-1] = e.logs.append(e.parts[PartLogs-1], b)
	e.parts[PartHashes-1] = e.appendHashes(e.parts[PartHashes-1], b)
	return e.parts, nil
}

// check proves that a block has everything, and that its lists fit together.
func check(b *chain.Block) error {
	switch {
	case len(b.Header) == 0:
		return fmt.Errorf("%w: no header", ErrIncomplete)
	case !b.HasReceipts:
		return fmt.Errorf("%w: no receipts", ErrIncomplete)
	case len(b.Receipts) != len(b.Transactions) || len(b.TransactionHashes) != len(b.Transactions):
		return fmt.Errorf("%w: %d transactions, %d hashes, %d receipts", ErrIncomplete, len(b.Transactions), len(b.TransactionHashes), len(b.Receipts))
	}
	var last chain.Receipt
	for i, r := range b.Receipts {
		switch {
		case r.LogsEnd < last.LogsEnd || r.CumulativeGasUsed < last.CumulativeGasUsed:
			return fmt.Errorf("%w: receipt %d is behind the one before", ErrIncomplete, i)
		case r.Type > maximumType || r.Status > 1:
			return fmt.Errorf("%w: receipt %d has type %d and status %d", ErrIncomplete, i, r.Type, r.Status)
		case r.PostState != nil && len(r.PostState) != common.HashLength:
			return fmt.Errorf("%w: receipt %d has a state root of %d bytes", ErrIncomplete, i, len(r.PostState))
		}
		last = r
	}
	if int(last.LogsEnd) != len(b.Logs) {
		return fmt.Errorf("%w: %d logs, receipts have %d", ErrIncomplete, len(b.Logs), last.LogsEnd)
	}
	for i := range b.Logs {
		if b.Logs[i].NumTopics > chain.MaximumTopics {
			return fmt.Errorf("%w: log %d has %d topics", ErrIncomplete, i, b.Logs[i].NumTopics)
		}
	}
	return nil
}

// content checks the version of a part.
func content(part []byte) ([]byte, error) {
	if len(part) == 0 {
		return nil, malformed("it is empty")
	}
	if part[0] != version {
		return nil, malformed("unknown version %d", part[0])
	}
	return part[1:], nil
}

// LoadHeader sets the header, which aliases part.
func LoadHeader(part []byte, dst *chain.Block) error {
	b, err := content(part)
	if err == nil {
		dst.Header = b
	}
	return err
}

// appendBody: number of transactions, their sizes, size of the ommer list, whether there are withdrawals and
// the size of their list, then the bytes of all of them.
func appendBody(dst []byte, b *chain.Block) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(b.Transactions)))
	for _, tx := range b.Transactions {
		dst = binary.AppendUvarint(dst, uint64(len(tx)))
	}
	dst = binary.AppendUvarint(dst, uint64(len(b.Ommers)))
	withdrawals := uint64(0) // none; else one more than the size
	if b.Withdrawals != nil {
		withdrawals = uint64(len(b.Withdrawals)) + 1
	}
	dst = binary.AppendUvarint(dst, withdrawals)
	for _, tx := range b.Transactions {
		dst = append(dst, tx...)
	}
	dst = append(dst, b.Ommers...)
	return append(dst, b.Withdrawals...)
}

// reader reads the front of a byte string and remembers whether it was long enough.
type reader struct {
	b   []byte
	bad bool
}

func (r *reader) uvarint() uint64 {
	v, n := binary.Uvarint(r.b)
	if n <= 0 || n > 1 && r.b[n-1] == 0 { // one encoding a number
		r.bad = true
		return 0
	}
	r.b = r.b[n:]
	return v
}

func (r *reader) take(n uint64) []byte {
	if n > uint64(len(r.b)) {
		r.bad = true
		return nil
	}
	out := r.b[:n:n]
	r.b = r.b[n:]
	return out
}

// LoadBody sets transactions, ommers and withdrawals, which alias part.
func LoadBody(part []byte, dst *chain.Block) error {
	b, err := content(part)
	if err != nil {
		return err
	}
	r := reader{b: b}
	n := r.uvarint()
	if n > uint64(len(r.b)) {
		return malformed("%d transactions in %d bytes", n, len(r.b))
	}
	sizes := r.b // read a second time below
	for range n {
		r.uvarint()
	}
	ommers, withdrawals := r.uvarint(), r.uvarint()
	if r.bad {
		return malformed("sizes of a body of %d bytes", len(b))
	}
	dst.Transactions = slices.Grow(dst.Transactions[:0], int(n))
	list := reader{b: sizes}
	for range n {
		dst.Transactions = append(dst.Transactions, r.take(list.uvarint()))
	}
	dst.Ommers = r.take(ommers)
	dst.Withdrawals = nil
	if withdrawals > 0 {
		dst.Withdrawals = r.take(withdrawals - 1)
	}
	if r.bad || len(r.b) > 0 {
		return malformed("a body of %d bytes does not have its sizes", len(b))
	}
	return nil
}

// The outcome of a receipt, in the two low bits of its first number; the type is above them.
const (
	outcomeFailure   = 0
	outcomeSuccess   = 1
	outcomePostState = 2 // 32 bytes follow
)

// appendReceipts: number of receipts; for each type and outcome, gas of its transaction, number of its logs,
// and the state root where it has one.
func appendReceipts(dst []byte, b *chain.Block) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(b.Receipts)))
	var last chain.Receipt
	for _, r := range b.Receipts {
		outcome := uint64(r.Status)
		if r.PostState != nil {
			outcome = outcomePostState
		}
		dst = binary.AppendUvarint(dst, uint64(r.Type)<<2|outcome)
		dst = binary.AppendUvarint(dst, r.CumulativeGasUsed-last.CumulativeGasUsed)
		dst = binary.AppendUvarint(dst, uint64(r.LogsEnd-last.LogsEnd))
		if outcome == outcomePostState {
			dst = append(dst, r.PostState...)
		}
		last = r
	}
	return dst
}

// LoadReceipts sets receipts, without logs. State roots alias part.
func LoadReceipts(part []byte, dst *chain.Block) error {
	b, err := content(part)
	if err != nil {
		return err
	}
	r := reader{b: b}
	n := r.uvarint()
	if n > uint64(len(r.b))/3 {
		return malformed("%d receipts in %d bytes", n, len(r.b))
	}
	dst.Receipts = slices.Grow(dst.Receipts[:0], int(n))
	var last chain.Receipt
	for i := range n {
		kind, gas, logs := r.uvarint(), r.uvarint(), r.uvarint()
		next := chain.Receipt{Type: byte(kind >> 2), CumulativeGasUsed: last.CumulativeGasUsed + gas}
		end := uint64(last.LogsEnd) + logs
		next.LogsEnd = uint32(end)
		switch outcome := kind & 3; {
		case r.bad || kind>>2 > maximumType || next.CumulativeGasUsed < gas || end < logs || end != uint64(next.LogsEnd):
			return malformed("receipt %d", i)
		case outcome <= outcomeSuccess:
			next.Status = byte(outcome)
		case outcome == outcomePostState:
			next.PostState = r.take(common.HashLength)
		default:
			return malformed("outcome of receipt %d", i)
		}
		dst.Receipts = append(dst.Receipts, next)
		last = next
	}
	if r.bad || len(r.b) > 0 {
		return malformed("receipts of %d bytes", len(b))
	}
	dst.HasReceipts = true
	return nil
}

// appendHashes: the hashes in order, then their positions sorted by hash.
func (e *Encoder) appendHashes(dst []byte, b *chain.Block) []byte {
	e.sorted = e.sorted[:0]
	for i, h := range b.TransactionHashes {
		dst = append(dst, h[:]...)
		e.sorted = append(e.sorted, uint32(i))
	}
	slices.SortFunc(e.sorted, func(x, y uint32) int { return b.TransactionHashes[x].Cmp(b.TransactionHashes[y]) })
	return appendUint32s(dst, e.sorted)
}

// Hashes are the transaction hashes of a block.
type Hashes struct {
	raw    []byte // 32 bytes each, in order
	sorted []uint32
	first  []uint32 // the first four bytes of each, big endian, sorted: a search seldom reads more
}

// DecodeHashes decodes the hashes part, which the result aliases.
func DecodeHashes(part []byte) (*Hashes, error) {
	b, err := content(part)
	if err != nil {
		return nil, err
	}
	n := len(b) / (common.HashLength + 4)
	if n*(common.HashLength+4) != len(b) {
		return nil, malformed("hashes of %d bytes", len(b))
	}
	h := &Hashes{raw: b[:n*common.HashLength]}
	h.sorted, h.first = uint32s(b[n*common.HashLength:]), make([]uint32, n)
	for i, at := range h.sorted {
		switch {
		case int(at) >= n:
			return nil, malformed("hash %d of %d", at, n)
		case i > 0 && bytes.Compare(h.at(h.sorted[i-1]), h.at(at)) >= 0:
			return nil, malformed("hashes out of order")
		}
		h.first[i] = binary.BigEndian.Uint32(h.at(at))
	}
	return h, nil
}

func (h *Hashes) at(i uint32) []byte { return h.raw[int(i)*common.HashLength:][:common.HashLength] }

// At gives the hash at a position, which must be below Len.
func (h *Hashes) At(i uint32) common.Hash { return common.Hash(h.at(i)) }

// Len is the number of hashes.
func (h *Hashes) Len() int { return len(h.sorted) }

// Bytes is roughly the memory of the hashes.
func (h *Hashes) Bytes() int64 { return int64(len(h.raw) + 8*len(h.sorted)) }

// Append appends the hashes in order.
func (h *Hashes) Append(dst []common.Hash) []common.Hash {
	for i := range h.sorted {
		dst = append(dst, common.Hash(h.at(uint32(i))))
	}
	return dst
}

// Find finds the position of a hash.
func (h *Hashes) Find(hash *common.Hash) (index uint32, ok bool) {
	n := len(h.first)
	if n == 0 {
		return 0, false
	}
	first := binary.BigEndian.Uint32(hash[:])
	for i := Nearest(h.first, first); i < n && h.first[i] == first; i++ {
		if at := h.sorted[i]; common.Hash(h.at(at)) == *hash {
			return at, true
		}
	}
	return 0, false
}

// Nearest is the position of the first value of a sorted list that is v or more. The values are hashes, which are spread
// evenly, so that it lies near v's share of the list.
func Nearest(list []uint32, v uint32) int {
	i := int(uint64(v) * uint64(len(list)) >> 32)
	for i > 0 && list[i-1] >= v {
		i--
	}
	for i < len(list) && list[i] < v {
		i++
	}
	return i
}

func appendUint32s(dst []byte, list []uint32) []byte {
	for _, v := range list {
		dst = binary.LittleEndian.AppendUint32(dst, v)
	}
	return dst
}

func uint32s(b []byte) []uint32 {
	out := make([]uint32, len(b)/4)
	for i := range out {
		out[i] = binary.LittleEndian.Uint32(b[4*i:])
	}
	return out
}
