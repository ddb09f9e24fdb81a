package bloom

import (
	"encoding/binary"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
)

// Bits are the three positions that a value sets in a bloom, each below 2048. They need not
// be different.
type Bits [3]uint16

// BitsOf returns the positions of the value with the given Keccak-256: the low 11 bits of
// its first three 16-bit words.
func BitsOf(digest *common.Hash) Bits {
	const mask = types.BloomBitLength - 1
	return Bits{
		binary.BigEndian.Uint16(digest[0:]) & mask,
		binary.BigEndian.Uint16(digest[2:]) & mask,
		binary.BigEndian.Uint16(digest[4:]) & mask,
	}
}

// AddTo sets the bits in b. Position 0 is the lowest bit of the last byte.
func (s Bits) AddTo(b *types.Bloom) {
	const last = types.BloomByteLength - 1
	b[last-s[0]>>3&last] |= 1 << (s[0] & 7)
	b[last-s[1]>>3&last] |= 1 << (s[1] & 7)
	b[last-s[2]>>3&last] |= 1 << (s[2] & 7)
}

// In tells whether all bits are set in b.
func (s Bits) In(b *types.Bloom) bool {
	const last = types.BloomByteLength - 1
	for _, position := range s {
		if b[last-position>>3&last]&(1<<(position&7)) == 0 {
			return false
		}
	}
	return true
}

// Union sets in dst every bit that is set in b.
func Union(dst, b *types.Bloom) {
	for i := 0; i < len(dst); i += 8 {
		binary.LittleEndian.PutUint64(dst[i:], binary.LittleEndian.Uint64(dst[i:])|binary.LittleEndian.Uint64(b[i:]))
	}
}
