package rlp

// Kind tells strings from lists.
type Kind uint8

// The kinds of items. A single byte below 0x80 is a string that is its own encoding.
const (
	String Kind = iota
	List
)

// Prefix bytes (Yellow Paper, appendix B): a short string or list has its length, up to 55,
// in the prefix; a long one has the number of length bytes there.
const (
	stringPrefix     = 0x80
	longStringPrefix = 0xb7
	listPrefix       = 0xc0
	longListPrefix   = 0xf7
	shortMaximum     = 55
)

// EmptyList is the encoding of the empty list.
const EmptyList = listPrefix

// Split reads the first item of b and returns its kind, its content without the header, and
// what follows it. Both slices alias b. The error is one of the sentinels, without a place:
// it always concerns the item at offset 0.
func Split(b []byte) (kind Kind, content, rest []byte, err error) {
	kind, start, end, err := header(b)
	if err != nil {
		return 0, nil, b, err
	}
	return kind, b[start:end:end], b[end:], nil
}

// Count returns the number of items in a run of items such as a list's content. It checks
// the headers of the items, not what is inside them.
func Count(b []byte) (int, error) {
	n := 0
	for offset := 0; offset < len(b); n++ {
		_, _, end, err := header(b[offset:])
		if err != nil {
			return 0, &Error{Offset: offset, Err: err}
		}
		offset += end
	}
	return n, nil
}

// header reads the prefix of the item at the start of b and returns where its content starts
// and ends.
func header(b []byte) (kind Kind, start, end int, err error) {
	if len(b) == 0 {
		return 0, 0, 0, ErrTruncated
	}
	prefix := b[0]
	switch {
	case prefix < stringPrefix:
		return String, 0, 1, nil
	case prefix <= longStringPrefix:
		end = 1 + int(prefix-stringPrefix)
		if end > len(b) {
			return 0, 0, 0, ErrTruncated
		}
		if end == 2 && b[1] < stringPrefix {
			return 0, 0, 0, ErrSingleByte
		}
		return String, 1, end, nil
	case prefix < listPrefix:
		start, end, err = long(b, int(prefix-longStringPrefix))
		return String, start, end, err
	case prefix <= longListPrefix:
		end = 1 + int(prefix-listPrefix)
		if end > len(b) {
			return 0, 0, 0, ErrTruncated
		}
		return List, 1, end, nil
	}
	start, end, err = long(b, int(prefix-longListPrefix))
	return List, start, end, err
}

// long reads a length of n bytes after the prefix.
func long(b []byte, n int) (start, end int, err error) {
	start = 1 + n
	if start > len(b) {
		return 0, 0, ErrTruncated
	}
	if b[1] == 0 {
		return 0, 0, ErrLength
	}
	var length uint64
	for _, digit := range b[1:start] {
		length = length<<8 | uint64(digit)
	}
	if length <= shortMaximum {
		return 0, 0, ErrLength
	}
	if length > uint64(len(b)-start) {
		return 0, 0, ErrTruncated
	}
	return start, start + int(length), nil
}
