package codec

import (
	"encoding/binary"
	"errors"
	"math/bits"
)

// Elias-Fano lists: n ascending values below a bound u take about 2 + log2(u/n) bits each. A value
// is split at bit l = log2(u/n): the low parts are packed side by side, the high parts are written
// in unary as the gaps between them, one set bit a value. See P. Elias, "Efficient storage and
// retrieval by content and address of static files" (J. ACM, 1974).
//
// Layout of one list: the unary bits, padded to a byte, then the low bits, padded to a byte.

// ErrEliasFano reports a list that does not hold as many values as announced.
var ErrEliasFano = errors.New("elias-fano list holds fewer values than announced")

// EliasFanoShift is the number of low bits that a list of n values in [0, bound) keeps apart.
func EliasFanoShift(n int, bound uint64) uint {
	if n <= 0 || bound <= uint64(n) {
		return 0
	}
	return uint(bits.Len64(bound/uint64(n))) - 1
}

// EliasFanoUnary is the size in bytes of the unary part of n values below bound.
func EliasFanoUnary(n int, shift uint, bound uint64) int {
	if n == 0 {
		return 0
	}
	var top uint64
	if bound > 0 {
		top = (bound - 1) >> shift
	}
	return int((top + uint64(n) + 7) / 8)
}

// EliasFanoSize is the size in bytes of n values below bound, without slack.
func EliasFanoSize(n int, shift uint, bound uint64) int {
	return EliasFanoUnary(n, shift, bound) + PackedSize(n, shift)
}

// AppendEliasFano appends ascending values (repeats allowed), each in [base, base+bound), without
// slack.
func AppendEliasFano(dst []byte, values []uint32, base uint32, shift uint, bound uint64) []byte {
	if len(values) == 0 {
		return dst
	}
	start := len(dst)
	for range EliasFanoUnary(len(values), shift, bound) {
		dst = append(dst, 0)
	}
	unary := dst[start:]
	for i, v := range values {
		at := uint(v-base)>>shift + uint(i)
		unary[at>>3] |= 1 << (at & 7)
	}
	if shift == 0 {
		return dst
	}
	w := BitWriter{out: dst}
	for _, v := range values {
		w.Add(uint64(v-base)&(1<<shift-1), shift)
	}
	return w.Finish()
}

// DecodeEliasFano fills dst with len(dst) values from the list at the start of b, whose unary part
// takes unary bytes; slack must follow it. Values are base plus what was stored.
func DecodeEliasFano(dst []uint32, b []byte, base uint32, shift uint, unary int) error {
	n := len(dst)
	if n == 0 {
		return nil
	}
	if shift > 32 || unary < 0 || len(b) < unary+PackedSize(n, shift)+Slack {
		return ErrEliasFano
	}
	low := b[unary:]
	i, mask, lowAt := 0, uint64(1)<<shift-1, uint(0)
	for at := 0; at < unary; at += 8 {
		w := binary.LittleEndian.Uint64(b[at:])
		if rest := unary - at; rest < 8 {
			w &= 1<<(8*uint(rest)) - 1
		}
		bitBase := at * 8
		for w != 0 {
			high := uint64(bitBase + bits.TrailingZeros64(w) - i)
			w &= w - 1
			v := binary.LittleEndian.Uint64(low[lowAt>>3:]) >> (lowAt & 7) & mask
			lowAt += shift
			dst[i] = base + uint32(high<<shift|v)
			if i++; i == n {
				return nil
			}
		}
	}
	return ErrEliasFano
}

