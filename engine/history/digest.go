package history

import (
	"encoding/binary"

	"github.com/leani-go/leani/chain"
	"github.com/zeebo/xxh3"
)

// blockDigest is a digest over everything that a block holds, senders excepted. It does not depend on
// where or how the block is stored, and it is not a defence against an attacker: it compares what was
// added with what is read back.
func blockDigest(h *xxh3.Hasher, b *chain.Block) xxh3.Uint128 {
	h.Reset()
	var buf [64]byte
	number := func(values ...uint64) {
		out := buf[:0]
		for _, v := range values {
			out = binary.LittleEndian.AppendUint64(out, v)
		}
		_, _ = h.Write(out)
	}
	bytes := func(v []byte) {
		number(uint64(len(v)))
		_, _ = h.Write(v)
	}
	number(b.Number, b.Timestamp)
	_, _ = h.Write(b.Hash[:])
	_, _ = h.Write(b.ParentHash[:])
	bytes(b.Header)
	bytes(b.Ommers)
	present := uint64(0)
	if b.Withdrawals != nil {
		present = 1
	}
	number(present)
	bytes(b.Withdrawals)
	number(uint64(len(b.Transactions)))
	for i := range b.Transactions {
		bytes(b.Transactions[i])
		_, _ = h.Write(b.TransactionHashes[i][:])
	}
	for i := range b.Receipts {
		r := &b.Receipts[i]
		number(uint64(r.Type), uint64(r.Status), uint64(len(r.PostState)), r.CumulativeGasUsed, uint64(r.LogsEnd))
		_, _ = h.Write(r.PostState)
	}
	for i := range b.Logs {
		l := &b.Logs[i]
		number(uint64(l.NumTopics), uint64(len(l.Data)))
		_, _ = h.Write(l.Address[:])
		for k := range int(l.NumTopics) {
			_, _ = h.Write(l.Topics[k][:])
		}
		_, _ = h.Write(l.Data)
	}
	return h.Sum128()
}
