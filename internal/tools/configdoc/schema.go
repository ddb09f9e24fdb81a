package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"path/filepath"
	"reflect"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/invopop/jsonschema"

	"github.com/leani-go/leani/config"
)

const (
	schemaID = "https://leani.dev/schema/config-v1.json"
	module   = "github.com/leani-go/leani"
)

// schemaOf builds the schema of the whole settings file. root is where the sources are, for
// the descriptions.
func schemaOf(root string) (*jsonschema.Schema, error) {
	comments := new(jsonschema.Reflector)
	if err := comments.AddGoComments("", filepath.Join(root, "config"), jsonschema.WithFullComment()); err != nil {
		return nil, fmt.Errorf("read comments of package config: %w", err)
	}
	prefix := filepath.ToSlash(filepath.Join(root, "config"))
	r := &jsonschema.Reflector{
		Anonymous:                  true,
		ExpandedStruct:             true,
		FieldNameTag:               "toml",
		RequiredFromJSONSchemaTags: true,
		Mapper:                     scalarSchema,
		LookupComment: func(t reflect.Type, field string) string {
			key := prefix + "." + t.Name()
			if field != "" {
				return description(comments.CommentMap[key+"."+field], field)
			}
			return description(comments.CommentMap[key], t.Name())
		},
	}
	s := r.Reflect(new(config.Config))
	s.ID = schemaID
	s.Title = "Leani settings, version 1"
	addDefaults(s, s, reflect.TypeFor[config.Config]())
	s.OneOf = forms()
	return s, nil
}

// forms are the two shapes of a file.
func forms() []*jsonschema.Schema {
	preset := func(key string) *jsonschema.Schema { return &jsonschema.Schema{Required: []string{key}} }
	return []*jsonschema.Schema{
		{
			Title:    "starter form",
			Required: []string{"network", "finality"},
			OneOf:    []*jsonschema.Schema{preset("blocks"), preset("uniswap")},
			Not: &jsonschema.Schema{AnyOf: []*jsonschema.Schema{
				preset("chain"), preset("budgets"), preset("sources"), preset("processors"), preset("rpc"),
				preset("raw_history"), preset("artifact_storage"),
			}},
		},
		{
			Title:    "advanced form",
			Required: []string{"data_dir", "chain", "budgets", "sources", "finality", "processors", "rpc", "api"},
			Not:      preset("network"),
		},
	}
}

// scalarSchema maps the value types of package config that have a grammar of their own.
func scalarSchema(t reflect.Type) *jsonschema.Schema {
	text := func(pattern, description string) *jsonschema.Schema {
		return &jsonschema.Schema{Type: "string", Pattern: pattern, Description: description}
	}
	quantity := func(pattern string) *jsonschema.Schema {
		return &jsonschema.Schema{OneOf: []*jsonschema.Schema{
			{Type: "integer", Minimum: "0"}, {Type: "string", Pattern: pattern},
		}}
	}
	switch t {
	case reflect.TypeFor[config.HumanBytes]():
		return quantity(config.HumanBytesPattern)
	case reflect.TypeFor[config.HumanDuration]():
		return quantity(config.HumanDurationPattern)
	case reflect.TypeFor[config.HumanMilliseconds]():
		return quantity(config.HumanMillisecondsPattern)
	case reflect.TypeFor[config.SocketAddress]():
		return text(config.SocketAddressPattern, "")
	case reflect.TypeFor[config.AllowedHost]():
		return text(config.AllowedHostPattern, "")
	case reflect.TypeFor[config.AllowedOrigin]():
		return text(config.AllowedOriginPattern, "")
	}
	return nil
}

// addDefaults copies the default tags of a struct and of the structs it holds into their
// schemas.
func addDefaults(root, s *jsonschema.Schema, t reflect.Type) {
	for i := range t.NumField() {
		f := t.Field(i)
		name := f.Tag.Get("toml")
		if name == "-" {
			continue
		}
		p, _ := s.Properties.Get(name)
		if text := f.Tag.Get("default"); text != "" {
			p.Default = text
			if f.Type.PkgPath() == "" && f.Type.Kind() != reflect.String {
				p.Default = json.RawMessage(text) // numbers and booleans are written alike in JSON
			}
		}
		inner := f.Type
		for inner.Kind() == reflect.Pointer || inner.Kind() == reflect.Slice {
			inner = inner.Elem()
		}
		if d, ok := root.Definitions[inner.Name()]; ok && inner.Kind() == reflect.Struct {
			addDefaults(root, d, inner)
		}
	}
}

// description turns a Go comment into a sentence without the identifier: "Name is the x."
// becomes "The x."
func description(comment, identifier string) string {
	text := strings.Join(strings.Fields(comment), " ")
	for _, verb := range []string{" is ", " are ", " "} {
		if rest, ok := strings.CutPrefix(text, identifier+verb); ok {
			text = rest
			break
		}
	}
	r, size := utf8.DecodeRuneInString(text)
	if size == 0 {
		return ""
	}
	return string(unicode.ToUpper(r)) + text[size:]
}

// render writes the schema with stable indentation.
func render(s *jsonschema.Schema) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(s); err != nil {
		return nil, err
	}
	var out bytes.Buffer
	if err := json.Indent(&out, b.Bytes(), "", "  "); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}
