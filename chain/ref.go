package chain

import (
	"fmt"

	"github.com/ethereum/go-ethereum/common"
)

// BlockRef names one block of one branch.
type BlockRef struct {
	Number     uint64
	Hash       common.Hash
	ParentHash common.Hash
	Timestamp  uint64 // Unix seconds, from the header
}

// String gives the number and the first four bytes of the hash.
func (r BlockRef) String() string { return fmt.Sprintf("%d (%x)", r.Number, r.Hash[:4]) }

// Range is a half-open run of block numbers, [From, To).
type Range struct {
	From, To uint64
}

// Len is the number of blocks in the range, 0 for an empty or inverted one.
func (r Range) Len() uint64 {
	if r.To <= r.From {
		return 0
	}
	return r.To - r.From
}

// Empty tells whether the range holds no block.
func (r Range) Empty() bool { return r.To <= r.From }

// Contains tells whether block n lies in the range.
func (r Range) Contains(n uint64) bool { return r.From <= n && n < r.To }

// Covers tells whether every block of o lies in the range. An empty o is covered by any range.
func (r Range) Covers(o Range) bool { return o.Empty() || (r.From <= o.From && o.To <= r.To) }

// Intersect is the part that both ranges hold; it is empty when they do not meet.
func (r Range) Intersect(o Range) Range {
	out := Range{From: max(r.From, o.From), To: min(r.To, o.To)}
	if out.Empty() {
		return Range{}
	}
	return out
}

// Without gives what is left of r when the blocks of o are taken out: up to two ranges, in order.
func (r Range) Without(o Range) []Range {
	if r.Intersect(o).Empty() {
		if r.Empty() {
			return nil
		}
		return []Range{r}
	}
	var rest []Range
	for _, part := range []Range{{r.From, o.From}, {o.To, r.To}} {
		if !part.Empty() {
			rest = append(rest, part)
		}
	}
	return rest
}

// Subtract gives what is left of ranges when the blocks of o are taken out, in the order of the ranges.
func Subtract(ranges []Range, o Range) (rest []Range) {
	for _, r := range ranges {
		rest = append(rest, r.Without(o)...)
	}
	return rest
}

// String writes the range as half-open interval.
func (r Range) String() string { return fmt.Sprintf("[%d, %d)", r.From, r.To) }
