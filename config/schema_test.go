package config

import (
	"bytes"
	"encoding/json"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// trackedSchema is config/schema-v1.json, compiled.
type trackedSchema struct{ *jsonschema.Schema }

func compiledSchema(t *testing.T) trackedSchema {
	t.Helper()
	data, err := os.ReadFile("schema-v1.json")
	if err != nil {
		t.Fatal(err)
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("config.json", doc); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile("config.json")
	if err != nil {
		t.Fatal(err)
	}
	return trackedSchema{s}
}

// validate checks a document against the schema.
func (s trackedSchema) validate(t *testing.T, doc tree) error {
	t.Helper()
	data, err := json.Marshal(doc)
	if err != nil {
		t.Fatal(err)
	}
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	return s.Validate(v)
}

// CFG-310: the tracked schema and the loader know the same keys, require the same ones, and
// have the same defaults. internal/tools/configdoc writes the schema; its test fails when the
// tracked file is stale.
func TestSchemaHasTheLoadersFields(t *testing.T) {
	root := compiledSchema(t)
	var compare func(path string, s *jsonschema.Schema, of reflect.Type)
	compare = func(path string, s *jsonschema.Schema, of reflect.Type) {
		var loader, schema, required []string
		for key := range s.Properties {
			schema = append(schema, key)
		}
		for _, f := range fieldsOf(of) {
			loader = append(loader, f.name)
			if f.required {
				required = append(required, f.name)
			}
			p := s.Properties[f.name]
			if p == nil {
				continue
			}
			if (p.Default != nil) != (f.fallback != "") {
				t.Errorf("%s.%s: default only on one side", path, f.name)
			}
			ft := of.Field(f.index).Type
			if ft.Kind() == reflect.Slice && p.Items2020 != nil {
				p = p.Items2020
			}
			for p.Ref != nil {
				p = p.Ref
			}
			for ft.Kind() == reflect.Pointer || ft.Kind() == reflect.Slice {
				ft = ft.Elem()
			}
			if _, isScalar := reflect.New(ft).Interface().(scalar); ft.Kind() == reflect.Struct && !isScalar {
				compare(path+"."+f.name, p, ft)
			}
		}
		slices.Sort(loader)
		slices.Sort(schema)
		if !slices.Equal(loader, schema) {
			t.Errorf("%s: loader %v, schema %v", path, loader, schema)
		}
		got := slices.Sorted(slices.Values(s.Required))
		slices.Sort(required)
		if !slices.Equal(got, required) {
			t.Errorf("%s: schema requires %v, loader %v", path, got, required)
		}
		if closed, ok := s.AdditionalProperties.(bool); !ok || closed {
			t.Errorf("%s: the schema lets unknown keys pass", path)
		}
	}
	compare("", root.Schema, reflect.TypeFor[Config]())
}

// CFG-311: the two forms share the schema, and each refuses the other's keys.
func TestForms(t *testing.T) {
	schema := compiledSchema(t)
	for _, name := range []string{"starter", "starter-uniswap", "everything", "raw-history"} {
		doc := loadTree(t, name)
		if err := schema.validate(t, doc); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		_, problems := check(t, doc.text(t))
		for _, p := range problems {
			if p.Kind != Unavailable {
				t.Errorf("%s: %v", name, p)
			}
		}
	}
	for name, foreign := range map[string]string{
		"starter":      `rpc = {http_bind = "127.0.0.1:1", ws_bind = "127.0.0.1:2", historical_mode = "disabled", minimum_recent_blocks = 1}`,
		"raw-history":  `network = "ethereum-mainnet"`,
		"raw-history ": `chain.chain_id = 0`,
		"starter ":     `uniswap = {markets = ["ETH/USDC"]}`,
	} {
		doc := loadTree(t, strings.TrimSpace(name))
		doc.change(t, foreign)
		if schema.validate(t, doc) == nil {
			t.Errorf("%s: the schema accepts %s", name, foreign)
		}
		if _, err := Parse(doc.text(t), "node.toml", baseDir); err == nil {
			t.Errorf("%s: the loader accepts %s", name, foreign)
		}
	}
}
