// Package history keeps the raw history of a chain: it turns verified blocks into segment files,
// finds blocks, transactions and logs in them, merges their indexes, and proves what is stored.
//
// It stands on two packages and adds no format of its own: engine commits and retires files, segments
// knows what is inside them. A Writer builds a data file and its index and commits both as one edit,
// so that blocks, logs and index appear together. A View reads one snapshot; it reports blocks that
// are not retained and never answers for them. Compact merges index files into higher tiers and small
// data files into full ones. Verify proves receipts and transactions against the headers and the
// index against the logs.
//
// Concurrency: a Store is safe for concurrent use. A Writer and a View belong to one goroutine.
package history
