package era

import "github.com/leani-go/leani/chain"

// Offset is the place in the file of the record that holds a part of block n, which must be in
// the file: for errors about decoded blocks. Where the file does not have the part, or in era1 no
// intact records before it, it is the place of the block's first record.
func (f *File) Offset(n uint64, part chain.Parts) int64 {
	wanted := componentHeader
	switch part {
	case chain.PartTransactions, chain.PartTransactionHashes, chain.PartSenders, chain.PartOmmers, chain.PartWithdrawals:
		wanted = componentBody
	case chain.PartReceipts:
		wanted = componentReceipts
	}
	if f.info.Layout == EraE {
		slot := f.slots[wanted]
		if slot == noSlot {
			slot = f.slots[componentHeader]
		}
		start, _ := f.extent(n, slot)
		return start
	}
	start, end := f.extent(n, 0)
	offset := start
	for c := componentHeader; c < wanted; c++ {
		r, err := f.recordAt(n, offset, f.tags[c], end-offset)
		if err != nil {
			return start
		}
		offset += recordHeaderSize + r.length
	}
	return offset
}
