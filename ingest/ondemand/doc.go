// Package ondemand reads blocks from history sources for one answer and keeps none of them.
//
//	Fetch ── a place ── source by source ── plan ── file, proved once ── blocks, verified one by one ── Reader
//
// A request is a few runs of blocks. The first source that has all of them, whole, answers it; when that source fails at any
// point, the Reader is told to begin anew and the next source starts from the first block, so that no answer
// mixes two sources.
//
// What it is not: it stores nothing, it does not know what the store holds (its caller compares the ends of the runs with that and
// rejects a source that does not fit), and it knows no JSON-RPC.
//
// # Invariants
//
//   - No block reaches a Reader before the digest of its file was compared, all of its roots were recomputed, and its parent hash
//     was compared with the block before it in the run.
//   - A proof is remembered with what the system says about the file (device, inode, size, times of the last write and of the
//     last change) and with the digest that is listed. When any of that differs, the file is proved anew. So is the failure of a proof. A file of a mirror is proved on the disk of this
//     machine, where nobody else can reach it.
//   - Limits bound each request: blocks, bytes, time; and all together: places, memory, temporary disk, open files.
//   - The error of a request says one reason, and the log each failure of each source.
//
// # Concurrency
//
// A Fetcher is safe for concurrent use. Requests run on threads of low priority, as many as there are places; others wait for
// one, first come first served, as far as the queue goes. Of several places one is never held by who waits for a mirror. The Reader
// is called on that thread while its caller waits. Besides
// these, one thread at most looks for the damage in a file of which the digest differs, and one makes a copy: the time of the request that
// began it does not end it, but another copy that is wanted does. Close ends them all and waits for them.
package ondemand
