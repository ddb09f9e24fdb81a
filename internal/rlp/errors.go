package rlp

import (
	"errors"
	"fmt"
)

// What can be wrong with an encoding. They reach the caller inside an *Error.
var (
	// ErrTruncated: an item's header or content extends past the end of the input.
	ErrTruncated = errors.New("item extends past the end")
	// ErrLength: a length is not in its shortest form.
	ErrLength = errors.New("length is not in its shortest form")
	// ErrSingleByte: a byte below 0x80 has a string header.
	ErrSingleByte = errors.New("single byte with a header")
	// ErrNotString: a list stands where a string must.
	ErrNotString = errors.New("list in place of a string")
	// ErrNotList: a string stands where a list must.
	ErrNotList = errors.New("string in place of a list")
	// ErrInteger: an integer has leading zeros.
	ErrInteger = errors.New("integer with leading zeros")
	// ErrIntegerSize: an integer is too large for its place.
	ErrIntegerSize = errors.New("integer too large")
	// ErrStringSize: a string of fixed length has another one.
	ErrStringSize = errors.New("string of the wrong length")
	// ErrSurplus: something follows the last expected item.
	ErrSurplus = errors.New("surplus bytes after the last item")
)

// Error is a reason with its place.
type Error struct {
	// Offset is the position of the offending item's first byte, counted from the start of
	// the input that the outermost Reader was made for.
	Offset int
	// Err is one of the sentinels above.
	Err error
}

// Error writes the place and the reason.
func (e *Error) Error() string { return fmt.Sprintf("rlp offset %d: %v", e.Offset, e.Err) }

// Unwrap gives the reason.
func (e *Error) Unwrap() error { return e.Err }
