// Package keys is the key space of the store: every family of keys with one builder, one
// parser and one printer each. It is the only place that knows a prefix byte.
//
// A key is one family byte followed by fixed-width fields whose byte order is the order of the
// values: unsigned big endian for numbers, one byte for the numbered vocabularies of this
// package (Kind, FieldGroup, MetaName). Strings never appear in a key; what has a name gets
// a number. So all keys of a family have one length, a scan of a prefix is a scan of a domain
// range, and a key parses in exactly one way.
//
// The package does no I/O and knows no value encoding: values belong to package engine and
// docs/formats/store.md, keys to docs/formats/keys.md. It does not validate the meaning of a
// key (a segment kind that exists, yes; a range that makes sense, no).
//
// # Invariants
//
//   - Parse(k.Append(nil)) == k for every key k that this package can express.
//   - Append(Parse(b)) == b for every byte string b that Parse accepts.
//   - bytes.Compare of two keys of one family equals the comparison of their fields in the
//     order of the formula.
//   - A prefix byte is never reused. A retired family keeps its line in schema.go.
//
// All functions are pure and safe for concurrent use; Append functions write to the slice
// they are given and never return memory of this package.
package keys
