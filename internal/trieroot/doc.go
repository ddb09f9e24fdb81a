// Package trieroot computes the root of the Merkle-Patricia trie that commits to an ordered
// list: the transactions, receipts or withdrawals of a block, keyed by the RLP of their index
// (Yellow Paper, equation 33 and appendix D). The result equals go-ethereum's
// types.DeriveSha.
//
// It is not a trie: nothing is stored, looked up or proved. The keys are known beforehand, so
// the shape of the trie is too. As nibbles they are
//
//	index 0               8 0
//	index 1 to 127        h l                two nibbles of the index, h below 8
//	index 128 to 255      8 1 h l
//	index 256 to 65535    8 2 n n n n
//	index 65536 and up    8 3 n n n n n n    and so on
//
// so the root is a branch whose child 8 is a branch over the lengths, and below each of
// those hangs a dense tree over consecutive numbers. Hasher builds this tree from the
// bottom: the leaves of the whole list in large hash batches, then the branches over sixteen
// consecutive indexes in one batch, then the few nodes above them. Only the last index of a
// run can stand alone under a node higher up, which makes its leaf's path longer.
//
// A node whose encoding is shorter than 32 bytes is embedded in its parent instead of hashed.
//
// A Hasher belongs to one goroutine and allocates nothing once it has seen the largest list.
package trieroot
