package rlp

import (
	"bytes"
	"math/big"
	"testing"

	gethrlp "github.com/ethereum/go-ethereum/rlp"
)

func seeds(f *testing.F) {
	for _, s := range []string{"80", "c0", "8100", "b838", "c7830102038101c0", "f90001", "a0" + "00000000000000000000000000000000000000000000000000000000000000ff", "880102030405060708", "bf8000000000000000"} {
		f.Add(unhex(f, s))
	}
}

// FuzzRLPSplit compares Split and Count with go-ethereum's.
func FuzzRLPSplit(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, b []byte) {
		kind, content, rest, err := Split(b)
		gKind, gContent, gRest, gErr := gethrlp.Split(b)
		if (err == nil) != (gErr == nil) {
			t.Fatalf("got error %v, go-ethereum %v", err, gErr)
		}
		if err == nil && ((kind == List) != (gKind == gethrlp.List) || !bytes.Equal(content, gContent) || !bytes.Equal(rest, gRest)) {
			t.Fatalf("got %v %x %x, go-ethereum %v %x %x", kind, content, rest, gKind, gContent, gRest)
		}
		n, err := Count(b)
		gN, gErr := gethrlp.CountValues(b)
		if (err == nil) != (gErr == nil) || (err == nil && n != gN) {
			t.Fatalf("count: got %d %v, go-ethereum %d %v", n, err, gN, gErr)
		}
	})
}

// FuzzRLPReader walks an arbitrary tree of items and compares the verdict with go-ethereum's
// decoder, and rebuilds what was accepted.
func FuzzRLPReader(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, b []byte) {
		var tree any
		gErr := gethrlp.DecodeBytes(b, &tree)
		r := NewReader(b)
		rebuilt, err := walk(&r, nil, 0)
		if err == nil {
			err = r.End()
		}
		if (err == nil) != (gErr == nil) {
			t.Fatalf("got error %v, go-ethereum %v", err, gErr)
		}
		if err == nil && !bytes.Equal(rebuilt, b) {
			t.Fatalf("rebuilt %x want %x", rebuilt, b)
		}

		r = NewReader(b)
		var (
			u, gU = r.Uint64(), uint64(0)
			g     = gethrlp.DecodeBytes(b, &gU)
		)
		if err := r.End(); (err == nil) != (g == nil) || (err == nil && u != gU) {
			t.Fatalf("uint64: got %d %v, go-ethereum %d %v", u, err, gU, g)
		}
		var gInt big.Int
		r = NewReader(b)
		digits := r.Integer(1 << 30)
		g = gethrlp.DecodeBytes(b, &gInt)
		if err := r.End(); (err == nil) != (g == nil) || (err == nil && !bytes.Equal(digits, gInt.Bytes())) {
			t.Fatalf("integer: got %x %v, go-ethereum %x %v", digits, err, gInt.Bytes(), g)
		}
	})
}

// walk reads one item and everything in it, and appends what the encoders make of it.
func walk(r *Reader, dst []byte, depth int) ([]byte, error) {
	before := r.pos
	kind, content := r.Next()
	if r.Err() != nil {
		return nil, r.Err()
	}
	if kind == String {
		return AppendString(dst, content), nil
	}
	r.pos = before
	list := r.List()
	var items []byte
	for list.More() {
		var err error
		if items, err = walk(&list, items, depth+1); err != nil {
			return nil, err
		}
	}
	if err := list.End(); err != nil {
		return nil, err
	}
	return append(AppendListHeader(dst, len(items)), items...), nil
}
