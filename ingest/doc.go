// Package ingest moves raw history from a source into a store: it reads runs of blocks, decodes
// and verifies them in parallel, and hands them over in order.
//
//	Source ── planner ──┬── worker: read, decode, verify ──┬── ordered stage ── Sink
//	 files    chunks    ├── worker: read, decode, verify ──┤   parent links
//	          memory    └── worker: digest of a file      ──┘   cuts, progress
//
// Fill is the whole of it. A chunk is a run of blocks of one file, small enough that many of them
// keep all workers busy and that a stop is never far away. Chunks are numbered by the order in
// which the planner makes them; workers finish them in any order; the ordered stage, which runs on
// the caller's goroutine, takes them in that order and does nothing but compare parent hashes and
// call the sink.
//
// Keep is for sources that have not the whole blocks which Fill reads: it takes frames, proves each as far as
// its material goes, and hands whole blocks to one sink and partial material, as what it is, to another.
//
// What it is not: it does not decide which blocks are worth having, it does not know the store (a
// Sink is all it needs), and it does not retry: what was committed before an error stays, and the
// next Fill goes on from there.
//
// # Invariants
//
//   - A block reaches the sink after every block before it in its range, after all of its roots were
//     recomputed, after its parent hash was compared, and after the digest of its file.
//   - Whatever ends a run, exactly the blocks before that point are committed.
//   - Runs join only on equal parent hashes: blocks of one range with each other, across files, and
//     the ends of a range with what is retained beside them.
//   - Memory of all chunks, in work and in reserve, stays within Options.MemoryBytes; only a chunk
//     that is larger than that by itself is admitted nevertheless, alone.
//
// # Concurrency
//
// Fill owns all goroutines that it starts (the planner, the workers, one that bounds the last
// commit after a cancellation) and waits for each before it returns. None recovers from a panic: a
// panic in a source or in verification ends the process. The sink is called from one goroutine.
package ingest
