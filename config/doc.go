// Package config reads the settings file of a node: one TOML document of schema version 1.
//
// Load is strict. A key that the schema does not know, a value of the wrong type or outside
// its range, a missing required key and a contradiction between two keys are all refused, and
// all of them are reported together, each with the key's path, the value as written, its line
// and what to write instead. Settings that belong to the schema but ask for something this
// build does not do are refused as "not available in this build": nothing in a file is
// silently ignored. Settings that are required by the schema, or that only limit something
// this build does not do, are accepted and named in Config.Warnings.
//
// The struct types are the authority for shape: their `toml` tags name the keys, their
// `jsonschema` tags say what is required and which values pass, their `default` tags hold the
// values of absent keys. The decoder, the tracked file schema-v1.json and the tables of
// docs/configuration.md all come from them (internal/tools/configdoc writes the latter two),
// so the three cannot disagree.
//
// The package is no place for flags, environment variables or wiring: it is a function from
// bytes and a base directory to a Config, and opens nothing but the settings file itself.
// Relative paths inside the file resolve against the file's own directory, never against the
// working directory.
//
// A Config is plain data, immutable once Load returned it, and safe for concurrent readers.
package config
