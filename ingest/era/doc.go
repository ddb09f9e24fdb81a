// Package era reads Ethereum history files, era1 (.era1) and EraE (.ere, older .erae), and writes the
// latter.
//
// Both are e2store files: a sequence of records, each a two-byte tag, a four-byte length, two
// zero bytes and the data, with an index as the last record. What a file is follows from its
// tags, and which blocks it holds from its index; names mean nothing to this package except
// in a catalog, where they say which chain a file belongs to.
//
//	era1  Version, then Header Body Receipts TotalDifficulty for each block,
//	      Accumulator, BlockIndex
//	EraE  Version, all Headers, all Bodies, then where present all SlimReceipts, Proofs,
//	      TotalDifficulties, Accumulator, DynamicBlockIndex
//
// Headers, bodies and receipts are RLP in the framed Snappy format. EraE files say in their
// index which of the optional components they have; the tag of the first record of each
// component tells which one it is. The tags 08 and 09, which a draft of EraE used for slim
// receipts and proofs, are understood too.
//
// A File checks form: extents, tags, lengths, checksums of Snappy chunks, canonical RLP, the
// block number of each header, and in era1 that the bloom of each receipt follows from its
// logs. Whether a block is the one that its header commits to is for package ingest/verify.
// Proofs are not read.
//
// Nothing is trusted for an allocation: every size is compared with a limit of Options, or
// with the size of the file, before memory is reserved for it. Bad input gives a
// *CorruptError with file, block and byte offset, never a panic.
//
// A fill reads through Open and ReadBlocks. OpenPath and ReadBlock are for tools and tests that look
// at single blocks. TotalDifficulty and Accumulator are read by tests alone: recomputing the
// accumulators of published files proves that both files and reader are right.
//
// Concurrency: a File and a Catalog do not change once opened and may be used by many
// goroutines, each with a Buffer of its own.
package era
