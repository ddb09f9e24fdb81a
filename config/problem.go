package config

import (
	"fmt"
	"strings"
)

// Kind classes problems by what an operator has to do about them.
type Kind string

// The kinds of problems.
const (
	Unreadable  Kind = "unreadable"  // the file cannot be read
	Syntax      Kind = "syntax"      // the document is not TOML
	Unknown     Kind = "unknown"     // the schema has no such key
	Missing     Kind = "missing"     // a required key is absent
	Mistyped    Kind = "type"        // the value has another type
	Invalid     Kind = "value"       // the value is outside what the key accepts
	Conflict    Kind = "conflict"    // two settings contradict each other
	Unavailable Kind = "unavailable" // valid, but this build cannot do it
)

// Problem is one thing wrong with a settings file.
type Problem struct {
	Kind Kind `json:"kind"`
	// Field is the path of the key, such as sources.history[0].endpoint; empty when the
	// problem is with the file as a whole.
	Field string `json:"field,omitempty"`
	// Value is the offending value as TOML writes it, shortened; empty when the key is absent.
	Value string `json:"value,omitempty"`
	// Message says what is wrong, without field and value.
	Message string `json:"message"`
	// Fix says what to write instead.
	Fix string `json:"fix,omitempty"`
	// File is the name of the settings file.
	File string `json:"file,omitempty"`
	// Line and Column count from 1; 0 when the problem has no place in the file.
	Line   int `json:"line,omitempty"`
	Column int `json:"column,omitempty"`
}

// String is the problem in one line: place, field, value, what is wrong, and the fix.
func (p Problem) String() string {
	var b strings.Builder
	if p.File != "" {
		b.WriteString(p.File)
		if p.Line > 0 {
			fmt.Fprintf(&b, ":%d:%d", p.Line, p.Column)
		}
		b.WriteString(": ")
	}
	if p.Field != "" {
		b.WriteString(p.Field)
		if p.Value != "" {
			b.WriteString(" = ")
			b.WriteString(p.Value)
		}
		b.WriteString(": ")
	}
	b.WriteString(p.Message)
	if p.Fix != "" {
		b.WriteString("; ")
		b.WriteString(p.Fix)
	}
	return b.String()
}

// Error is everything that is wrong with one settings file.
type Error struct {
	// Path is the file as the caller named it.
	Path string
	// Problems has at least one entry, in the order of the file.
	Problems []Problem
}

// Error lists all problems, one to a line.
func (e *Error) Error() string {
	lines := make([]string, len(e.Problems))
	for i, p := range e.Problems {
		lines[i] = p.String()
	}
	return strings.Join(lines, "\n")
}
