package codec

import (
	"encoding/binary"
	"errors"
	"math/bits"
)

// Trimmed words: log data is mostly ABI words of 32 bytes with many leading zero bytes. Each full
// word is written as a 4-bit length class and its low bytes; a rest of fewer than 32 bytes is
// written as it is.
//
// Layout: ceil(words/2) bytes of classes, low nibble first, then the bytes of all words, then the
// rest. The length of the data itself is not part of the encoding.

// WordSize is the size in bytes of an EVM word.
const WordSize = 32

// wordLengths are the byte counts that a class stands for. 20 is an address; the rest cover
// amounts, whose lengths spread over 1 to 16 bytes.
var wordLengths = [16]uint8{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 14, 16, 20, 32}

// wordClasses maps a number of significant bytes to the smallest class that holds them.
var wordClasses = [WordSize + 1]uint8{
	0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 11, 12, 12, 13, 13, 14, 14, 14, 14,
	15, 15, 15, 15, 15, 15, 15, 15, 15, 15, 15, 15,
}

// ErrWords reports trimmed words that are shorter than their classes say.
var ErrWords = errors.New("trimmed words end early")

// significant is the number of bytes of a word behind its leading zero bytes.
func significant(word []byte) int {
	for i := 0; i < WordSize; i += 8 {
		if v := binary.BigEndian.Uint64(word[i:]); v != 0 {
			return WordSize - i - bits.LeadingZeros64(v)/8
		}
	}
	return 0
}

// AppendWords appends the trimmed form of data.
func AppendWords(dst, data []byte) []byte {
	words := len(data) / WordSize
	if words == 0 {
		return append(dst, data...)
	}
	classAt := len(dst)
	for range (words + 1) / 2 {
		dst = append(dst, 0)
	}
	for i := range words {
		word := data[i*WordSize : (i+1)*WordSize]
		class := wordClasses[significant(word)]
		dst[classAt+i/2] |= class << (4 * (i & 1))
		dst = append(dst, word[WordSize-int(wordLengths[class]):]...)
	}
	return append(dst, data[words*WordSize:]...)
}

// DecodeWords appends size bytes of data that AppendWords wrote as the whole of src. It fails when
// src is shorter or longer than that.
func DecodeWords(dst, src []byte, size int) ([]byte, error) {
	words := size / WordSize
	classes := (words + 1) / 2
	if len(src) < classes {
		return dst, ErrWords
	}
	in := src[classes:]
	for i := range words {
		length := int(wordLengths[src[i/2]>>(4*(i&1))&15])
		if len(in) < length {
			return dst, ErrWords
		}
		dst = append(dst, zeroWord[length:]...)
		dst = append(dst, in[:length]...)
		in = in[length:]
	}
	if len(in) != size-words*WordSize {
		return dst, ErrWords
	}
	return append(dst, in...), nil
}

var zeroWord [WordSize]byte
