// Package scripted is a live source that reads what happens from a file: for tests, and for demonstrations
// without a network.
//
// The file has one JSON object a line, with one member, the event:
//
//	{"apply": {"era": "mini.era1", "fromBlock": 100, "toBlock": 110}}
//	{"apply": {"blocks": [{"header": "0x…", "transactions": ["0x…"], "ommers": "0xc0", "withdrawals": "0x…", "receipts": ["0x…"]}]}}
//	{"undo": {"number": 108, "hash": "0x…"}}
//	{"attested": {"number": 109}}
//	{"finalized": {"number": 105, "hash": "0x…"}}
//	{"pause": {"milliseconds": 500}}
//
// Blocks of an era file come one by one; those of one list are one branch and one commit. Transactions are EIP-2718
// envelopes, receipts canonical ones with their bloom, ommers and withdrawals RLP lists; withdrawals are absent
// before Shanghai. A block is named by its number, and by its hash where it matters which of two is meant. Paths are
// relative to the file. Empty lines and lines that begin with # are skipped.
//
// The path may be a named pipe, on systems that have them: those who write to it may come and go, and the source never
// ends. Before a pause, and each time before it waits for a pipe, the source says that it has no more: then the node is
// live. At the end of a file the source has ended, and the node follows nothing any more: who wants to subscribe afterwards uses a pipe.
//
// The file is read from its start at every start of the node: events that have taken effect before change nothing,
// or lead to the same chain again. On a chain without finality blocks become files by their depth alone; a script
// that once took back blocks which have become files since then cannot be read again and ends the lane.
package scripted
