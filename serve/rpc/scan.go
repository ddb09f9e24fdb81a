package rpc

import (
	"encoding/binary"
	"fmt"
	"unicode/utf16"
	"unicode/utf8"
)

// This file reads JSON (RFC 8259). A request is checked completely once, by checkJSON, and then
// read through cursors that rely on the check: nothing is copied or built, so that memory stays
// bounded by the body whatever it nests or repeats, and ids can be given back byte by byte.
// General parsers build a tree of 50 to 100 times the size of "[[],[],…" and most of them
// recurse, take what RFC 8259 forbids, or hide duplicate members.

// value is one JSON value of a checked text, without white space around it. It aliases the text.
type value []byte

// syntaxError says where and why a text is no JSON.
type syntaxError struct {
	offset int
	reason string
}

func (e *syntaxError) Error() string { return fmt.Sprintf("%s at byte %d", e.reason, e.offset) }

// checkJSON checks that data is one JSON value in UTF-8, nested at most maxNesting deep, and
// returns it.
func checkJSON(data []byte) (value, error) {
	if !utf8.Valid(data) {
		return nil, &syntaxError{invalidUTF8(data), "invalid UTF-8"}
	}
	start := skipSpace(data, 0)
	end, reason := checkValue(data, start)
	if reason == "" {
		if rest := skipSpace(data, end); rest < len(data) {
			end, reason = rest, "text behind the value"
		}
	}
	if reason != "" {
		if end >= len(data) {
			reason = "unexpected end"
		}
		return nil, &syntaxError{end, reason}
	}
	return value(data[start:end]), nil
}

// checkValue checks the value at i and returns the offset behind it. If there is none it
// returns the offset of the fault and the reason.
//
// Open containers are one bit each of a stack in a machine word, set for an object, so that
// nesting costs neither recursion nor allocation.
func checkValue(data []byte, i int) (int, string) {
	var (
		objects uint64
		depth   int
		reason  string
	)
	for {
		// A value starts at i.
		if i >= len(data) {
			return i, "missing value"
		}
		switch c := data[i]; {
		case c == '"':
			i, reason = checkString(data, i)
		case c == '{' || c == '[':
			if depth == maxNesting {
				return i, fmt.Sprintf("nesting deeper than %d levels", maxNesting)
			}
			objects <<= 1
			depth++
			i = skipSpace(data, i+1)
			if c == '{' {
				objects |= 1
			}
			if i < len(data) && data[i] == c+2 { // '{'+2 is '}' and '['+2 is ']'
				break // empty: the loop below closes it
			}
			if c == '[' {
				continue
			}
			if i, reason = checkKey(data, i); reason != "" {
				return i, reason
			}
			continue
		case c == '-' || '0' <= c && c <= '9':
			i, reason = checkNumber(data, i)
		case c == 't':
			i, reason = checkLiteral(data, i, "true")
		case c == 'f':
			i, reason = checkLiteral(data, i, "false")
		case c == 'n':
			i, reason = checkLiteral(data, i, "null")
		default:
			return i, "unexpected character"
		}
		if reason != "" {
			return i, reason
		}
		// A value ended before i: close containers until one goes on.
		for {
			if depth == 0 {
				return i, ""
			}
			i = skipSpace(data, i)
			if i >= len(data) {
				return i, "unclosed container"
			}
			inObject := objects&1 == 1
			if c := data[i]; inObject && c == '}' || !inObject && c == ']' {
				objects >>= 1
				depth--
				i++
				continue
			}
			if data[i] != ',' {
				return i, "unexpected character"
			}
			i = skipSpace(data, i+1)
			if inObject {
				if i, reason = checkKey(data, i); reason != "" {
					return i, reason
				}
			}
			break
		}
	}
}

// checkKey checks a member name and its colon and returns the offset of the member's value.
func checkKey(data []byte, i int) (int, string) {
	if i >= len(data) || data[i] != '"' {
		return i, "missing member name"
	}
	i, reason := checkString(data, i)
	if reason != "" {
		return i, reason
	}
	i = skipSpace(data, i)
	if i >= len(data) || data[i] != ':' {
		return i, "missing colon"
	}
	return skipSpace(data, i+1), ""
}

