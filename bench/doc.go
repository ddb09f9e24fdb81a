// Package bench holds the workloads that the project's speed is measured with, as a library, and the
// benchmarks of `go test -bench` over them. docs/benchmarks.md says what is measured and how to repeat
// it.
//
// The data sets:
//
//   - a test chain: era files of a chain and a file of queries with the number of logs each must
//     return (OpenChain). It is not part of the repository; what needs it is skipped without it;
//   - the corpus: a chain without state or signatures that is generated here (Corpus), as long as
//     wanted, with the popularity of contracts and holders of a busy chain, and its own queries;
//   - the few Mainnet blocks in testdata/era, so that something always runs.
//
// Every workload checks what it measures: a query that returns another number of logs than it must is
// an error, not a fast query.
//
// Layers have benchmarks of their own next to the code (codec, segments, ingest, serve/rpc and
// others); here are those that cross packages, and those whose data would not fit there.
//
// The package may use all others. Only its own commands use it. A workload runs on the goroutine that
// calls it and those it starts, which end before it returns.
package bench
