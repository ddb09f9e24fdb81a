// Package segments reads and writes the immutable files that hold finalized history.
//
// There are four kinds. A data file holds the complete material of a run of blocks in columns
// (DataBuilder, Data, Cursor). An index file maps log terms to the positions of logs, and transaction
// and block hashes to theirs, over the blocks of one or many data files (DataBuilder.WriteIndex,
// MergeIndexes, Index, ListCursor). A senders file is a sidecar of one data file (WriteSenders, Senders). A
// frames file holds what is there of blocks that are not complete (FramesBuilder, Frames).
// Their common container of pages and columns is File; the bytes are described in docs/formats/segment.md,
// data.md, index.md and frames.md.
//
// The package knows files, pages and columns. It does not know keys, the catalog, or which files
// exist: engine owns that, and decides when a file is written, published and removed.
//
// Invariants:
//
//   - A file is written once, front to back, and is valid only when its trailer is there. The same blocks
//     give the same bytes.
//   - Every byte of a file is covered by a page checksum, the footer checksum or a comparison with a
//     constant. A reader verifies the checksum of a page before it looks at a byte of it, and never reads
//     a whole file to use a part.
//   - A right checksum proves nothing about what the bytes say. Numbers are checked before they are used:
//     damage is a *corrupt.Error that says where, never a panic, and memory stays in proportion to the
//     bytes read.
//   - An index only proposes positions; whoever uses one compares the log with the query.
//
// Concurrency: a File, what views it (Data, Index, Senders) and a Cache are safe for concurrent use.
// Builders and cursors belong to one goroutine.
package segments