// FindEliasFano returns the first and one past the last position of target in a list of n values, as
// DecodeEliasFano reads it, without decoding the list. Both are 0 when the list is damaged or the
// target is not in it.
func FindEliasFano(b []byte, n int, target uint32, shift uint, unary int) (from, to int) {
	if n == 0 || shift > 32 || unary < 0 || len(b) < unary+PackedSize(n, shift)+Slack {
		return 0, 0
	}
	low := b[unary:]
	// The values whose high part is h lie between the h-th and the next zero of the unary bits:
	// find the h-th zero, then walk the ones behind it.
	high := uint(uint64(target) >> shift)
	at, zeros := uint(0), uint(0)
	end := uint(unary) * 8
	for at+64 <= end {
		w := binary.LittleEndian.Uint64(b[at>>3:])
		z := uint(64 - bits.OnesCount64(w))
		if zeros+z >= high {
			break
		}
		zeros += z
		at += 64
	}
	for zeros < high && at < end {
		if b[at>>3]>>(at&7)&1 == 0 {
			zeros++
		}
		at++
	}
	if zeros < high {
		return 0, 0
	}
	want := uint64(target) & (1<<shift - 1)
	i := int(at - zeros)
	for ; at < end && b[at>>3]>>(at&7)&1 == 1 && i < n; at, i = at+1, i+1 {
		got := ReadBits(low, uint(i)*shift, shift)
		if got > want {
			break
		}
		if got == want {
			if to == 0 {
				from = i
			}
			to = i + 1
		}
	}
	return from, to
}

// EliasFanoProbe tells which of some ascending targets are in a list, without decoding it: what it reads
// is the unary part up to the target and one low part or a few. The zero value is not usable: Reset.
type EliasFanoProbe struct {
	list  []byte // unary part, low parts, slack
	n     uint
	shift uint
	end   uint // bits of the unary part
	at    uint // start of the word that is looked at
	zeros uint // unset bits before it
}

// Reset begins with the list at the start of b, as DecodeEliasFano reads it.
func (p *EliasFanoProbe) Reset(b []byte, n int, shift uint, unary int) error {
	if shift > 32 || n < 0 || unary < 0 || len(b) < unary+PackedSize(n, shift)+Slack {
		return ErrEliasFano
	}
	*p = EliasFanoProbe{list: b, n: uint(n), shift: shift, end: uint(unary) * 8}
	return nil
}

// Has tells whether the list has a target, given without the base. Targets never go back.
func (p *EliasFanoProbe) Has(target uint32) bool {
	// The values whose high part is h lie between the h-th and the next unset bit.
	high := uint(uint64(target) >> p.shift)
	first := uint(0)
	if high > 0 {
		var w uint64
		for {
			if p.at >= p.end {
				return false
			}
			w = ^binary.LittleEndian.Uint64(p.list[p.at>>3:])
			if rest := p.end - p.at; rest < 64 {
				w &= 1<<rest - 1
			}
			z := uint(bits.OnesCount64(w))
			if p.zeros+z >= high {
				break
			}
			p.zeros += z
			p.at += 64
		}
		first = p.at + selectBit(w, high-p.zeros-1) + 1
	}
	if p.shift == 0 {
		return first < p.end && first-high < p.n && p.list[first>>3]>>(first&7)&1 == 1
	}
	low, want := p.list[p.end>>3:], uint64(target)&(1<<p.shift-1)
	for at := first; at < p.end && p.list[at>>3]>>(at&7)&1 == 1 && at-high < p.n; at++ {
		if got := ReadBits(low, (at-high)*p.shift, p.shift); got >= want {
			return got == want
		}
	}
	return false
}

// selectBit is the position of the set bit of w that has k set bits below it; there must be one.
func selectBit(w uint64, k uint) uint {
	// Counts of set bits in bytes, then in all bytes up to each one.
	s := w - w>>1&0x5555555555555555
	s = s&0x3333333333333333 + s>>2&0x3333333333333333
	s = (s + s>>4) & 0x0f0f0f0f0f0f0f0f * 0x0101010101010101
	// The bytes whose count is at most k lie below the bit.
	below := (uint64(k)*0x0101010101010101 | 0x8080808080808080) - s
	at := uint(bits.OnesCount64(below&0x8080808080808080)) * 8
	if at >= 64 {
		return 64
	}
	k -= uint(s << 8 >> at & 0xff)
	b := w >> at
	for ; k > 0; k-- {
		b &= b - 1
	}
	return at + uint(bits.TrailingZeros64(b))
}
