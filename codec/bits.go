package codec

import (
	"encoding/binary"
	"math/bits"
)

// Slack is the number of bytes that must follow bit-packed data, because readers load whole
// 64-bit words.
const Slack = 8

// MaximumWidth is the widest value, in bits, that can be packed: a value that starts at any bit of
// a byte must fit one 64-bit load.
const MaximumWidth = 57

// Width is the number of bits needed to hold v, 0 for 0.
func Width(v uint64) uint { return uint(bits.Len64(v)) }

// PackedSize is the number of bytes that n values of the given width take, without slack.
func PackedSize(n int, width uint) int { return (n*int(width) + 7) / 8 }

// BitWriter appends values of any width to a byte slice, least significant bit first. Its zero
// value appends to an empty slice.
type BitWriter struct {
	out  []byte
	acc  uint64
	used uint
}

// Reset makes the writer append to dst.
func (w *BitWriter) Reset(dst []byte) { *w = BitWriter{out: dst} }

// Add appends the low width bits of v; width is at most MaximumWidth.
func (w *BitWriter) Add(v uint64, width uint) {
	w.acc |= v << w.used
	w.used += width
	if w.used >= 64 {
		w.out = binary.LittleEndian.AppendUint64(w.out, w.acc)
		w.used -= 64
		w.acc = v >> (width - w.used)
		if w.used == 0 {
			w.acc = 0
		}
	}
}

// Finish pads to a whole byte and returns the slice. The writer must be Reset before further use.
func (w *BitWriter) Finish() []byte {
	for w.used > 0 {
		w.out = append(w.out, byte(w.acc))
		w.acc >>= 8
		w.used -= min(w.used, 8)
	}
	return w.out
}

// AppendPacked appends values at the given width, without slack. Bits of a value above the width
// must be zero.
func AppendPacked(dst []byte, values []uint32, width uint) []byte {
	if width == 0 {
		return dst
	}
	w := BitWriter{out: dst}
	for _, v := range values {
		w.Add(uint64(v), width)
	}
	return w.Finish()
}

// ReadBits returns width bits that start at bit position at. The caller guarantees that Slack bytes
// follow the byte in which the value starts.
func ReadBits(b []byte, at uint, width uint) uint64 {
	return binary.LittleEndian.Uint64(b[at>>3:]) >> (at & 7) & (1<<width - 1)
}

// Packed is a read-only view of bit-packed values. The zero value holds only zeros.
type Packed struct {
	data  []byte // with slack
	width uint
}

// NewPacked views n values of the given width at the start of b, and returns what follows them. It
// returns false when b is too short for the values and their slack, or the width is out of range.
func NewPacked(b []byte, n int, width uint) (p Packed, rest []byte, ok bool) {
	if width > MaximumWidth || n < 0 {
		return Packed{}, nil, false
	}
	size := PackedSize(n, width)
	if len(b) < size+Slack {
		return Packed{}, nil, false
	}
	return Packed{data: b[:size+Slack], width: width}, b[size:], true
}

// At returns value i.
func (p *Packed) At(i int) uint64 {
	if p.width == 0 {
		return 0
	}
	return ReadBits(p.data, uint(i)*p.width, p.width)
}

// Rank counts the one bits among the first n bits of b. The caller guarantees slack.
func Rank(b []byte, n uint) uint {
	var count int
	for n >= 64 {
		count += bits.OnesCount64(binary.LittleEndian.Uint64(b))
		b = b[8:]
		n -= 64
	}
	if n > 0 {
		count += bits.OnesCount64(binary.LittleEndian.Uint64(b) & (1<<n - 1))
	}
	return uint(count)
}
