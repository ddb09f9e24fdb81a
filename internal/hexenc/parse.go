package hexenc

import (
	"errors"

	"github.com/ethereum/go-ethereum/common"
)

// What the Parse functions return. Messages name the fault but not the text, which the
// caller knows and may have to bound.
var (
	// ErrPrefix says that the text does not start with "0x".
	ErrPrefix = errors.New("hex text without 0x prefix")
	// ErrSyntax says that a character behind the prefix is no hexadecimal digit.
	ErrSyntax = errors.New("invalid hex digit")
	// ErrEmpty says that a quantity has no digits.
	ErrEmpty = errors.New("hex quantity without digits")
	// ErrLeadingZero says that a quantity other than "0x0" starts with a zero digit.
	ErrLeadingZero = errors.New("hex quantity with leading zero digits")
	// ErrRange says that a quantity takes more than 64 bits.
	ErrRange = errors.New("hex quantity above 64 bits")
	// ErrLength says that data does not have the length that its type has.
	ErrLength = errors.New("hex data of wrong length")
)

// Text is what the Parse functions read: text that is already a string, or a part of a
// request buffer.
type Text interface{ ~string | ~[]byte }

// invalid marks a byte that is no digit in the nibbles table.
const invalid = 0xff

// nibbles maps a digit of either case to its value, every other byte to invalid. Written
// once, then only read.
var nibbles = func() (t [256]byte) {
	for i := range t {
		t[i] = invalid
	}
	for i := range len(digits) {
		t[digits[i]] = byte(i)
	}
	for c := byte('A'); c <= 'F'; c++ {
		t[c] = c - 'A' + 10
	}
	return t
}()

// ParseQuantity reads a QUANTITY of at most 64 bits: "0x" and one or more digits, without
// leading zero except in "0x0". It fails with ErrPrefix, ErrEmpty, ErrLeadingZero, ErrSyntax
// or ErrRange; a text with several faults gets any of them.
func ParseQuantity[T Text](text T) (uint64, error) {
	if !hasPrefix(text) {
		return 0, ErrPrefix
	}
	length := len(text) - 2
	switch {
	case length == 0:
		return 0, ErrEmpty
	case length > 1 && text[2] == '0':
		return 0, ErrLeadingZero
	}
	var v uint64
	for i := 2; i < len(text); i++ {
		n := nibbles[text[i]]
		if n == invalid {
			return 0, ErrSyntax
		}
		if v>>60 != 0 {
			return 0, ErrRange
		}
		v = v<<4 | uint64(n)
	}
	return v, nil
}

// ParseHash reads a 32-byte DATA. It fails with ErrPrefix, ErrLength or ErrSyntax.
func ParseHash[T Text](text T) (common.Hash, error) {
	var h common.Hash
	if err := decode(h[:], text); err != nil {
		return common.Hash{}, err
	}
	return h, nil
}

// ParseAddress reads a 20-byte DATA. Both cases of digits are accepted and an EIP-55 checksum
// is not verified, as in every execution client. It fails with ErrPrefix, ErrLength or
// ErrSyntax.
func ParseAddress[T Text](text T) (common.Address, error) {
	var a common.Address
	if err := decode(a[:], text); err != nil {
		return common.Address{}, err
	}
	return a, nil
}

// decode fills out with the bytes of a DATA of exactly that length. After an error out is
// undefined.
func decode[T Text](out []byte, text T) error {
	if !hasPrefix(text) {
		return ErrPrefix
	}
	if len(text) != 2+2*len(out) {
		return ErrLength
	}
	for i := range out {
		high, low := nibbles[text[2+2*i]], nibbles[text[3+2*i]]
		if high|low == invalid {
			return ErrSyntax
		}
		out[i] = high<<4 | low
	}
	return nil
}

func hasPrefix[T Text](text T) bool {
	return len(text) >= 2 && text[0] == '0' && text[1] == 'x'
}
