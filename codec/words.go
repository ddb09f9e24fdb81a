package codec

import (
	"encoding/binary"
	"errors"
	"math/bits"
	"slices"
)

// Trimmed words: log data is mostly ABI words of 32 bytes, most of whose bytes follow from the type:
// the zero bytes before a small number, the 0xff bytes before a small negative one, the zero bytes
// behind a short string or a selector. Each full word is written as a 6-bit class and the bytes that
// do not follow from it; a rest of fewer than 32 bytes is written as it is.
//
// Layout: the classes, packed from the least significant bit of the first byte on and padded to a
// byte; the bytes of all words; the rest. The length of the data is not part of the encoding.
//
// Classes: 0 to 32 say how many bytes stand behind zero bytes; 33 to 48, 1 to 16 bytes behind 0xff
// bytes; 49 to 63, 1 to 15 bytes before zero bytes.

// WordSize is the size in bytes of an EVM word.
const WordSize = 32

const (
	wordClassBits = 6
	negativeClass = WordSize      // plus the number of bytes, 1 to maximumNegative
	leftClass     = WordSize + 16 // plus the number of bytes, 1 to maximumLeft

	maximumNegative = 16
	maximumLeft     = 15
)

// ErrWords reports trimmed words that are shorter or longer than their classes say.
var ErrWords = errors.New("trimmed words do not have the length that their classes say")

// classOf picks the class that leaves the fewest bytes, and gives the bytes.
func classOf(word []byte) (class uint, kept []byte) {
	be := binary.BigEndian
	w := [4]uint64{be.Uint64(word), be.Uint64(word[8:]), be.Uint64(word[16:]), be.Uint64(word[24:])}
	n := WordSize - leadingBytes(w, 0)
	class, kept = uint(n), word[WordSize-n:]
	if n <= 1 {
		return class, kept
	}
	if word[0] == 0xff {
		if m := max(WordSize-leadingBytes(w, ^uint64(0)), 1); m <= maximumNegative && m < n {
			class, kept, n = negativeClass+uint(m), word[WordSize-m:], m
		}
	}
	if word[WordSize-1] == 0 {
		trailing := 0
		for i := 3; i >= 0; i-- {
			if w[i] != 0 {
				trailing += bits.TrailingZeros64(w[i]) / 8
				break
			}
			trailing += 8
		}
		if m := WordSize - trailing; m <= maximumLeft && m < n {
			class, kept = leftClass+uint(m), word[:m]
		}
	}
	return class, kept
}

// leadingBytes counts the bytes at the start of a word that equal those of fill, all zeros or all ones.
func leadingBytes(w [4]uint64, fill uint64) int {
	for i, v := range w {
		if v ^= fill; v != 0 {
			return i*8 + bits.LeadingZeros64(v)/8
		}
	}
	return WordSize
}

// classBytes is the size of the classes of a number of words.
func classBytes(words int) int { return (words*wordClassBits + 7) / 8 }

// AppendWords appends the trimmed form of data.
func AppendWords(dst, data []byte) []byte {
	words := len(data) / WordSize
	if words == 0 {
		return append(dst, data...)
	}
	at := len(dst)
	for range classBytes(words) {
		dst = append(dst, 0)
	}
	for i := range words {
		class, kept := classOf(data[i*WordSize : (i+1)*WordSize])
		bit := uint(i * wordClassBits)
		dst[at+int(bit>>3)] |= byte(class << (bit & 7))
		if bit&7 > 2 {
			dst[at+int(bit>>3)+1] |= byte(class >> (8 - bit&7))
		}
		dst = append(dst, kept...)
	}
	return append(dst, data[words*WordSize:]...)
}

// DecodeWords appends size bytes of data that AppendWords wrote as the whole of src. It fails when
// src is shorter or longer than that; size is not checked against src before it is allocated.
func DecodeWords(dst, src []byte, size int) ([]byte, error) {
	words := size / WordSize
	classes := classBytes(words)
	if len(src) < classes {
		return dst, ErrWords
	}
	in := src[classes:]
	start := len(dst)
	dst = slices.Grow(dst, size)[:start+size]
	out := dst[start:]
	clear(out)
	for i := range words {
		bit := uint(i * wordClassBits)
		class := uint(src[bit>>3]) >> (bit & 7)
		if bit&7 > 2 {
			class |= uint(src[bit>>3+1]) << (8 - bit&7)
		}
		class &= 1<<wordClassBits - 1
		n, word := int(class), out[i*WordSize:(i+1)*WordSize:(i+1)*WordSize]
		to := word
		switch {
		case class <= negativeClass:
			to = word[WordSize-n:]
		case class <= leftClass:
			n -= negativeClass
			for k := range WordSize - n {
				word[k] = 0xff
			}
			to = word[WordSize-n:]
		default:
			n -= leftClass
			to = word[:n]
		}
		if len(in) < n {
			return dst[:start], ErrWords
		}
		copy(to, in[:n])
		in = in[n:]
	}
	if len(in) != size-words*WordSize {
		return dst[:start], ErrWords
	}
	copy(out[words*WordSize:], in)
	return dst, nil
}
