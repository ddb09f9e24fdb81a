// Package hexenc writes and reads the two hexadecimal forms of Ethereum JSON-RPC: DATA
// ("0x" and two lower-case digits a byte) and QUANTITY ("0x" and a number without leading
// zeros).
//
// The Append functions extend a caller's buffer and allocate only when it is too small; they
// write no JSON quotes. The Parse functions allocate nothing at all, take text or bytes, and
// are stricter than go-ethereum's hexutil in one point: the prefix must be a lower-case "0x".
//
// All functions are pure and safe for concurrent use.
package hexenc
