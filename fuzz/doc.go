// Package fuzz holds the fuzz targets that go through several packages at once, on the bundled blocks
// of Ethereum Mainnet. Targets of one package lie beside its code. `make fuzz` runs them all, `make check`
// for a moment; inputs that once failed, and those that reach far, are in testdata.
//
//	FuzzFill    an era file that somebody changed, from disk to the store
//	FuzzServe   requests, from the socket to the answer, on two stores of one chain
//
// It has no code of its own and nothing imports it.
package fuzz
