package config

import (
	"fmt"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// inventoryRow is one line of testdata/fields.txt, which names the requirement of each field.
type inventoryRow struct {
	id, path  string
	required  bool
	fallback  string
	good, bad []any
	document  string
	changes   string
}

func inventory(t *testing.T) []inventoryRow {
	t.Helper()
	data, err := os.ReadFile("testdata/fields.txt")
	if err != nil {
		t.Fatal(err)
	}
	var out []inventoryRow
	for line := range strings.Lines(string(data)) {
		if line = strings.TrimSpace(line); strings.HasPrefix(line, "#") {
			continue
		}
		c := append(strings.Split(line, " | "), "")
		out = append(out, inventoryRow{
			id: c[0], path: c[1], required: c[2] == "required", fallback: c[3],
			good: literal(t, c[4]).([]any), bad: literal(t, c[5]).([]any), document: c[6], changes: c[7],
		})
	}
	return out
}

// TestFields proves the inventory: each field is accepted with the values that its row calls
// good, refused at its own path with those it calls bad, missed when it is required, and has
// its default when it is absent. The rows cite CFG-001 to CFG-206.
func TestFields(t *testing.T) {
	schema := compiledSchema(t)
	for _, row := range inventory(t) {
		t.Run(row.path, func(t *testing.T) {
			parse := func(edit func(tree)) (*Config, []Problem, tree) {
				doc := loadTree(t, row.document)
				doc.change(t, row.changes)
				edit(doc)
				cfg, problems := check(t, doc.text(t))
				return cfg, problems, doc
			}
			for _, v := range row.good {
				_, problems, doc := parse(func(doc tree) { doc.set(row.path, v) })
				if got := about(problems, row.path); len(got) > 0 {
					t.Errorf("%v: %v", v, got)
				}
				if err := schema.validate(t, doc); err != nil {
					t.Errorf("%v: the schema refuses it: %v", v, err)
				}
			}
			for _, v := range row.bad {
				_, problems, _ := parse(func(doc tree) { doc.set(row.path, v) })
				if len(about(problems, row.path)) == 0 {
					t.Errorf("%v: accepted; problems elsewhere: %v", v, problems)
				}
			}
			without, problems, doc := parse(func(doc tree) { doc.remove(row.path) })
			missed := slices.ContainsFunc(problems, func(p Problem) bool { return p.Kind == Missing && p.Field == row.path })
			if missed != row.required {
				t.Errorf("absent: reported missing %v, want %v; problems: %v", missed, row.required, problems)
			}
			if !row.required && row.document == "everything" {
				if err := schema.validate(t, doc); err != nil {
					t.Errorf("absent: the schema refuses it: %v", err)
				}
			}
			if row.fallback != "-" {
				with, _, _ := parse(func(doc tree) { doc.set(row.path, literal(t, row.fallback)) })
				if got, want := valueAt(without, row.path), valueAt(with, row.path); !reflect.DeepEqual(got, want) {
					t.Errorf("absent: got %v, want %v", got, want)
				}
			}
		})
	}
}

// TestInventoryIsWhole: the inventory has every field of the structs and no other.
func TestInventoryIsWhole(t *testing.T) {
	indexes := regexp.MustCompile(`\[\d+\]`)
	var rows, fields []string
	for _, row := range inventory(t) {
		rows = append(rows, indexes.ReplaceAllString(row.path, "[]"))
	}
	walk(reflect.TypeFor[Config](), "", func(path string, _ field, _ reflect.Type) { fields = append(fields, path) })
	slices.Sort(rows)
	slices.Sort(fields)
	if !slices.Equal(rows, fields) {
		t.Errorf("rows %v\nfields %v", rows, fields)
	}
}

// TestTagsBoundIntegers: every integer field has a lower bound (the decoder relies on it), and
// the small ones an upper one.
func TestTagsBoundIntegers(t *testing.T) {
	walk(reflect.TypeFor[Config](), "", func(path string, f field, ft reflect.Type) {
		_, isScalar := reflect.New(ft).Interface().(scalar)
		switch kind := ft.Kind(); {
		case isScalar:
		case kind == reflect.Uint16 && f.maximum == nil, kind == reflect.Uint64 && f.minimum == nil && f.enum == nil, kind == reflect.Int && f.minimum == nil:
			t.Errorf("%s: a %s without bounds", path, kind)
		}
	})
}

// walk visits every field, tables before what they hold.
func walk(t reflect.Type, prefix string, visit func(path string, f field, t reflect.Type)) {
	for _, f := range fieldsOf(t) {
		path, ft := child(prefix, f.name), t.Field(f.index).Type
		if prefix != "" {
			path = prefix + "." + f.name
		}
		visit(path, f, ft)
		if ft.Kind() == reflect.Slice {
			path += "[]"
		}
		for ft.Kind() == reflect.Pointer || ft.Kind() == reflect.Slice {
			ft = ft.Elem()
		}
		if _, isScalar := reflect.New(ft).Interface().(scalar); ft.Kind() == reflect.Struct && !isScalar {
			walk(ft, path, visit)
		}
	}
}

// CFG-302: an unknown key is refused in every table, with its path. The schema agrees.
func TestUnknownKeys(t *testing.T) {
	schema := compiledSchema(t)
	tables := []string{""}
	for _, row := range inventory(t) {
		if doc := loadTree(t, "everything"); row.document == "everything" && row.path != "processors[0].settings" {
			if _, ok := lookup(doc, row.path).(map[string]any); ok {
				tables = append(tables, row.path+".")
			}
		}
	}
	tables = append(tables, "sources.history[1].", "processors[0].", "processors[0].delivery.consumers[0].")
	if len(tables) < 25 {
		t.Fatalf("only %d tables found", len(tables))
	}
	for _, table := range tables {
		doc := loadTree(t, "everything")
		path := table + "surprise"
		doc.set(path, int64(1))
		_, problems := check(t, doc.text(t))
		found := slices.ContainsFunc(problems, func(p Problem) bool { return p.Kind == Unknown && p.Field == path && p.Line > 0 })
		if !found {
			t.Errorf("%s: not reported: %v", path, problems)
		}
		if schema.validate(t, doc) == nil {
			t.Errorf("%s: the schema accepts it", path)
		}
	}
	doc := loadTree(t, "everything")
	doc.set("rpc.max_log_result", int64(1))
	_, problems := check(t, doc.text(t))
	if got := fmt.Sprint(about(problems, "rpc.max_log_result")); !strings.Contains(got, "did you mean max_log_results?") {
		t.Errorf("no suggestion in %s", got)
	}
}
