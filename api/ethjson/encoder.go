package ethjson

import (
	"errors"
	"fmt"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"

	"github.com/leani-go/leani/chain"
	"github.com/leani-go/leani/internal/bloom"
	"github.com/leani-go/leani/internal/header"
	"github.com/leani-go/leani/internal/hexenc"
	"github.com/leani-go/leani/internal/keccak"
)

var (
	// ErrMaterial says that a block lacks a part that the object is made of, or that its parts
	// do not fit together.
	ErrMaterial = errors.New("incomplete block material")
	// ErrIndex says that the block has no transaction at the index.
	ErrIndex = errors.New("transaction index beyond the block")
)

// memoEntries is the size of an Encoder's table of bloom bits, about 160 KiB: room for the
// thousand or so distinct values of a full block, at a price that every request in progress
// can pay.
const memoEntries = 1 << 12

// Encoder writes the JSON of one network's chain data. Make it with NewEncoder.
type Encoder struct {
	network *chain.Network

	place       place
	header      header.Header
	transaction transaction
	hasher      keccak.Hasher
	memo        *bloom.Memo // made when the first receipt needs it
	blooms      []types.Bloom
	scratch     []byte
	digest      common.Hash
}

// NewEncoder makes an Encoder. The network prices blob gas and has the fork schedule.
func NewEncoder(network *chain.Network) *Encoder {
	return &Encoder{network: network}
}

// readHeader reads the header of a block into e.header and checks that it is the block's.
func (e *Encoder) readHeader(b *chain.Block) error {
	if len(b.Header) == 0 {
		return fmt.Errorf("%w: block %d has no header", ErrMaterial, b.Number)
	}
	if err := header.Parse(b.Header, &e.header); err != nil {
		return fmt.Errorf("block %d: %w", b.Number, err)
	}
	if e.header.Number != b.Number || e.header.Timestamp != b.Timestamp {
		return fmt.Errorf("%w: block %d at %d has the header of block %d at %d", ErrMaterial,
			b.Number, b.Timestamp, e.header.Number, e.header.Timestamp)
	}
	return nil
}

// readTransaction reads the transaction at an index into e.transaction.
func (e *Encoder) readTransaction(b *chain.Block, index int) error {
	if err := e.transaction.parse(b.Transactions[index]); err != nil {
		return fmt.Errorf("block %d: transaction %d: %w", b.Number, index, err)
	}
	return nil
}

// checkTransactions checks that what belongs to the transactions of a block is there.
func checkTransactions(b *chain.Block) error {
	if n := len(b.Transactions); len(b.TransactionHashes) != n || len(b.Senders) != n {
		return fmt.Errorf("%w: block %d has %d transactions, %d hashes and %d senders", ErrMaterial,
			b.Number, n, len(b.TransactionHashes), len(b.Senders))
	}
	return nil
}

func checkIndex(b *chain.Block, index int) error {
	if index < 0 || index >= len(b.Transactions) {
		return fmt.Errorf("%w: index %d, block %d has %d", ErrIndex, index, b.Number, len(b.Transactions))
	}
	return nil
}

// The functions below append one member each. The key is everything up to the value: comma,
// name, colon and opening quote.

func appendData(dst []byte, key string, value []byte) []byte {
	return append(hexenc.AppendBytes(append(dst, key...), value), '"')
}

func appendUint(dst []byte, key string, value uint64) []byte {
	return append(hexenc.AppendQuantity(append(dst, key...), value), '"')
}

// appendNumber appends a big-endian number.
func appendNumber(dst []byte, key string, value []byte) []byte {
	return append(hexenc.AppendQuantityBytes(append(dst, key...), value), '"')
}
