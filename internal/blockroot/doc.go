// Package blockroot recomputes what a header commits to from the raw material of its block:
// the roots of transactions, receipts and withdrawals, the transaction hashes and the logs
// bloom.
//
// It computes and does not compare: the ingest pipeline holds the results against the header
// before a block is stored, and a store check does the same with what it reads back. Stored
// receipts and blooms need no copy of their canonical bytes for that.
//
// A Hasher belongs to one goroutine. It keeps its buffers (a few MiB after large blocks) and
// allocates nothing once warm.
package blockroot
