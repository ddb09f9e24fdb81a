// Command configdoc writes what is derived from the settings structs of package config: the
// JSON schema config/schema-v1.json and the tables of docs/configuration.md.
//
// The structs are the only authority. Names, constraints and defaults come from their tags,
// descriptions from their comments. It runs through `make generate`; the package's test fails
// when the tracked files are not what it would write.
package main

import (
	"flag"
	"log"
	"os"
	"path/filepath"
)

func main() {
	log.SetFlags(0)
	root := flag.String("root", ".", "root `directory` of the project")
	flag.Parse()
	if err := run(*root); err != nil {
		log.Fatalf("error: %v", err)
	}
}

// The files that are written, below the project's root.
const (
	schemaFile = "config/schema-v1.json"
	tablesFile = "docs/configuration.md"
)

func run(root string) error {
	schema, err := schemaOf(root)
	if err != nil {
		return err
	}
	text, err := render(schema)
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(root, schemaFile), text, 0o644); err != nil {
		return err
	}
	page := filepath.Join(root, tablesFile)
	old, err := os.ReadFile(page)
	if err != nil {
		return err
	}
	updated, err := replaceTables(old, schema)
	if err != nil {
		return err
	}
	return os.WriteFile(page, updated, 0o644)
}