// plainPrefix is how many bytes of data, in steps of eight, are plain parts of a string: no
// quote, no backslash and no control character. Most of a large request is hashes and
// addresses, which this passes at eight bytes a step.
func plainPrefix(data []byte) int {
	const (
		ones  = 0x0101010101010101
		highs = 0x8080808080808080
	)
	i := 0
	for ; len(data)-i >= 8; i += 8 {
		word := binary.LittleEndian.Uint64(data[i:])
		quote, backslash := word^(ones*'"'), word^(ones*'\\')
		// A subtraction sets the high bit of a byte that was below the subtrahend. Its borrow
		// may set that of the byte above as well, but never without a true find below.
		if ((word-ones*' ')&^word|(quote-ones)&^quote|(backslash-ones)&^backslash)&highs != 0 {
			break
		}
	}
	return i
}

func checkString(data []byte, i int) (int, string) {
	i++
	for i += plainPrefix(data[i:]); i < len(data); i++ {
		switch c := data[i]; {
		case c == '"':
			return i + 1, ""
		case c < ' ':
			return i, "control character in a string"
		case c == '\\':
			i++
			if i >= len(data) {
				return i, "unclosed string"
			}
			switch data[i] {
			case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
			case 'u':
				for range 4 {
					i++
					if i >= len(data) {
						return i, "unclosed string"
					}
					if _, ok := hexDigit(data[i]); !ok {
						return i, "invalid escape"
					}
				}
			default:
				return i, "invalid escape"
			}
		}
	}
	return i, "unclosed string"
}

func checkNumber(data []byte, i int) (int, string) {
	if data[i] == '-' {
		i++
	}
	switch {
	case i >= len(data) || !isDigit(data[i]):
		return i, "invalid number"
	case data[i] == '0':
		i++
	default:
		i = skipDigits(data, i)
	}
	if i < len(data) && data[i] == '.' {
		start := i + 1
		if i = skipDigits(data, start); i == start {
			return i, "invalid number"
		}
	}
	if i < len(data) && (data[i] == 'e' || data[i] == 'E') {
		i++
		if i < len(data) && (data[i] == '+' || data[i] == '-') {
			i++
		}
		start := i
		if i = skipDigits(data, start); i == start {
			return i, "invalid number"
		}
	}
	return i, ""
}

func checkLiteral(data []byte, i int, literal string) (int, string) {
	if len(data)-i < len(literal) || string(data[i:i+len(literal)]) != literal {
		return i, "invalid literal"
	}
	return i + len(literal), ""
}

// kind is the first character of the value, 't', 'f', 'n', '"', '{', '[', '-' or a digit.
func (v value) kind() byte { return v[0] }

func (v value) isNull() bool { return v[0] == 'n' }

func (v value) isNumber() bool { return v[0] == '-' || isDigit(v[0]) }

// text is the content of a string; false when the value is none. It aliases the value unless
// there are escapes to resolve.
func (v value) text() ([]byte, bool) {
	if v[0] != '"' {
		return nil, false
	}
	raw := v[1 : len(v)-1]
	for i, c := range raw {
		if c == '\\' {
			return unescape(raw, i), true
		}
	}
	return raw, true
}

// is tells whether the value is the string want.
func (v value) is(want string) bool {
	text, ok := v.text()
	return ok && string(text) == want
}

