package archive

import (
	"bytes"
	"encoding/json"
	"fmt"
	"unicode/utf8"
)

// padding is the number of zero bytes that follow the text of a scanner. No JSON token holds a zero
// byte, so that reads need no check for the end.
const padding = 8

// maximumDepth bounds the nesting of a value that is skipped.
const maximumDepth = 32

// scanner reads JSON (RFC 8259) without building a tree. Its first error stays, and from then on it
// yields nothing; callers look at it once, at the end. It accepts what the standard does, but that
// members it is told about may occur once only, and takes integers alone where numbers are read.
type scanner struct {
	text []byte // with padding at its end
	end  int    // without padding
	pos  int
	err  error
}

// syntaxError is what is wrong with a text, and where.
type syntaxError struct {
	offset int // in bytes from the start of the text
	reason string
}

func (e *syntaxError) Error() string { return fmt.Sprintf("column %d: %s", e.offset+1, e.reason) }

// reset begins a text, which is followed by padding in its memory.
func (s *scanner) reset(padded []byte) {
	*s = scanner{text: padded, end: len(padded) - padding}
}

// pad appends the padding.
func pad(text []byte) []byte { return append(text, make([]byte, padding)...) }

func (s *scanner) fail(format string, args ...any) { s.failAt(s.pos, format, args...) }

func (s *scanner) failAt(pos int, format string, args ...any) {
	if s.err == nil {
		s.err = &syntaxError{min(pos, s.end), fmt.Sprintf(format, args...)}
	}
	s.pos = s.end
}

// peek skips white space and is the next byte, 0 at the end.
func (s *scanner) peek() byte {
	for {
		c := s.text[s.pos]
		if c > ' ' {
			return c
		}
		switch c {
		case ' ', '\t', '\n', '\r':
			s.pos++
		default:
			return c
		}
	}
}

// expect reads a byte of punctuation.
func (s *scanner) expect(c byte) {
	if s.peek() != c {
		s.unexpected(fmt.Sprintf("%q", c))
		return
	}
	s.pos++
}

func (s *scanner) unexpected(want string) {
	if s.pos >= s.end {
		s.fail("the text ends where %s must follow", want)
		return
	}
	s.fail("got %q, want %s", s.text[s.pos], want)
}

// finish refuses anything but white space after the value, and gives the first error.
func (s *scanner) finish() error {
	if s.peek(); s.err == nil && s.pos < s.end {
		s.fail("more text after the value")
	}
	return s.err
}

// literal reads a word such as null, when it is next.
func (s *scanner) literal(word string) bool {
	s.peek()
	if !bytes.HasPrefix(s.text[s.pos:], []byte(word)) {
		return false
	}
	s.pos += len(word)
	return true
}

// null reads null, when it is next.
func (s *scanner) null() bool { return s.peek() == 'n' && s.literal("null") }

// boolean reads true or false.
func (s *scanner) boolean() bool {
	switch {
	case s.literal("true"):
		return true
	case !s.literal("false"):
		s.unexpected("true or false")
	}
	return false
}

// integer reads an integer from 0 to limit.
func (s *scanner) integer(limit uint64) uint64 {
	c := s.peek() - '0'
	start := s.pos
	if c > 9 {
		s.unexpected("an integer")
		return 0
	}
	v := uint64(c)
	s.pos++
	for {
		c := s.text[s.pos] - '0'
		if c > 9 {
			break
		}
		next := v*10 + uint64(c)
		if v == 0 || v > (1<<64-1)/10 || next < v { // a leading zero, or beyond 64 bits
			s.failAt(start, "not an integer of 64 bits")
			return 0
		}
		v = next
		s.pos++
	}
	switch c := s.text[s.pos]; {
	case c == '.' || c == 'e' || c == 'E':
		s.failAt(start, "not an integer")
		return 0
	case v > limit:
		s.failAt(start, "%d is above %d", v, limit)
		return 0
	}
	return v
}

// str reads a string. The result aliases the text unless escapes make that impossible.
func (s *scanner) str() []byte {
	if s.peek() != '"' {
		s.unexpected("a string")
		return nil
	}
	start := s.pos + 1
	for i := start; ; i++ {
		switch c := s.text[i]; {
		case c == '"':
			s.pos = i + 1
			if !utf8.Valid(s.text[start:i]) {
				s.failAt(start, "the string is not UTF-8")
			}
			return s.text[start:i]
		case c == '\\':
			return s.escaped(start)
		case c < ' ':
			s.failAt(i, "the string does not end, or holds a control character")
			return nil
		}
	}
}

