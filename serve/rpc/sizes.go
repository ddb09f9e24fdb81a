package rpc

import "github.com/leani-go/leani/chain"

// Estimates of encoded sizes, a little too high, by which a response gets its memory before it
// is written: growing one step by step copies it several times. The fixed parts are the names
// and the longest values of all members.
const (
	logFixed         = 704  // names, address, hashes, numbers, four topics
	receiptFixed     = 1280 // names, hashes, addresses, the bloom of 512 digits
	transactionFixed = 1280 // names, numbers, hashes, signature
	blockFixed       = 2816 // names, hashes, the bloom
	hashFixed        = 70
)

func logSize(l *chain.Log) int { return logFixed + 2*len(l.Data) }

// transactionSize estimates a transaction from its envelope. An access list takes about three
// times its binary size, everything else twice.
func transactionSize(envelope []byte) int { return transactionFixed + 3*len(envelope) }

func receiptSize(b *chain.Block, index int) int {
	size := receiptFixed
	receiptLogs := b.ReceiptLogs(index)
	for i := range receiptLogs {
		size += logSize(&receiptLogs[i])
	}
	return size
}

func receiptsSize(b *chain.Block) int {
	size := 2 + receiptFixed*len(b.Receipts)
	for i := range b.Logs {
		size += logSize(&b.Logs[i])
	}
	return size
}

func blockSize(b *chain.Block, full bool) int {
	// Of an ommer only the hash is given; a withdrawal of about 45 bytes takes about 140.
	size := blockFixed + len(b.Ommers) + 4*len(b.Withdrawals)
	if !full {
		return size + hashFixed*len(b.Transactions)
	}
	for _, envelope := range b.Transactions {
		size += transactionSize(envelope)
	}
	return size
}
