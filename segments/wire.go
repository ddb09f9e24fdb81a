package segments

import (
	"encoding/binary"
	"errors"

	"github.com/ethereum/go-ethereum/common"
)

// errWire is what a wireReader says of bytes that no writer makes: they end early, a number is not in its
// shortest form, or a value is not one of its vocabulary.
var errWire = errors.New("not a value that is ever written")

// wireReader takes a value apart that is made of uvarints, bytes and strings with their length before them.
// After the first fault it yields zeros; err says so. What it returns aliases the input.
type wireReader struct {
	b   []byte
	bad bool
}

func (r *wireReader) fail() { r.b, r.bad = nil, true }

// done is nil when everything was read and nothing was wrong.
func (r *wireReader) done() error {
	if r.bad || len(r.b) != 0 {
		return errWire
	}
	return nil
}

// number reads a uvarint of at most maximum, in its shortest form.
func (r *wireReader) number(maximum uint64) uint64 {
	v, n := binary.Uvarint(r.b)
	if n <= 0 || v > maximum || n > 1 && r.b[n-1] == 0 {
		r.fail()
		return 0
	}
	r.b = r.b[n:]
	return v
}

// count reads the number of items that take at least size bytes each: there are no more than can follow.
func (r *wireReader) count(size int) int {
	return int(r.number(uint64(len(r.b)) / uint64(size)))
}

// take reads n bytes.
func (r *wireReader) take(n int) []byte {
	if n > len(r.b) {
		r.fail()
		return nil
	}
	v := r.b[:n:n]
	r.b = r.b[n:]
	return v
}

// octet reads a byte of at most maximum.
func (r *wireReader) octet(maximum byte) byte {
	if len(r.b) == 0 || r.b[0] > maximum {
		r.fail()
		return 0
	}
	v := r.b[0]
	r.b = r.b[1:]
	return v
}

func (r *wireReader) flag() bool { return r.octet(1) == 1 }

// bytes reads bytes with their length before them.
func (r *wireReader) bytes() []byte { return r.take(r.count(1)) }

// text reads a string into memory of its own.
func (r *wireReader) text() string { return string(r.bytes()) }

// hash and address alias the input; they are nil after a fault.
func (r *wireReader) hash() *common.Hash {
	if b := r.take(common.HashLength); b != nil {
		return (*common.Hash)(b)
	}
	return nil
}

func (r *wireReader) address() *common.Address {
	if b := r.take(common.AddressLength); b != nil {
		return (*common.Address)(b)
	}
	return nil
}

// hashValue is hash in memory of its own.
func (r *wireReader) hashValue() (h common.Hash) {
	if p := r.hash(); p != nil {
		h = *p
	}
	return h
}

// appendBytes appends b with its length before it.
func appendBytes(dst, b []byte) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(b)))
	return append(dst, b...)
}

func appendText(dst []byte, s string) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(s)))
	return append(dst, s...)
}

func appendFlag(dst []byte, set bool) []byte {
	if set {
		return append(dst, 1)
	}
	return append(dst, 0)
}
