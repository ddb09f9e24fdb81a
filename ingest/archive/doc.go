// Package archive reads and writes normalized frame archives: a JSON manifest and objects of JSON lines, one
// frame for each block. docs/formats/archive.md describes the bytes.
//
// An archive is the form for exchange with programs that know no era file: it says of each kind of material
// whether it is complete, selected by a scope, or missing, and it is readable with any JSON tool. It is
// large, some twenty times an era file, and no form to keep history in.
//
// What is in here:
//
//   - Manifest and its parser; Archive, which finds objects by block and reads them one after the other
//     with Read, the way that processors and Verify use;
//   - Source, which serves the whole blocks of an archive to ingest.Fill, by many goroutines at once;
//   - Parser, which turns a line into a chain.Frame without reflection and without memory of its own;
//   - Writer, which makes an archive out of frames, always the same one out of the same frames.
//
// # Invariants
//
//   - No frame is yielded before the whole object has the length and the BLAKE3 digest of the manifest, and each is
//     read through the file that was checked. What changes in it meanwhile is noticed.
//   - No path leads out of the manifest's folder or through a symbolic link below it.
//   - A frame is never believed to be more than trusted_dataset, and its own claims about checks are dropped. Proof by the
//     roots of a header is what ingest/verify adds.
//   - One line is in memory at a time for each goroutine that reads.
//
// # Concurrency
//
// An Archive may be shared; a Parser, a Read and a Writer belong to one goroutine each. The package starts
// no goroutine.
package archive
