// Package rlp walks and writes Recursive Length Prefix encodings (Yellow Paper, appendix B)
// without copying or allocating.
//
// It is a walker, not a mapper: there is no reflection, no struct tag and no decoding into
// types. A Reader yields the items of a byte slice as sub-slices of it; the Append functions
// extend a caller's buffer. For convenience off the hot path use go-ethereum's rlp package,
// with which this one agrees about what is valid (its fuzz tests compare the two).
//
// Only the canonical form is accepted: lengths in their shortest form, a single byte below
// 0x80 without a header, integers without leading zeros. So for every item that the Reader
// accepts, writing it again gives the same bytes.
//
// Content slices alias the input and are clipped to their length, so appending to one never
// overwrites what follows it.
//
// Functions are pure. A Reader belongs to one goroutine; many may read the same bytes.
package rlp
