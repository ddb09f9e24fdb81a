// Package chain is the vocabulary of the product: block references, ranges, the raw
// material of a block, log filters, and the fork and blob schedules of a network.
//
// It does no I/O and knows no store, file or wire format. Addresses and hashes are
// go-ethereum's common.Address and common.Hash; there is no second set of types.
//
// Unless a type says otherwise its values are plain data: safe to read from many
// goroutines, not safe to change while they are read.
package chain
