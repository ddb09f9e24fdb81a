package rlp

import "math/bits"

// AppendUint64 appends the encoding of an integer.
func AppendUint64(dst []byte, v uint64) []byte {
	switch {
	case v == 0:
		return append(dst, stringPrefix)
	case v < stringPrefix:
		return append(dst, byte(v))
	}
	n := byteLen(v)
	return appendBigEndian(append(dst, stringPrefix+byte(n)), v, n)
}

// AppendString appends the encoding of a string.
func AppendString(dst, s []byte) []byte {
	if len(s) == 1 && s[0] < stringPrefix {
		return append(dst, s[0])
	}
	return append(AppendStringHeader(dst, len(s)), s...)
}

// AppendStringHeader appends the header of a string of n bytes; the content must follow. A
// string of one byte below 0x80 has no header: the caller must not ask for one.
func AppendStringHeader(dst []byte, n int) []byte {
	return appendHeader(dst, stringPrefix, longStringPrefix, n)
}

// AppendListHeader appends the header of a list whose encoded items have n bytes together;
// they must follow.
func AppendListHeader(dst []byte, n int) []byte {
	return appendHeader(dst, listPrefix, longListPrefix, n)
}

func appendHeader(dst []byte, short, long byte, n int) []byte {
	if n <= shortMaximum {
		return append(dst, short+byte(n))
	}
	size := byteLen(uint64(n))
	return appendBigEndian(append(dst, long+byte(size)), uint64(n), size)
}

func appendBigEndian(dst []byte, v uint64, n int) []byte {
	for shift := 8 * (n - 1); shift >= 0; shift -= 8 {
		dst = append(dst, byte(v>>shift))
	}
	return dst
}

// byteLen is the number of bytes of v without leading zeros.
func byteLen(v uint64) int { return (bits.Len64(v) + 7) / 8 }

// SizeUint64 is the encoded size of an integer in bytes.
func SizeUint64(v uint64) int {
	if v < stringPrefix {
		return 1
	}
	return 1 + byteLen(v)
}

// SizeString is the encoded size of a string in bytes.
func SizeString(s []byte) int {
	if len(s) == 1 && s[0] < stringPrefix {
		return 1
	}
	return SizeHeader(len(s)) + len(s)
}

// SizeHeader is the size in bytes of the header of a list, or of a string that has one, with
// n bytes of content.
func SizeHeader(n int) int {
	if n <= shortMaximum {
		return 1
	}
	return 1 + byteLen(uint64(n))
}

// SizeList is the encoded size in bytes of a list whose encoded items have n bytes together.
func SizeList(n int) int { return SizeHeader(n) + n }
