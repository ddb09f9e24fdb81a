package trieroot

import (
	"slices"

	"github.com/ethereum/go-ethereum/common"

	"github.com/leani-go/leani/internal/rlp"
)

// Flags of the first byte of a compact path (Yellow Paper, appendix C). An odd path has its
// first nibble in the same byte.
const (
	pathExtension = 0x00
	pathLeaf      = 0x20
	pathOdd       = 0x10
)

const (
	// hashPrefix is the RLP header of a 32-byte string.
	hashPrefix = 0x80 + common.HashLength
	// emptyString is the RLP of an absent child or value.
	emptyString = 0x80
	// maximumBranch is the largest encoding of a branch without value: sixteen hashes with
	// their headers, the empty value and a list header.
	maximumBranch = 16*(1+common.HashLength) + 1 + 3
)

// ref is what a parent holds of a node: its hash when n is 32, or its encoding of n < 32
// bytes; nothing when n is 0.
type ref struct {
	data common.Hash
	n    uint8
}

// size is the number of bytes that append adds.
func (r *ref) size() int {
	if r.n == common.HashLength {
		return 1 + common.HashLength
	}
	return int(r.n)
}

// append appends the reference as an item of the parent.
func (r *ref) append(dst []byte) []byte {
	if r.n == common.HashLength {
		dst = append(dst, hashPrefix)
	}
	return append(dst, r.data[:r.n]...)
}

// appendBranch appends a branch without value; absent children are nil.
func appendBranch(dst []byte, children *[16]*ref) []byte {
	content := 1
	for _, child := range children {
		if child == nil {
			content++
		} else {
			content += child.size()
		}
	}
	dst = rlp.AppendListHeader(dst, content)
	for _, child := range children {
		if child == nil {
			dst = append(dst, emptyString)
		} else {
			dst = child.append(dst)
		}
	}
	return append(dst, emptyString)
}

// appendPath appends the compact form of the last count nibbles of v.
func appendPath(dst []byte, v uint64, count int, flag byte) []byte {
	if count%2 == 1 {
		count--
		flag |= pathOdd | byte(v>>(4*count)&15)
	}
	dst = append(dst, flag)
	for count > 0 {
		count -= 2
		dst = append(dst, byte(v>>(4*count)))
	}
	return dst
}

// resize returns a slice of n elements of unspecified content, s itself when it is large
// enough.
func resize(s []ref, n int) []ref { return slices.Grow(s[:0], n)[:n] }

// reserve returns an empty slice with room for n bytes, s itself when it is large enough.
func reserve(s []byte, n int) []byte { return slices.Grow(s[:0], n) }
