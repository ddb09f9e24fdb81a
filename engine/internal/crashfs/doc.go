// Package crashfs is a test kit: a computer with an in-memory disk that stops, or fails, at a chosen
// operation of the file system.
//
// A Machine counts the operations that change its disk, whoever makes them. At the chosen one it either
// crashes, and from then on refuses everything, or fails that operation alone. Crash gives the disk
// that a power cut leaves: what was synced, and a random share of what was not.
//
// It is not a fault injector for reads beyond Machine.OnRead, and it knows nothing about stores. Only
// tests import it.
//
// Concurrency: a Machine is safe for concurrent use. Its fields are set before the first operation.
package crashfs