// escaped reads a string with escapes, whose content begins at start.
func (s *scanner) escaped(start int) []byte {
	i := start
	for ; s.text[i] != '"'; i++ {
		if s.text[i] == '\\' {
			i++
		}
		if i >= s.end {
			s.failAt(start, "the string does not end")
			return nil
		}
	}
	var value string
	if err := json.Unmarshal(s.text[start-1:i+1], &value); err != nil || !utf8.Valid(s.text[start:i]) {
		s.failAt(start, "not a string of JSON")
		return nil
	}
	s.pos = i + 1
	return []byte(value)
}

// list reads the start of an array and tells whether an element follows; element tells the same after
// each.
func (s *scanner) list() bool {
	if s.expect('['); s.err != nil {
		return false
	}
	if s.peek() == ']' {
		s.pos++
		return false
	}
	return true
}

func (s *scanner) element() bool {
	switch s.peek() {
	case ',':
		s.pos++
		return s.err == nil
	case ']':
		s.pos++
		return false
	}
	s.unexpected("a comma or the end of the array")
	return false
}

// octets reads an array of integers from 0 to 255 and appends them to dst.
func (s *scanner) octets(dst []byte) []byte {
	if s.peek() != '[' {
		s.unexpected("an array of bytes")
		return dst
	}
	s.pos++
	if s.peek() == ']' {
		s.pos++
		return dst
	}
	// Whatever goes on here, a zero byte of the padding is none of the bytes looked for.
	text, i := s.text, s.pos
	for {
		v := uint32(text[i]) - '0'
		if v > 9 {
			if i = s.space(i); text[i]-'0' <= 9 {
				continue
			}
			s.failAt(i, "not an integer from 0 to 255")
			return dst
		}
		if d := uint32(text[i+1]) - '0'; d <= 9 {
			w := v*10 + d
			if d := uint32(text[i+2]) - '0'; d <= 9 {
				w = w*10 + d
				i++
			}
			if v == 0 || w > 255 {
				s.failAt(i-1, "not an integer from 0 to 255")
				return dst
			}
			v = w
			i++
		}
		dst = append(dst, byte(v))
		i++
		c := text[i]
		if c != ',' && c != ']' {
			i = s.space(i)
			c = text[i]
		}
		switch c {
		case ',':
			i++
		case ']':
			s.pos = i + 1
			return dst
		default:
			s.failAt(i, "not an integer from 0 to 255")
			return dst
		}
	}
}

// space is the place of the first byte that is no white space.
func (s *scanner) space(i int) int {
	s.pos = i
	s.peek()
	return s.pos
}

// fixed is octets for arrays of n bytes. It is nil after an error.
func (s *scanner) fixed(dst []byte, n int) []byte {
	s.peek()
	start, length := s.pos, len(dst)
	dst = s.octets(dst)
	if got := len(dst) - length; s.err == nil && got != n {
		s.failAt(start, "%d bytes, want %d", got, n)
	}
	if s.err != nil {
		return nil
	}
	return dst
}

// skip reads a value of any kind.
func (s *scanner) skip() { s.skipNested(maximumDepth) }

func (s *scanner) skipNested(depth int) {
	if depth == 0 {
		s.fail("nested more than %d deep", maximumDepth)
		return
	}
	switch c := s.peek(); {
	case c == '[':
		for more := s.list(); more; more = s.element() {
			s.skipNested(depth - 1)
		}
	case c == '{':
		for o := s.object(nil); s.member(&o) != none; {
			s.skipNested(depth - 1)
		}
	case c == '"':
		s.str()
	case c == 't' || c == 'f':
		s.boolean()
	case c == 'n' && s.null():
	default:
		s.number()
	}
}

// number skips a number of any form.
func (s *scanner) number() {
	start := s.pos
	for s.text[s.pos] == '-' || s.text[s.pos] == '+' || s.text[s.pos] == '.' || s.text[s.pos]|0x20 == 'e' || s.text[s.pos]-'0' <= 9 {
		s.pos++
	}
	if !json.Valid(s.text[start:s.pos]) {
		s.failAt(start, "not a value of JSON")
	}
}
