// Package receipt reads the encodings of transaction receipts, and writes the canonical one.
//
// Two exist. The canonical one is what the receipts root of a header commits to: the type
// byte (EIP-2718; none for legacy), then the list of status or state root, cumulative gas,
// bloom and logs. The slim one, of the EraE history format, is the list of type, status or
// state root, cumulative gas and logs: the bloom follows from the logs and is left out.
//
// The readers fill chain.Block without copying: logs alias the input. They accept only
// canonical RLP, so that writing what was read gives the same bytes. They check form, not
// truth: whether receipts belong to a block is decided by the roots.
//
// All functions are pure; they allocate only to grow the slices of the caller.
package receipt