// unescape resolves the escapes of a string's content, the first of which is at offset first.
// A surrogate without its other half becomes the replacement character.
func unescape(raw []byte, first int) []byte {
	out := append(make([]byte, 0, len(raw)), raw[:first]...)
	for i := first; i < len(raw); {
		if raw[i] != '\\' {
			out = append(out, raw[i])
			i++
			continue
		}
		c := raw[i+1]
		i += 2
		switch c {
		case 'b':
			c = '\b'
		case 'f':
			c = '\f'
		case 'n':
			c = '\n'
		case 'r':
			c = '\r'
		case 't':
			c = '\t'
		case 'u':
			r := codeUnit(raw[i:])
			i += 4
			if utf16.IsSurrogate(r) && i+6 <= len(raw) && raw[i] == '\\' && raw[i+1] == 'u' {
				if pair := utf16.DecodeRune(r, codeUnit(raw[i+2:])); pair != utf8.RuneError {
					r = pair
					i += 6
				}
			}
			out = utf8.AppendRune(out, r)
			continue
		}
		out = append(out, c)
	}
	return out
}

// codeUnit reads four checked hexadecimal digits.
func codeUnit(digits []byte) rune {
	var r rune
	for _, c := range digits[:4] {
		d, _ := hexDigit(c)
		r = r<<4 | rune(d)
	}
	return r
}

// elements walks the elements of an array.
type elements struct {
	text []byte
	i    int
}

// elements starts at the first element; the value has to be an array.
func (v value) elements() elements { return elements{text: v, i: 1} }

// next returns the next element, false behind the last.
func (e *elements) next() (value, bool) {
	start := skipSpace(e.text, e.i)
	if e.text[start] == ']' {
		return nil, false
	}
	end := skipValue(e.text, start)
	e.i = skipSpace(e.text, end)
	if e.text[e.i] == ',' {
		e.i++
	}
	return value(e.text[start:end]), true
}

// members walks the members of an object.
type members struct {
	text []byte
	i    int
}

// members starts at the first member; the value has to be an object.
func (v value) members() members { return members{text: v, i: 1} }

// next returns the next member, its name as a JSON string; false behind the last.
func (m *members) next() (name, v value, ok bool) {
	start := skipSpace(m.text, m.i)
	if m.text[start] == '}' {
		return nil, nil, false
	}
	end := skipValue(m.text, start)
	name = value(m.text[start:end])
	start = skipSpace(m.text, skipSpace(m.text, end)+1) // over the colon
	end = skipValue(m.text, start)
	m.i = skipSpace(m.text, end)
	if m.text[m.i] == ',' {
		m.i++
	}
	return name, value(m.text[start:end]), true
}

// skipValue returns the offset behind the value that starts at i of a checked text.
func skipValue(text []byte, i int) int {
	switch text[i] {
	case '"':
		return skipString(text, i)
	case '{', '[':
		depth := 0
		for {
			switch text[i] {
			case '"':
				i = skipString(text, i)
				continue
			case '{', '[':
				depth++
			case '}', ']':
				depth--
				if depth == 0 {
					return i + 1
				}
			}
			i++
		}
	default:
		for i < len(text) {
			switch text[i] {
			case ',', '}', ']', ' ', '\t', '\n', '\r', ':':
				return i
			}
			i++
		}
		return i
	}
}

func skipString(text []byte, i int) int {
	i++
	for i += plainPrefix(text[i:]); text[i] != '"'; i++ {
		if text[i] == '\\' {
			i++
		}
	}
	return i + 1
}

func skipSpace(text []byte, i int) int {
	for i < len(text) && (text[i] == ' ' || text[i] == '\n' || text[i] == '\r' || text[i] == '\t') {
		i++
	}
	return i
}

func skipDigits(text []byte, i int) int {
	for i < len(text) && isDigit(text[i]) {
		i++
	}
	return i
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

func hexDigit(c byte) (byte, bool) {
	switch {
	case isDigit(c):
		return c - '0', true
	case 'a' <= c && c <= 'f':
		return c - 'a' + 10, true
	case 'A' <= c && c <= 'F':
		return c - 'A' + 10, true
	}
	return 0, false
}

// invalidUTF8 is the offset of the first byte that is no UTF-8.
func invalidUTF8(data []byte) int {
	for i := 0; i < len(data); {
		r, size := utf8.DecodeRune(data[i:])
		if r == utf8.RuneError && size <= 1 {
			return i
		}
		i += size
	}
	return len(data)
}
