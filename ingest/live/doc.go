// Package live follows the head of a chain: a Lane takes events from a Source, proves the blocks against their
// headers, finds out which blocks a new branch replaces, and commits block by block, or branch by branch, to the
// history.
//
// It is the same lane for every source. What a source says about order is not believed: a block belongs where
// its parent hash says. What it says about finality is believed, as far as it does not contradict itself: a
// finalized block is never undone, and a block that contradicts a finalized one is not applied.
//
// A Lane stops with an error at what it cannot decide: a block whose parent it does not know, material that is
// not what its header says, a reorganization below the recent blocks. It never stops because there is no
// room: then it waits.
//
// One goroutine runs a Lane, another one, which Run starts and awaits, reads its source.
package live
