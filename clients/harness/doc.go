// Package harness runs JavaScript clients against a node: for the tests of package clients and below.
//
// It is four things that tests put together.
//
//   - Main and Start: a leani binary, and a node in a folder of its own that serves HTTP and WebSocket and follows a
//     script of which the test writes line after line, so that blocks come and go one by one.
//   - Chainlab: the blocks of a synthetic chain as go-ethereum's types, proved with go-ethereum against their headers;
//     they are what the test expects.
//   - Fork: a competing block, made of another one. Verification checks roots and links, and there is no EVM: a block
//     with other logs and recomputed roots is as good as any.
//   - NodeModules and Session: the npm packages of a folder, and a process that speaks JSON lines with the test.
//
// Everything waits for what has to happen, bounded by Patience. Session.Waits alone waits for a moment, for tests that go on until a client
// says something; none depends on how long that takes. Nothing here is part of the node; only tests import it.
package harness
