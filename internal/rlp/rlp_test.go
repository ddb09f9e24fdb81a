package rlp

import (
	"bytes"
	"encoding/hex"
	"errors"
	"testing"

	gethrlp "github.com/ethereum/go-ethereum/rlp"
	"pgregory.net/rapid"
)

func unhex(t testing.TB, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(s)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestSplit(t *testing.T) {
	for _, c := range []struct {
		in, content, rest string
		kind              Kind
		err               error
	}{
		{in: "00", content: "00"},
		{in: "7f01", content: "7f", rest: "01"},
		{in: "80", content: ""},
		{in: "8180", content: "80"},
		{in: "83010203ff", content: "010203", rest: "ff"},
		{in: "c0", kind: List},
		{in: "c2010280", kind: List, content: "0102", rest: "80"},
		{in: "", err: ErrTruncated},
		{in: "8100", err: ErrSingleByte},
		{in: "817f", err: ErrSingleByte},
		{in: "81", err: ErrTruncated},
		{in: "b8", err: ErrTruncated},
		{in: "b800", err: ErrLength},
		{in: "b837" + "00", err: ErrLength},
		{in: "b838" + "00", err: ErrTruncated},
		{in: "b90038", err: ErrLength},
		{in: "bfffffffffffffffff", err: ErrTruncated},
		{in: "f800", err: ErrLength},
		{in: "ffffffffffffffffff", err: ErrTruncated},
		{in: "c1", err: ErrTruncated},
	} {
		kind, content, rest, err := Split(unhex(t, c.in))
		if !errors.Is(err, c.err) || (err == nil) != (c.err == nil) {
			t.Errorf("%s: got error %v want %v", c.in, err, c.err)
			continue
		}
		if err == nil && (kind != c.kind || hex.EncodeToString(content) != c.content || hex.EncodeToString(rest) != c.rest) {
			t.Errorf("%s: got %v %x %x", c.in, kind, content, rest)
		}
	}
}

// TestReaderNamesThePlace pins that offsets count from the outermost input however deep the
// offending item lies.
func TestReaderNamesThePlace(t *testing.T) {
	for _, c := range []struct {
		name, in string
		read     func(r *Reader) error
		offset   int
		err      error
	}{
		{"list for a string", "c3c20102", func(r *Reader) error { l := r.List(); l.Bytes(); return l.End() }, 1, ErrNotString},
		{"string for a list", "c20102", func(r *Reader) error { l := r.List(); l.Uint64(); l.List(); return l.End() }, 2, ErrNotList},
		{"nested", "c4c30182ff", func(r *Reader) error { l := r.List(); m := l.List(); m.Uint64(); m.Uint64(); return m.End() }, 3, ErrTruncated},
		{"surplus", "c20102", func(r *Reader) error { l := r.List(); l.Uint64(); return l.End() }, 2, ErrSurplus},
		{"leading zero", "c3820001", func(r *Reader) error { l := r.List(); l.Uint64(); return l.End() }, 1, ErrInteger},
		{"zero byte for zero", "c100", func(r *Reader) error { l := r.List(); l.Uint64(); return l.End() }, 1, ErrInteger},
		{"nine bytes", "89010203040506070809", func(r *Reader) error { r.Uint64(); return r.End() }, 0, ErrIntegerSize},
		{"wrong length", "820102", func(r *Reader) error { r.Fixed(3); return r.End() }, 0, ErrStringSize},
		{"past the end", "01", func(r *Reader) error { r.Uint64(); r.Uint64(); return r.Err() }, 1, ErrTruncated},
	} {
		r := NewReader(unhex(t, c.in))
		err := c.read(&r)
		var located *Error
		if !errors.As(err, &located) || located.Offset != c.offset || !errors.Is(err, c.err) {
			t.Errorf("%s: got %v, want offset %d: %v", c.name, err, c.offset, c.err)
		}
	}
}

func TestReaderErrorSticks(t *testing.T) {
	r := NewReader(unhex(t, "c001"))
	if r.Bytes() != nil || r.Err() == nil {
		t.Fatal("a list passed for a string")
	}
	if kind, content := r.Next(); kind != 0 || content != nil {
		t.Fatal("an item after the error")
	}
	list := r.List()
	if r.More() || list.More() || list.Err() == nil || r.Fixed(0) != nil || r.Uint64() != 0 {
		t.Fatal("the error did not stick")
	}
}

func TestOpenList(t *testing.T) {
	r := OpenList(unhex(t, "c20102"))
	if a, b := r.Uint64(), r.Uint64(); a != 1 || b != 2 || r.End() != nil {
		t.Fatal("items of the list", a, b, r.Err())
	}
	r = OpenListAt(unhex(t, "c28001"), 100)
	r.Bytes()
	r.List()
	var located *Error
	if !errors.As(r.Err(), &located) || located.Offset != 102 {
		t.Fatalf("got %v, want offset 102", r.Err())
	}
	for _, in := range []string{"", "01", "c20102c0", "c2"} {
		if r := OpenList(unhex(t, in)); r.Err() == nil || r.More() {
			t.Errorf("%q: accepted as one list", in)
		}
	}
}

func TestContentIsClipped(t *testing.T) {
	in := unhex(t, "82aabbcc")
	_, content, _, err := Split(in)
	if err != nil {
		t.Fatal(err)
	}
	_ = append(content, 0)
	if in[3] != 0xcc {
		t.Fatal("appending to content overwrote the input")
	}
}

// TestAppendEqualsGoEthereum compares every encoder and size with go-ethereum's encoder and
// reads the result back.
func TestAppendEqualsGoEthereum(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := rapid.Uint64().Draw(t, "v") >> rapid.IntRange(0, 63).Draw(t, "shift")
		s := rapid.SliceOfN(rapid.Byte(), 0, rapid.SampledFrom([]int{1, 2, 55, 56, 57, 300, 70_000}).Draw(t, "max")).Draw(t, "s")
		check := func(got []byte, size int, value any) {
			want, err := gethrlp.EncodeToBytes(value)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(got, want) || size != len(want) {
				t.Fatalf("got %x size %d want %x", got, size, want)
			}
		}
		check(AppendUint64(nil, v), SizeUint64(v), v)
		check(AppendString(nil, s), SizeString(s), s)

		list := AppendString(AppendUint64(nil, v), s)
		encoded := append(AppendListHeader(nil, len(list)), list...)
		check(encoded, SizeList(len(list)), []any{v, s})

		r := OpenList(encoded)
		if got := r.Uint64(); got != v {
			t.Fatalf("got %d want %d", got, v)
		}
		if _, raw := r.Raw(); !bytes.Equal(raw, AppendString(nil, s)) {
			t.Fatalf("raw item %x", raw)
		}
		if err := r.End(); err != nil {
			t.Fatal(err)
		}
		if n, err := Count(list); err != nil || n != 2 {
			t.Fatalf("count: %d %v", n, err)
		}
	})
}

func TestNothingAllocates(t *testing.T) {
	encoded := unhex(t, "c783010203c20102")
	buf := make([]byte, 0, 100)
	if n := testing.AllocsPerRun(100, func() {
		r := OpenList(encoded)
		for r.More() {
			r.Next()
		}
		buf = AppendUint64(AppendString(AppendListHeader(buf[:0], 300), encoded), 1<<40)
	}); n != 0 {
		t.Fatalf("%v allocations", n)
	}
}
