package config

import (
	"errors"
	"fmt"
	"sort"
	"strconv"
	"strings"

	"github.com/pelletier/go-toml/v2"
	"github.com/pelletier/go-toml/v2/unstable"
)

// document is a parsed TOML file: its values as a generic tree, and where each key stands.
type document struct {
	tree map[string]any
	// at has an entry for every key that the file writes, tables included. Array elements are
	// keys too: sources.history[0].
	at map[string]place
}

// place is a position in a file; both count from 1.
type place struct{ line, column int }

// has tells whether the file writes the key.
func (d *document) has(path string) bool {
	_, ok := d.at[path]
	return ok
}

// syntaxError is a document that is not TOML.
type syntaxError struct {
	message string
	place   place
}

func (e *syntaxError) located(file string) Problem {
	return Problem{
		Kind: Syntax, Message: e.message, Fix: "see https://toml.io for the grammar",
		File: file, Line: e.place.line, Column: e.place.column,
	}
}

// parseDocument parses twice: the decoder yields checked values, the syntax tree their places.
func parseDocument(data []byte) (*document, *syntaxError) {
	doc := &document{tree: map[string]any{}, at: map[string]place{}}
	if err := toml.Unmarshal(data, &doc.tree); err != nil {
		out := &syntaxError{message: strings.TrimPrefix(err.Error(), "toml: ")}
		var decode *toml.DecodeError
		if errors.As(err, &decode) {
			out.place.line, out.place.column = decode.Position()
		}
		return nil, out
	}
	doc.locate(data)
	return doc, nil
}

// locate walks the syntax tree of a document that is known to parse.
func (d *document) locate(data []byte) {
	l := locator{document: d, elements: map[string]int{}}
	for i, c := range data {
		if c == '\n' {
			l.newlines = append(l.newlines, i)
		}
	}
	var p unstable.Parser
	p.Reset(data)
	table := ""
	for p.NextExpression() {
		e := p.Expression()
		switch e.Kind {
		case unstable.Table:
			table, _, _ = l.key("", e)
		case unstable.ArrayTable:
			_, array, where := l.key("", e)
			table = element(array, l.elements[array])
			l.elements[array]++
			d.at[table] = where
		case unstable.KeyValue:
			path, _, _ := l.key(table, e)
			l.value(path, e.Value())
		}
	}
}

// locator turns syntax nodes into paths and places.
type locator struct {
	*document
	elements map[string]int // number of elements of arrays of tables so far
	newlines []int          // offsets of line ends
}

// key resolves an expression's dotted key below table and records each part at its first
// appearance. A part that names an array of tables means its newest element: path has the last
// part resolved so, written has it as it stands. where is the place of the last part.
func (l *locator) key(table string, e *unstable.Node) (path, written string, where place) {
	path = table
	for it := e.Key(); it.Next(); {
		part := it.Node()
		written = child(path, string(part.Data))
		where = l.place(int(part.Raw.Offset))
		if _, seen := l.at[written]; !seen {
			l.at[written] = where
		}
		path = written
		if n := l.elements[path]; n > 0 {
			path = element(path, n-1)
		}
	}
	return path, written, where
}

// value records what lies inside a value.
func (l *locator) value(path string, v *unstable.Node) {
	switch v.Kind {
	case unstable.InlineTable:
		for it := v.Children(); it.Next(); {
			inner, _, _ := l.key(path, it.Node())
			l.value(inner, it.Node().Value())
		}
	case unstable.Array:
		i := 0
		for it := v.Children(); it.Next(); i++ {
			at := element(path, i)
			l.at[at] = l.at[path]
			if raw := it.Node().Raw; raw.Length > 0 {
				l.at[at] = l.place(int(raw.Offset))
			}
			l.value(at, it.Node())
		}
	}
}

func (l *locator) place(offset int) place {
	line := sort.SearchInts(l.newlines, offset)
	start := 0
	if line > 0 {
		start = l.newlines[line-1] + 1
	}
	return place{line: line + 1, column: offset - start + 1}
}

// child is the path of a key in a table. Keys that TOML would quote are quoted.
func child(table, key string) string {
	bare := key != ""
	for _, c := range key {
		if !(c == '_' || c == '-' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z') {
			bare = false
		}
	}
	if !bare {
		key = strconv.Quote(key)
	}
	if table == "" {
		return key
	}
	return table + "." + key
}

// element is the path of an array element.
func element(array string, i int) string { return fmt.Sprintf("%s[%d]", array, i) }
