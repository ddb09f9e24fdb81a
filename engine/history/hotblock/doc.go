// Package hotblock encodes a block of the hot tier as parts, so that a reader takes only the part it needs:
// header, body, receipts, logs, hashes. docs/formats/hot.md has the bytes.
//
// The log part is a small columnar store of its own: rows in fixed-width columns, dictionaries of addresses
// and topics, and a sorted array of terms with their posting lists. Logs decodes and checks it once; then
// look-ups and rows are slice accesses.
//
// Decoders take any bytes: they never panic and never allocate more than a small multiple of what they were
// given. What they accept is consistent in itself; that it is what was stored is proved by the checksum of the
// row it came from. Everything decoded is immutable and safe for concurrent use.
package hotblock
