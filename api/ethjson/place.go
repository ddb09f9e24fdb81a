package ethjson

import (
	"github.com/ethereum/go-ethereum/common"

	"github.com/leani-go/leani/chain"
	"github.com/leani-go/leani/internal/hexenc"
)

// place is the rendered text of the members that tell where a log, a receipt or a transaction
// lies. Neighbours share them, so they are written once and copied. The text is
//
//	"blockHash":"0x…","blockNumber":"0x…"
//	,"blockTimestamp":"0x…"
//	,"transactionHash":"0x…","transactionIndex":"0x…"
//
// without the line breaks; the marks below lie between the lines. Only receipts leave out the
// timestamp.
//
// What is remembered is compared by value: callers reuse the memory behind their pointers.
type place struct {
	text                    []byte
	numberEnd, timestampEnd int // timestampEnd is 0 before the first block
	blockHash               common.Hash
	blockNumber, blockTime  uint64
	hasTransaction          bool
	transactionHash         common.Hash
	transactionIndex        uint32
}

// setBlock makes the text that of a block.
func (p *place) setBlock(b *chain.BlockRef) {
	if p.timestampEnd != 0 && p.blockHash == b.Hash && p.blockNumber == b.Number && p.blockTime == b.Timestamp {
		return
	}
	p.blockHash, p.blockNumber, p.blockTime = b.Hash, b.Number, b.Timestamp
	p.hasTransaction = false
	text := appendData(p.text[:0], `"blockHash":"`, b.Hash[:])
	text = appendUint(text, `,"blockNumber":"`, b.Number)
	p.numberEnd = len(text)
	text = appendUint(text, `,"blockTimestamp":"`, b.Timestamp)
	p.timestampEnd = len(text)
	p.text = text
}

// setTransaction makes the text that of a transaction of the block that was set.
func (p *place) setTransaction(hash *common.Hash, index uint32) {
	if p.hasTransaction && p.transactionIndex == index && p.transactionHash == *hash {
		return
	}
	p.hasTransaction, p.transactionHash, p.transactionIndex = true, *hash, index
	text := appendData(p.text[:p.timestampEnd], `,"transactionHash":"`, hash[:])
	p.text = appendUint(text, `,"transactionIndex":"`, uint64(index))
}

// blockNumberText is the text of the block without its timestamp.
func (p *place) blockNumberText() []byte { return p.text[:p.numberEnd] }

// blockText is the text of the block.
func (p *place) blockText() []byte { return p.text[:p.timestampEnd] }

// transactionText is the text of the transaction alone.
func (p *place) transactionText() []byte { return p.text[p.timestampEnd:] }

// appendIndexed appends the text of block and transaction and an index of the log in the block.
func (p *place) appendIndexed(dst []byte, logIndex uint32) []byte {
	dst = append(dst, p.text...)
	dst = append(dst, `,"logIndex":"`...)
	return hexenc.AppendQuantity(dst, uint64(logIndex))
}
