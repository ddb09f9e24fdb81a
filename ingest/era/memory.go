package era

import (
	"unsafe"

	"github.com/ethereum/go-ethereum/core/types"

	"github.com/leani-go/leani/internal/bloom"
)

// memoBytes is the table of a bloom.Memo: eight words of value, size and bits by entry.
const memoBytes = bloom.DefaultEntries * 40

// Memory is how many bytes the Buffer holds on to.
func (b *Buffer) Memory() int64 {
	total := int64(unsafe.Sizeof(*b)) +
		int64(cap(b.stored)) + int64(cap(b.plain)) +
		int64(cap(b.places))*int64(unsafe.Sizeof(place{})) +
		int64(cap(b.pieces))*int64(unsafe.Sizeof(pieces{})) +
		int64(cap(b.blooms))*int64(unsafe.Sizeof((*types.Bloom)(nil))) +
		int64(cap(b.check))*types.BloomByteLength
	if b.blooms != nil {
		total += memoBytes
	}
	return total
}
