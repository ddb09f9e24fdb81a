// Package bloom computes log blooms: the 2048-bit filters of receipts and headers, in which
// each log sets three bits for its address and three for each topic (Yellow Paper, 4.3.1,
// function M3:2048).
//
// Which bits a value sets comes from its Keccak-256, and the same few contracts, events and
// holders appear in block after block. A Memo therefore remembers the bits of values it saw,
// and hashes those it does not know many at a time.
//
// Bits is a plain value. A Memo belongs to one goroutine.
package bloom
