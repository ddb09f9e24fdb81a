package era

import "github.com/ethereum/go-ethereum/core/types"

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
