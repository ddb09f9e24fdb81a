// Package sender recovers who sent a transaction from its signature, straight from the
// EIP-2718 envelope.
//
// Every transaction type signs a run of its first RLP fields, which lie next to each other in
// the envelope, under a new list header. The signing hash is therefore computed over slices
// of the input; nothing is decoded into a transaction. What remains is one elliptic curve
// recovery, about 33 µs with libsecp256k1 (cgo) and about six times that without, which is the
// dearest step of reading a chain: recover in parallel, one Recoverer a goroutine, and only
// where senders are needed.
//
// The package is for mined transactions, whose place in a chain was verified: it accepts what
// some block could contain. An unprotected legacy transaction (before EIP-155) may have the
// high s value that Homestead later forbade, because the block number is not known here; every
// other one must have the low one.
package sender
