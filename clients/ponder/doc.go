// Package ponder has no code of its own: its test runs the Ponder project beside this file, which indexes an ERC-20 token
// from a node, and compares the rows with what the chain says.
package ponder
