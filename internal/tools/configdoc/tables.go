package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/invopop/jsonschema"

	"github.com/leani-go/leani/config"
)

// The tables of the settings page stand between these lines.
const (
	beginMark = "<!-- begin generated tables: make generate -->"
	endMark   = "<!-- end generated tables -->"
)

// replaceTables puts fresh tables between the marks of a page.
func replaceTables(page []byte, s *jsonschema.Schema) ([]byte, error) {
	before, rest, ok := bytes.Cut(page, []byte(beginMark))
	_, after, ok2 := bytes.Cut(rest, []byte(endMark))
	if !ok || !ok2 {
		return nil, fmt.Errorf("%s has no %q and %q", tablesFile, beginMark, endMark)
	}
	var b bytes.Buffer
	b.Write(before)
	b.WriteString(beginMark + "\n")
	table(&b, s, s, "")
	b.WriteString("\n" + endMark)
	b.Write(after)
	return b.Bytes(), nil
}

// table writes the keys of one table, then the tables in it.
func table(b *bytes.Buffer, root, s *jsonschema.Schema, path string) {
	title := "Top level"
	if path != "" {
		title = "`" + path + "`"
	}
	fmt.Fprintf(b, "\n### %s\n\n", title)
	if path != "" && s.Description != "" {
		fmt.Fprintf(b, "%s\n\n", s.Description)
	}
	type inner struct {
		path   string
		schema *jsonschema.Schema
	}
	var tables []inner
	rows := 0
	for p := s.Properties.Oldest(); p != nil; p = p.Next() {
		if rows++; rows == 1 {
			b.WriteString("| key | type | required | default | meaning |\n| --- | --- | --- | --- | --- |\n")
		}
		required := ""
		if slices.Contains(s.Required, p.Key) {
			required = "yes"
		}
		fmt.Fprintf(b, "| `%s` | %s | %s | %s | %s |\n", p.Key, typeName(p.Value), required, defaultText(p.Value), cell(p.Value.Description))
		ref, at := p.Value.Ref, path+"."+p.Key
		if p.Value.Items != nil && p.Value.Items.Ref != "" {
			ref, at = p.Value.Items.Ref, at+"[]"
		}
		if d, ok := root.Definitions[strings.TrimPrefix(ref, "#/$defs/")]; ok {
			tables = append(tables, inner{strings.TrimPrefix(at, "."), d})
		}
	}
	for _, t := range tables {
		table(b, root, t.schema, t.path)
	}
}

// typeName describes what a key accepts.
func typeName(s *jsonschema.Schema) string {
	switch {
	case s.Ref != "":
		return "table"
	case len(s.OneOf) == 2:
		switch s.OneOf[1].Pattern {
		case config.HumanBytesPattern:
			return "size"
		case config.HumanDurationPattern:
			return "duration"
		case config.HumanMillisecondsPattern:
			return "milliseconds"
		}
	case s.Pattern == config.SocketAddressPattern:
		return "address"
	case s.Items != nil && s.Items.Ref != "":
		return "array of tables"
	case s.Items != nil:
		return "array of " + typeName(s.Items)
	case len(s.Enum) > 0:
		words := make([]string, len(s.Enum))
		for i, e := range s.Enum {
			words[i] = fmt.Sprintf("`%v`", e)
			if s.Type == "string" {
				words[i] = fmt.Sprintf("`\"%v\"`", e)
			}
		}
		return strings.Join(words, ", ")
	case s.Type == "integer":
		switch {
		case s.Maximum != "":
			return fmt.Sprintf("integer %s to %s", s.Minimum, s.Maximum)
		case s.MultipleOf != "":
			return fmt.Sprintf("integer, a multiple of %s", s.MultipleOf)
		}
		return fmt.Sprintf("integer ≥ %s", s.Minimum)
	case s.Type == "number":
		return fmt.Sprintf("number ≥ %s", s.Minimum)
	case s.Type == "object":
		return "table"
	case s.Type == "":
		return "any"
	}
	return s.Type
}

func defaultText(s *jsonschema.Schema) string {
	if s.Default == nil {
		return ""
	}
	text, err := json.Marshal(s.Default)
	if err != nil {
		return ""
	}
	return "`" + string(text) + "`"
}

func cell(s string) string { return strings.ReplaceAll(s, "|", `\|`) }
