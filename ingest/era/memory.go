package era

import (
	"slices"

	"github.com/ethereum/go-ethereum/core/types"
)

// Sizes in memory on a 64-bit machine, in bytes; TestSizes compares.
const (
	pointerBytes = 8
	placeBytes   = 24
	piecesBytes  = 3 * 40
)

// Memory is how many bytes the Buffer holds on to, but for a few words of its own.
func (b *Buffer) Memory() int64 {
	return b.bits.Memory() +
		int64(cap(b.stored)) + int64(cap(b.plain)) +
		int64(cap(b.places))*placeBytes +
		int64(cap(b.pieces))*piecesBytes +
		int64(cap(b.blooms))*pointerBytes +
		int64(cap(b.check))*types.BloomByteLength
}

// Room is n bytes of the Buffer's memory, for readers of other formats that yield blocks through the
// same Buffer. What it lent before is overwritten.
func (b *Buffer) Room(n int) []byte {
	b.plain = slices.Grow(b.plain[:0], n)[:n]
	return b.plain
}
