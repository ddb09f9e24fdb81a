package rpc

import (
	"bytes"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/holiman/uint256"

	"github.com/leani-go/leani/chain"
)

// stubEncoder writes just enough to tell answers apart.
type stubEncoder struct {
	// fail is what all methods that can fail return.
	fail error
}

func (e stubEncoder) AppendBlock(dst []byte, b *chain.Block, full bool) ([]byte, error) {
	if b.Header == nil || full != (len(b.Senders) == len(b.Transactions) && len(b.Senders) > 0) && len(b.Transactions) > 0 {
		return dst, errors.New("wrong parts for a block")
	}
	return fmt.Appendf(dst, `{"number":"%#x","full":%t,"transactions":%d}`, b.Number, full, len(b.Transactions)), e.fail
}

func (e stubEncoder) AppendTransaction(dst []byte, b *chain.Block, index int) ([]byte, error) {
	return fmt.Appendf(dst, `{"hash":"%s","blockNumber":"%#x","transactionIndex":"%#x"}`, b.TransactionHashes[index], b.Number, index), e.fail
}

func (e stubEncoder) AppendReceipt(dst []byte, b *chain.Block, index int) ([]byte, error) {
	return fmt.Appendf(dst, `{"transactionHash":"%s","logs":%d}`, b.TransactionHashes[index], len(b.ReceiptLogs(index))), e.fail
}

func (e stubEncoder) AppendReceipts(dst []byte, b *chain.Block) ([]byte, error) {
	dst = append(dst, '[')
	for i := range b.Receipts {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst, _ = e.AppendReceipt(dst, b, i)
	}
	return append(dst, ']'), e.fail
}

func (stubEncoder) AppendLog(dst []byte, l *chain.FoundLog) []byte {
	return fmt.Appendf(dst, `{"blockNumber":"%#x","logIndex":"%#x","address":"%s"}`, l.Block.Number, l.LogIndex, l.Address.Hex())
}

func (e stubEncoder) AppendRemovedLog(dst []byte, l *chain.FoundLog) []byte {
	dst = e.AppendLog(dst, l)
	return append(dst[:len(dst)-1], `,"removed":true}`...)
}

func (e stubEncoder) AppendHeader(dst []byte, b *chain.Block) ([]byte, error) {
	return fmt.Appendf(dst, `{"number":"%#x","hash":"%s"}`, b.Number, b.Hash), e.fail
}

func (e stubEncoder) AppendConfig(dst []byte, timestamp uint64) ([]byte, error) {
	return fmt.Appendf(dst, `{"current":%d}`, timestamp), e.fail
}

func (e stubEncoder) AppendTips(dst []uint256.Int, b *chain.Block) ([]uint256.Int, error) {
	for range b.Transactions {
		dst = append(dst, *uint256.NewInt(1))
	}
	return dst, e.fail
}

// fillEncoder writes blocks as strings of a given size, made of the last digit of their number.
type fillEncoder struct {
	stubEncoder
	size int
}

func (e fillEncoder) AppendBlock(dst []byte, b *chain.Block, _ bool) ([]byte, error) {
	dst = append(dst, '"')
	dst = append(dst, bytes.Repeat([]byte{'0' + byte(b.Number%10)}, e.size)...)
	return append(dst, '"'), nil
}

// alternateCost makes every other query a heavy one.
func alternateCost() func() (uint64, error) {
	var n atomic.Uint64
	return func() (uint64, error) { return laneCost * (n.Add(1) % 2), nil }
}

// stubbed makes every exchange use the same encoder, which has no state.
func stubbed(e encoder) func() encoder { return func() encoder { return e } }
