// Package rpc serves Ethereum JSON-RPC over HTTP and WebSocket from a store of retained history.
//
// A request goes through these files, and each knows only what its line says:
//
//	server.go, transport.go   HTTP: which requests are taken, how a body comes in and goes out
//	websocket.go, socket.go   WebSocket: upgrades; a connection, its messages and what is queued on it
//	exchange.go, request.go   JSON-RPC 2.0: batches, notifications, ids, the size of a response
//	methods.go                which method is which function
//	metadata.go … logs.go     the methods: parameters, one view of the store, a result
//	subscribe.go              eth_subscribe and eth_unsubscribe
//	hub.go, event.go          what happens to the chain, brought to the subscriptions of all sockets
//	encoder.go                the JSON of blocks, transactions, receipts and logs
//	errors.go                 which failure of the store is which error of the wire
//	limits.go                 every limit, with its reason
//
// scan.go and params.go read JSON without reflection and without building values; lane.go keeps
// heavy queries from delaying light ones; memory.go and response.go bound and recycle memory.
//
// The package does not know how history is stored: it declares the Store it reads and the Feed it
// is told changes by. It does not forward or cache.
//
// Invariants:
//   - One call answers from one View. What a view does not hold is an error with a reason,
//     never an empty answer; null means that the chain up to the head has no such thing.
//   - A response is complete and valid JSON, within its size limit, or it is not sent.
//   - Memory a request may use is bounded by the limits before the request is known to be
//     good; whoever waits for memory holds none.
//   - What is pushed was committed before; a log or a head is written as JSON once, however many
//     subscriptions get it; and no client holds up another: one that does not keep pace is closed.
//   - A client learns what it did wrong, and of failures of the node only that there was one.
//
// Concurrency: each HTTP connection is served by one goroutine, a WebSocket by one that reads and
// answers and one that writes. A Server, its service and all that
// hangs on it are safe for concurrent use; an exchange and a call belong to one goroutine at a
// time, which during a heavy query is a worker of the lane. fasthttp owns its RequestCtx and
// everything read from it: nothing of it is kept after the handler returns. The response buffer
// is the exchange's and is recycled when fasthttp lets go of the request, after the write.
package rpc
