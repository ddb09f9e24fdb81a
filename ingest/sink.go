package ingest

import "github.com/leani-go/leani/chain"

// Sink takes verified blocks. One goroutine calls it. It builds runs of blocks, which become
// durable as a whole.
type Sink interface {
	// Add appends a block to the open run, or opens one with it: with a block that does not
	// follow the one before it, or where the sink itself ends a run. Nothing of the block is kept
	// when Add returns. After an error only Close may be called.
	Add(b *chain.Block) error
	// Cut ends the open run, if there is one, and makes it durable in the background. It may wait
	// for the run before, and returns the error of that. After an error only Close may be called.
	Cut() error
	// Pending is the number of blocks in the open run.
	Pending() int
	// Close waits until everything that was added is durable, or with discard set gives up the open
	// run and waits for the others. It is called once, also after an error.
	Close(discard bool) error
}
