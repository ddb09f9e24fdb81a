// Package verify proves the raw material of a block against its header.
//
// A source delivers bytes; this package decides whether they are the block that the header
// commits to: number and parent link, transactions, ommers, withdrawals and receipts by their
// roots, logs by the bloom, gas by the last receipt. It fills in what follows from the proven
// bytes: the block hash and the transaction hashes.
//
// It does not say that the header itself belongs to the chain. The caller anchors that: each
// block names its parent's hash, so that one trusted hash at the end of a run proves the run.
// Nor does it execute anything or check signatures.
//
// A Verifier belongs to one goroutine and allocates nothing per block once warm. Blocks can be
// verified in any order and on many goroutines; only the parent link joins them.
package verify
