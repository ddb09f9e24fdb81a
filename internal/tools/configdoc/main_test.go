package main

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/leani-go/leani/config"
)

// The tracked schema and tables are what the structs say now. When this fails, run
// `make generate`.
// CFG-310
func TestTrackedFilesAreFresh(t *testing.T) {
	root := filepath.Join("..", "..", "..")
	schema, err := schemaOf(root)
	if err != nil {
		t.Fatal(err)
	}
	want, err := render(schema)
	if err != nil {
		t.Fatal(err)
	}
	tracked, err := os.ReadFile(filepath.Join(root, schemaFile))
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(tracked, want) {
		t.Errorf("%s is stale: run make generate", schemaFile)
	}
	page, err := os.ReadFile(filepath.Join(root, tablesFile))
	if err != nil {
		t.Fatal(err)
	}
	updated, err := replaceTables(page, schema)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(page, updated) {
		t.Errorf("%s is stale: run make generate", tablesFile)
	}
}

// Go comments become sentences without identifiers.
func TestDescription(t *testing.T) {
	for in, want := range map[string]string{
		"ID is the\nname.":   "The name.",
		"ID names it.":       "Names it.",
		"IDs are different.": "IDs are different.",
		"":                   "",
	} {
		if got := description(in, "ID"); got != want {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
	}
}

// The settings that the page shows are valid: whole files as they stand, parts when they follow the first whole
// file.
func TestSamplesAreValid(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "..", tablesFile))
	if err != nil {
		t.Fatal(err)
	}
	samples := 0
	var whole []byte
	for i, part := range bytes.Split(page, []byte("```")) {
		if sample, ok := bytes.CutPrefix(part, []byte("toml\n")); ok && i%2 == 1 {
			samples++
			if bytes.HasPrefix(sample, []byte("config_version")) {
				whole = sample
			} else {
				sample = slices.Concat(whole, []byte("\n"), sample)
			}
			if _, err := config.Parse(sample, "sample", "/srv/node"); err != nil {
				t.Error(err)
			}
		}
	}
	if samples == 0 {
		t.Error("no samples found")
	}
}
