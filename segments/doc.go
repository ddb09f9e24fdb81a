// Package segments reads and writes the immutable files that hold finalized history.
//
// There are three kinds. A data file holds the complete material of a run of blocks in columns. An
// index file maps log terms to the positions of logs, and transaction and block hashes to theirs,
// over the blocks of one or many data files. A senders file is a sidecar of one data file. Their
// common container, the page file, is described in docs/formats/segment.md; the columns in
// docs/formats/data.md and docs/formats/index.md.
//
// The package knows files, pages and columns. It does not know keys, the catalog, or which files
// exist: engine owns that, and decides when a file is written, published and removed.
//
// Invariants: a file is written once, front to back, and is valid only when its trailer is there;
// every byte of it is covered by a page checksum, the footer checksum or a comparison with a
// constant; a reader verifies the checksum of a page before it looks at a byte of it and never
// reads a whole file to use a part; an index only proposes positions, and whoever uses it compares
// the log with the query.
//
// Concurrency: a File and a Cache are safe for concurrent use. Builders and cursors belong to one
// goroutine.
package segments
