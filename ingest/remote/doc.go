// Package remote reads the files of a folder on an HTTP or HTTPS server that is not trusted to be
// well, fast or honest.
//
// A Folder reads small files whole (Read), the end of a file (Tail), a run of its bytes (ReadRange),
// and large files onto disk: in pieces over several connections, each of which goes on where it
// broke off (Fetch), or in one go where the server knows no ranges (FetchWhole).
//
// What it is not: it knows nothing about what is in the files, keeps no cache, and does not decide
// what a failure means beyond a request; several folders with the same files are the caller's
// matter, and so is proving what was read.
//
// # Invariants
//
//   - Every wait has an end: for a connection, for the header of a response, and for its body, which
//     has to bring minimumProgress bytes in each Options.IdleTimeout. Requests are repeated at most
//     Options.Attempts times, waits between them are bounded, and all of them end with the context.
//   - No more is read or written than was asked for, whatever the server says or sends.
//   - Bytes of two versions of a file are not mixed as far as the server tells them apart: size,
//     ETag and Last-Modified of every response are compared with those of the first.
//   - An encrypted connection is never given up for an open one, certificates are verified, and
//     messages name scheme, host and file: paths, queries and credentials are often secrets.
//
// # Concurrency
//
// A Folder is safe for concurrent use. It has at most Options.Connections requests under way.
package remote
