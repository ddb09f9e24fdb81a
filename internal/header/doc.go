// Package header reads block headers in their canonical RLP without copying.
//
// A Header is a view: its pointers and slices alias the encoding it was parsed from and live
// as long as that. The encoding stays the authority (the block hash is its Keccak-256); there
// is no writer. Whether the values are right is not decided here.
//
// Parse is pure and allocates only to report an error.
package header
