package rpc

import (
	"github.com/holiman/uint256"

	"github.com/leani-go/leani/chain"
)

// encoder writes the JSON of chain data; an *ethjson.Encoder does. The methods append to dst and
// return it extended. An encoder belongs to one goroutine at a time: each exchange has its own.
type encoder interface {
	// AppendBlock appends a block with its transactions, or with their hashes only.
	AppendBlock(dst []byte, b *chain.Block, fullTransactions bool) ([]byte, error)
	// AppendTransaction appends the transaction at an index, which has to exist.
	AppendTransaction(dst []byte, b *chain.Block, index int) ([]byte, error)
	// AppendReceipt appends the receipt at an index, which has to exist.
	AppendReceipt(dst []byte, b *chain.Block, index int) ([]byte, error)
	// AppendReceipts appends the array of all receipts.
	AppendReceipts(dst []byte, b *chain.Block) ([]byte, error)
	// AppendLog appends a log as eth_getLogs gives it.
	AppendLog(dst []byte, l *chain.FoundLog) []byte
	// AppendRemovedLog appends a log of a block that was undone.
	AppendRemovedLog(dst []byte, l *chain.FoundLog) []byte
	// AppendHeader appends a block without transactions, as a new head is told.
	AppendHeader(dst []byte, b *chain.Block) ([]byte, error)
	// AppendConfig appends the answer of eth_config for a head block with this timestamp.
	AppendConfig(dst []byte, timestamp uint64) ([]byte, error)
	// AppendTips appends what each transaction pays the proposer for a unit of gas.
	AppendTips(dst []uint256.Int, b *chain.Block) ([]uint256.Int, error)
}
