package rlp

// Reader yields the items of a run of items one after the other. Its error is sticky: after
// the first failure every method returns a zero value, so that a caller can read many fields
// and check once.
//
//	list := rlp.NewReader(encoded).List() // or r.List() for a nested one
//	number, hash := list.Uint64(), list.Fixed(32)
//	if err := list.End(); err != nil { … }
//
// A Reader for a nested list has an error of its own: ask each one with End or Err.
type Reader struct {
	data []byte
	pos  int
	base int // place of data[0] in the outermost input
	err  *Error
}

// NewReader reads the items of b.
func NewReader(b []byte) Reader { return Reader{data: b} }

// OpenList reads b as exactly one list and returns a Reader of its items. The error, if any,
// is in the Reader.
func OpenList(b []byte) Reader { return OpenListAt(b, 0) }

// OpenListAt is OpenList for a part of a larger input that starts at offset base there:
// places in errors count from the start of that input.
func OpenListAt(b []byte, base int) Reader {
	r := Reader{data: b, base: base}
	list := r.List()
	if err := r.End(); err != nil && list.err == nil {
		list.err = r.err
	}
	return list
}

// Failed returns a Reader without items whose error is err at the given offset, for callers
// that find something wrong with an item beyond its encoding.
func Failed(offset int, err error) Reader { return Reader{err: &Error{Offset: offset, Err: err}} }

// More tells whether another item follows. It is false after an error.
func (r *Reader) More() bool { return r.pos < len(r.data) && r.err == nil }

// Offset is the place of the next item, counted from the start of the outermost input.
func (r *Reader) Offset() int { return r.base + r.pos }

// Err returns the first error, an *Error, or nil.
func (r *Reader) Err() error {
	if r.err == nil {
		return nil
	}
	return r.err
}

// End returns the first error, and reports surplus bytes when not every item was read.
func (r *Reader) End() error {
	if r.err == nil && r.pos < len(r.data) {
		r.fail(ErrSurplus)
	}
	return r.Err()
}

// fail makes err the Reader's error at the place of the next item, unless it already has one.
func (r *Reader) fail(err error) {
	if r.err == nil {
		r.err = &Error{Offset: r.base + r.pos, Err: err}
	}
}

// Next reads an item of either kind and returns its content.
func (r *Reader) Next() (Kind, []byte) {
	if r.err != nil {
		return 0, nil
	}
	kind, start, end, err := header(r.data[r.pos:])
	if err != nil {
		r.fail(err)
		return 0, nil
	}
	start, end = start+r.pos, end+r.pos
	r.pos = end
	return kind, r.data[start:end:end]
}

// Raw reads an item of either kind and returns its whole encoding, header and content. What
// is inside a list is not checked.
func (r *Reader) Raw() (Kind, []byte) {
	start := r.pos
	kind, _ := r.Next()
	if r.err != nil {
		return 0, nil
	}
	return kind, r.data[start:r.pos:r.pos]
}

// List reads a list and returns a Reader of its items. On failure both this Reader and the
// returned one carry the error.
func (r *Reader) List() Reader {
	start := r.pos
	kind, content := r.Next()
	if r.err == nil && kind != List {
		r.pos = start
		r.fail(ErrNotList)
	}
	if r.err != nil {
		return Reader{err: r.err}
	}
	return Reader{data: content, base: r.base + r.pos - len(content)}
}

// Bytes reads a string.
func (r *Reader) Bytes() []byte {
	start := r.pos
	kind, content := r.Next()
	if kind != String {
		r.pos = start
		r.fail(ErrNotString)
		return nil
	}
	return content
}

// Fixed reads a string of exactly n bytes; nil after an error.
func (r *Reader) Fixed(n int) []byte {
	start := r.pos
	content := r.Bytes()
	if r.err != nil {
		return nil
	}
	if len(content) != n {
		r.pos = start
		r.fail(ErrStringSize)
		return nil
	}
	return content
}

// Uint64 reads an integer of at most 8 bytes.
func (r *Reader) Uint64() uint64 {
	var v uint64
	for _, digit := range r.Integer(8) {
		v = v<<8 | uint64(digit)
	}
	return v
}

// Integer reads an integer of at most size bytes, big endian without leading zeros; zero is
// the empty string.
func (r *Reader) Integer(size int) []byte {
	start := r.pos
	content := r.Bytes()
	if r.err != nil {
		return nil
	}
	var err error
	switch {
	case len(content) > 0 && content[0] == 0:
		err = ErrInteger
	case len(content) > size:
		err = ErrIntegerSize
	default:
		return content
	}
	r.pos = start
	r.fail(err)
	return nil
}
