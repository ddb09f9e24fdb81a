package chain

import (
	"github.com/ethereum/go-ethereum/common"
)

// MaximumTopics is the most topics a log can carry (LOG0 to LOG4, Yellow Paper 9.4.4).
const MaximumTopics = 4

// Block is the raw material of one block in its consensus encodings.
//
// Byte slices and pointers alias the buffers they were decoded from: whoever filled the
// Block says how long they stay valid. A Block is filled by one goroutine and then only read;
// Reset lets the same one be filled again without new allocations.
type Block struct {
	BlockRef

	// Header is the canonical header RLP; its Keccak-256 is Hash.
	Header []byte
	// Transactions are EIP-2718 envelopes: type byte and payload, or the bare RLP list of a
	// legacy transaction.
	Transactions [][]byte
	// TransactionHashes are parallel to Transactions.
	TransactionHashes []common.Hash
	// Senders are parallel to Transactions, or empty when they were not recovered.
	Senders []common.Address
	// Ommers is the RLP list of ommer headers, 0xc0 when there are none.
	Ommers []byte
	// Withdrawals is the RLP list of withdrawals (EIP-4895), nil before Shanghai.
	Withdrawals []byte

	// HasReceipts tells whether Receipts and Logs were part of the material. A block
	// without transactions can have receipts: none of them.
	HasReceipts bool
	// Receipts are parallel to Transactions.
	Receipts []Receipt
	// Logs of the whole block in order; the position is the block-wide log index.
	Logs []Log
}

// Reset empties the block and keeps its slices for reuse.
func (b *Block) Reset() {
	*b = Block{
		Transactions:      b.Transactions[:0],
		TransactionHashes: b.TransactionHashes[:0],
		Senders:           b.Senders[:0],
		Receipts:          b.Receipts[:0],
		Logs:              b.Logs[:0],
	}
}

// ReceiptLogs are the logs of the receipt at index i.
func (b *Block) ReceiptLogs(i int) []Log {
	var start uint32
	if i > 0 {
		start = b.Receipts[i-1].LogsEnd
	}
	return b.Logs[start:b.Receipts[i].LogsEnd]
}

// Receipt is one transaction receipt without its bloom (which is recomputed) and with its
// logs kept in Block.Logs.
type Receipt struct {
	// Type is the EIP-2718 type, 0 for legacy.
	Type byte
	// Status is 1 for success and 0 for failure (EIP-658); meaningless when PostState is set.
	Status byte
	// PostState is the 32-byte state root of receipts before Byzantium, else nil.
	PostState []byte
	// CumulativeGasUsed counts the gas of the block up to and with this transaction.
	CumulativeGasUsed uint64
	// LogsEnd is the position in Block.Logs one past this receipt's last log.
	LogsEnd uint32
}

// Log is one event log.
type Log struct {
	Address   *common.Address
	Topics    [MaximumTopics]*common.Hash // the first NumTopics are set
	NumTopics uint8
	Data      []byte
}

// Parts selects which material of a block a reader loads.
type Parts uint8

// The parts of a block. Receipts imply logs.
const (
	PartHeader Parts = 1 << iota
	PartTransactions
	PartTransactionHashes
	PartSenders
	PartReceipts
	PartOmmers
	PartWithdrawals

	// PartsAll is everything but the senders, which may have to be recovered.
	PartsAll = PartHeader | PartTransactions | PartTransactionHashes | PartReceipts | PartOmmers | PartWithdrawals
)
