// Package layering holds the order of the project's packages as a test: who may import whom,
// each rule with its reason. It has no code of its own.
//
//	5  cmd  >  config                              assembly
//	4  serve   ingest   processors   delivery      flows; they meet only in cmd
//	3  engine                                      the store
//	2  segments                                    immutable columnar files
//	1  keys   codec                                bytes
//	0  api  >  chain   internal/*                  words, wire types, errors
//
// Imports point down only. Packages on one line do not import each other, except that > points
// to what its left side may import, and that chain and internal/* are free among themselves.
// Commands of internal/tools, benchmarks, cross-package fuzz targets and the tests of real clients
// stand above everything and are imported by nothing.
package layering
