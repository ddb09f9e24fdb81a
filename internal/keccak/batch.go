package keccak

import (
	"encoding/binary"

	"github.com/ethereum/go-ethereum/common"
)

const (
	// rate is the number of message bytes that one permutation absorbs: 1600 bits of state
	// less twice the 256 bits of the digest (FIPS 202, section 5.2, capacity 512).
	rate      = 136
	rateWords = rate / 8
	// stateWords are the 64-bit words of one Keccak-f[1600] state.
	stateWords = 25
	// maximumWidth is the largest number of states that one kernel permutes.
	maximumWidth = 8
)

// Batch hashes independent messages, several side by side. The zero value is ready.
//
// Add queues a message, Flush hashes everything queued. Order does not matter: each digest
// goes to its own place.
type Batch struct {
	queue  []message
	lanes  [maximumWidth]message
	kernel kernel
	states states // for the wide kernels
	hasher Hasher // for the single one
}

// message is what is left to absorb of one message and where its digest goes.
type message struct {
	rest []byte
	out  *common.Hash
}

// Add queues data to be hashed into out. Both must stay valid and data unchanged until Flush
// returns; out must not overlap any queued data.
func (b *Batch) Add(data []byte, out *common.Hash) {
	b.queue = append(b.queue, message{rest: data, out: out})
}

// Flush hashes every queued message and keeps no reference to any of them.
func (b *Batch) Flush() {
	if len(b.queue) == 0 {
		return
	}
	if b.kernel == kernelUnset {
		b.kernel = bestKernel()
	}
	if b.kernel == kernelSingle {
		for i := range b.queue {
			b.hasher.Sum(b.queue[i].out, b.queue[i].rest)
		}
	} else {
		b.flushWide()
	}
	clear(b.queue)
	b.queue = b.queue[:0]
}

// flushWide keeps as many messages in flight as the kernel has lanes. Before each permutation
// every busy lane absorbs its next block; a lane whose padded last block has been permuted
// yields its digest and takes the next message of the queue.
func (b *Batch) flushWide() {
	var (
		width, words = b.states.prepare(b.kernel)
		next         = 0 // position in the queue
		busy         = 0
		last         [maximumWidth]bool // the lane has absorbed its last block
	)
	for ; busy < width && next < len(b.queue); busy++ {
		b.lanes[busy] = b.queue[next]
		next++
	}
	clear(words)
	for busy > 0 {
		for lane := range width {
			m := &b.lanes[lane]
			if m.out == nil {
				continue
			}
			if len(m.rest) >= rate {
				absorb(words, width, lane, (*[rate]byte)(m.rest))
				m.rest = m.rest[rate:]
				continue
			}
			var block [rate]byte
			n := copy(block[:], m.rest)
			block[n] = 0x01 // the padding of the original Keccak; SHA-3 has 0x06
			block[rate-1] |= 0x80
			absorb(words, width, lane, &block)
			last[lane] = true
		}
		b.states.permute(b.kernel)
		for lane := range width {
			if !last[lane] {
				continue
			}
			last[lane] = false
			squeeze(words, width, lane, b.lanes[lane].out)
			if next < len(b.queue) {
				b.lanes[lane] = b.queue[next]
				next++
			} else {
				b.lanes[lane] = message{}
				busy--
			}
		}
	}
}

// absorb xors one block into the words of a lane.
func absorb(words []uint64, width, lane int, block *[rate]byte) {
	if width == 8 {
		s := (*[rateWords*8 - 7]uint64)(words[lane:])
		s[0] ^= binary.LittleEndian.Uint64(block[0:])
		s[8] ^= binary.LittleEndian.Uint64(block[8:])
		s[16] ^= binary.LittleEndian.Uint64(block[16:])
		s[24] ^= binary.LittleEndian.Uint64(block[24:])
		s[32] ^= binary.LittleEndian.Uint64(block[32:])
		s[40] ^= binary.LittleEndian.Uint64(block[40:])
		s[48] ^= binary.LittleEndian.Uint64(block[48:])
		s[56] ^= binary.LittleEndian.Uint64(block[56:])
		s[64] ^= binary.LittleEndian.Uint64(block[64:])
		s[72] ^= binary.LittleEndian.Uint64(block[72:])
		s[80] ^= binary.LittleEndian.Uint64(block[80:])
		s[88] ^= binary.LittleEndian.Uint64(block[88:])
		s[96] ^= binary.LittleEndian.Uint64(block[96:])
		s[104] ^= binary.LittleEndian.Uint64(block[104:])
		s[112] ^= binary.LittleEndian.Uint64(block[112:])
		s[120] ^= binary.LittleEndian.Uint64(block[120:])
		s[128] ^= binary.LittleEndian.Uint64(block[128:])
		return
	}
	for i := range rateWords {
		words[i*width+lane] ^= binary.LittleEndian.Uint64(block[8*i:])
	}
}

// squeeze reads the digest of a lane and clears the lane's words for the next message.
func squeeze(words []uint64, width, lane int, out *common.Hash) {
	for i := range 4 {
		binary.LittleEndian.PutUint64(out[8*i:], words[i*width+lane])
	}
	for i := range stateWords {
		words[i*width+lane] = 0
	}
}
