// Package codec holds the byte encodings that files and keys are made of: bit-packed integers,
// Elias-Fano lists, trimmed 32-byte words, compression, and checksummed pages.
//
// It knows bytes and integers, never what a column or a key means. Encoders append to a slice and
// return it; decoders take untrusted bytes, return an error instead of panicking, and never
// allocate more than their caller allowed. Every function is safe for concurrent use on distinct
// arguments.
//
// Readers of packed bits load eight bytes at a time. Whoever frames such data appends Slack zero
// bytes behind it, and whoever parses it checks once, with the size functions here, that the whole
// column and its slack lie inside the page; single reads are then free of checks of their own.
package codec
