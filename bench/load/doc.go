// Package load puts a node under load and checks everything that it answers.
//
// A run makes a chain, fills a node with it as `leani history fill` does, starts `leani serve` in a process of its own, and
// then lets many clients at it while blocks arrive and are replaced: clients that ask log queries over HTTP one after the other,
// and WebSockets with many subscriptions each. In the second half of the time there are also clients that misbehave: some that
// stop reading, one that reads slowly.
//
// What every answer and every stream of notifications has to be is computed before, from the blocks, without the node. A run fails when
// one differs, when an error comes that is not a documented limit, when a stream is not complete and in order, when
// a misbehaving client is not cut off, or when the node takes more memory than it may. Times are reported and
// decide nothing.
//
// The chain is that of bench.ProvedBlocks. The JSON of logs and heads comes from package ethjson, which has its own tests
// against go-ethereum. Nothing here is part of the node; one Run at a time, whose goroutines end before it returns.
package load
