package history

import (
	"encoding/binary"
	"math/bits"

	"github.com/leani-go/leani/chain"
	"github.com/zeebo/blake3"
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

// contentDigest is a digest over a set of blocks, in whatever order they are added: the sum, modulo 2^256,
// of a BLAKE3 for each. It takes the same memory for any number of blocks, and sums of parts add up. Like
// the digests it is made of it compares stores; it does not withstand somebody who chooses the blocks.
type contentDigest [4]uint64

// add adds a block by its number and blockDigest.
func (d *contentDigest) add(number uint64, block xxh3.Uint128) {
	var in [24]byte
	binary.LittleEndian.PutUint64(in[:], number)
	binary.LittleEndian.PutUint64(in[8:], block.Lo)
	binary.LittleEndian.PutUint64(in[16:], block.Hi)
	sum := blake3.Sum256(in[:])
	var other contentDigest
	for i := range other {
		other[i] = binary.LittleEndian.Uint64(sum[8*i:])
	}
	d.join(other)
}

// join adds the blocks of another digest.
func (d *contentDigest) join(other contentDigest) {
	carry := uint64(0)
	for i := range d {
		d[i], carry = bits.Add64(d[i], other[i], carry)
	}
}

// bytes writes the digest, most significant byte first.
func (d *contentDigest) bytes() (out [32]byte) {
	for i, v := range d {
		binary.BigEndian.PutUint64(out[24-8*i:], v)
	}
	return out
}
