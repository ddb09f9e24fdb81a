// Package subsquid has no code of its own: its test runs the Subsquid processor beside this file, which follows an ERC-20
// token at a node, and compares the rows with what the chain says.
package subsquid
