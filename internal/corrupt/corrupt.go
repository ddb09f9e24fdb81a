// Package corrupt holds the one error type for damaged stored data: a file of the segment
// tier, a page of it, or a row of the store. Everybody who reads bytes back from disk reports
// damage with it, so that a caller can ask "is it corruption, and where?" without matching
// text.
//
// It does not decide what to do about the damage, and it is not for bad input from outside
// (an era file, a request): those errors belong to whoever reads them.
package corrupt

import (
	"errors"
	"strconv"
	"strings"
)

// NoPage is the value of Error.Page for damage that belongs to no page: a file header, a
// footer, a row of the store, a missing file.
const NoPage = -1

// Error locates damage. It is immutable once returned.
type Error struct {
	// File is the path of the damaged file as its owner knows it, or a printed key for a row.
	File string
	// Page is the number of the page in the file's page directory, NoPage when there is none.
	Page int
	// Offset is the byte offset in the file where the damage was noticed, 0 when the file as
	// a whole is damaged.
	Offset int64
	// Err says what is wrong: "checksum: got … want …".
	Err error
}

// New reports damage of a whole file or row.
func New(file string, err error) *Error {
	return &Error{File: file, Page: NoPage, Err: err}
}

// AtOffset reports damage at a byte offset outside any page.
func AtOffset(file string, offset int64, err error) *Error {
	return &Error{File: file, Page: NoPage, Offset: offset, Err: err}
}

// AtPage reports damage of one page that starts at offset.
func AtPage(file string, page int, offset int64, err error) *Error {
	return &Error{File: file, Page: page, Offset: offset, Err: err}
}

// Error writes file, page, offset and cause.
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString("corrupt ")
	b.WriteString(e.File)
	if e.Page != NoPage {
		b.WriteString(" page ")
		b.WriteString(strconv.Itoa(e.Page))
	}
	if e.Page != NoPage || e.Offset != 0 {
		b.WriteString(" offset ")
		b.WriteString(strconv.FormatInt(e.Offset, 10))
	}
	if e.Err != nil {
		b.WriteString(": ")
		b.WriteString(e.Err.Error())
	}
	return b.String()
}

// Unwrap gives the cause.
func (e *Error) Unwrap() error { return e.Err }

// Is tells whether err reports corruption anywhere in its chain.
func Is(err error) bool {
	var e *Error
	return errors.As(err, &e)
}
