// Package engine is the store: it opens a data directory, commits segment files into the
// catalog as a unit, hands out snapshots to readers, retires files, recovers after a crash, and
// checks itself. It is the only package that imports Pebble.
//
// Two tiers lie under it. Pebble holds the catalog, the coverage and the facts about the
// store; immutable segment files hold history. The catalog is the only truth about which
// files exist. The engine knows the envelope of a segment file (its range, size, digest, the
// hashes at its ends) and not what is inside: that is package segments.
//
// # Life of a file
//
// The numbers are those of docs/adr/0003-crash-story.md, which also says what a crash after
// each leaves and what Open then does.
//
//	1  NewFile, Write       a *.tmp file
//	2  Commit: fsync        of each file of the edit
//	   (lock, validate)
//	3  Commit: rename       to a name that carries the generation of the commit
//	4  Commit: fsync        of each directory touched
//	5  Commit: one synced   {rows added, rows removed, tombstones, coverage, generation}
//	   batch
//	6  Commit: fsync        of the generation file, a second witness of the commit
//	7  Commit: swap         the snapshot; the edit is visible and acknowledged
//	8  delete               replaced files, when no older snapshot is held
//	9  fsync                of each directory touched
//	10 a later batch        drops the tombstones
//
// # Hot tier
//
// The newest blocks are rows: Edit.Hot applies and undoes them, moves the marks of finality, and evicts them when
// files of the same edit take their place, in the batch of step 5. A version that shows such blocks holds a
// snapshot of the database, so that a reader sees rows and files of one moment. See
// docs/adr/0008-hot-tier.md.
//
// # Invariants
//
//   - Whatever Commit acknowledged survives any crash; what it did not is there as a whole or
//     not at all.
//   - A snapshot never changes, and its files can be read until it is released.
//   - A file is deleted only when its name or a tombstone proves that this store wrote it and
//     does not need it. What the store cannot explain is quarantined.
//   - Raw coverage is always the union of the files and the hot tier.
//   - Partial material has a profile above 0 and coverage of its own: nothing that asks for coverage sees
//     it without naming the profile.
//   - The hot tier is one run of parent-linked blocks above all files; its finalized blocks are never
//     undone.
//   - After the first failed write nothing on disk changes any more until the store is
//     opened again.
//
// # Concurrency
//
// An Engine is safe for concurrent use. Commits are serial, under a lock that readers never
// take; Acquire and Release take a lock that is never held during I/O. One background
// goroutine, started by Open and awaited by Close, deletes retired files.
//
// Lock order, outer first:
//
//	commit (Engine.commitLock)
//	  versions (Engine.mu)
//	  handles (handleCache.mu)
package engine
