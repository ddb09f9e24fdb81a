package config

import (
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"github.com/pelletier/go-toml/v2"
)

// baseDir is where relative paths of test documents start.
const baseDir = "/srv/node"

// tree is a settings document that a test changes before it is parsed.
type tree map[string]any

// loadTree reads a document of testdata.
func loadTree(t *testing.T, name string) tree {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", name+".toml"))
	if err != nil {
		t.Fatal(err)
	}
	var out tree
	if err := toml.Unmarshal(data, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// literal is a value as TOML writes it.
func literal(t *testing.T, s string) any {
	t.Helper()
	var out struct{ V any }
	if err := toml.Unmarshal([]byte("V = "+s), &out); err != nil {
		t.Fatalf("literal %s: %v", s, err)
	}
	return out.V
}

// set writes a value, making tables on the way.
func (tr tree) set(path string, v any) {
	tr.at(path, func(t map[string]any, key string) { t[key] = v })
}

// remove deletes a key.
func (tr tree) remove(path string) {
	tr.at(path, func(t map[string]any, key string) { delete(t, key) })
}

// at calls f with the table that holds the last key of a path.
func (tr tree) at(path string, f func(t map[string]any, key string)) {
	table := map[string]any(tr)
	parts := strings.Split(path, ".")
	for _, part := range parts[:len(parts)-1] {
		name, index, indexed := strings.Cut(strings.TrimSuffix(part, "]"), "[")
		if indexed {
			i, _ := strconv.Atoi(index)
			table = table[name].([]any)[i].(map[string]any)
			continue
		}
		inner, ok := table[name].(map[string]any)
		if !ok {
			inner = map[string]any{}
			table[name] = inner
		}
		table = inner
	}
	f(table, parts[len(parts)-1])
}

// change applies assignments of the form path = value, separated by semicolons.
func (tr tree) change(t *testing.T, changes string) {
	t.Helper()
	for c := range strings.SplitSeq(changes, ";") {
		if path, value, ok := strings.Cut(c, "="); ok {
			tr.set(strings.TrimSpace(path), literal(t, value))
		}
	}
}

// text writes the document as TOML.
func (tr tree) text(t *testing.T) []byte {
	t.Helper()
	data, err := toml.Marshal(map[string]any(tr))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// check runs the loader up to its verdict. Unlike Parse it gives the Config in any case.
func check(t *testing.T, data []byte) (*Config, []Problem) {
	t.Helper()
	doc, err := parseDocument(data)
	if err != nil {
		t.Fatalf("%s\n%s", err.message, data)
	}
	c := &checker{doc: doc, config: new(Config)}
	c.decode()
	c.rules()
	c.availability()
	c.resolve(baseDir)
	return c.config, c.problems
}

// about keeps the problems with a key or with what lies inside it, those of a missing
// capability left out.
func about(problems []Problem, path string) []Problem {
	var out []Problem
	for _, p := range problems {
		inside := strings.HasPrefix(p.Field, path+".") || strings.HasPrefix(p.Field, path+"[")
		if p.Kind != Unavailable && (p.Field == path || inside) {
			out = append(out, p)
		}
	}
	return out
}

// valueAt is the value of a key in a loaded Config; absent tables give nil.
func valueAt(cfg *Config, path string) any {
	v := reflect.ValueOf(cfg).Elem()
	for part := range strings.SplitSeq(path, ".") {
		name, index, indexed := strings.Cut(strings.TrimSuffix(part, "]"), "[")
		for v.Kind() == reflect.Pointer {
			if v.IsNil() {
				return nil
			}
			v = v.Elem()
		}
		for _, f := range fieldsOf(v.Type()) {
			if f.name == name {
				v = v.Field(f.index)
				break
			}
		}
		if indexed {
			i, _ := strconv.Atoi(index)
			v = v.Index(i)
		}
	}
	if v.Kind() == reflect.Slice && v.Len() == 0 {
		return []any{}
	}
	return v.Interface()
}
