package rpc

import (
	"context"
	"errors"

	"github.com/leani-go/leani/chain"
)

// Feed tells what becomes of the chain's head after it is committed: the source of all subscriptions. It is safe
// for concurrent use.
type Feed interface {
	// Follow gives the changes that are committed from now on, and a view of the chain before them.
	Follow() (Follower, View, error)
}

// Follower reads changes one after the other. It belongs to one goroutine.
type Follower interface {
	// Next waits for the next change and gives a view of the chain as that change left it, which the caller
	// closes. The error is ErrLagged or the context's.
	Next(ctx context.Context) (Change, View, error)
	// Refresh gives a newer view of the chain as the last change left it, nil when there is none to be had.
	Refresh() View
	// Waiting is about how many changes can be read without waiting.
	Waiting() int
	// Close ends the follower.
	Close()
}

// Change is a committed change of the chain's head. Its slices are shared: read only.
type Change struct {
	// Undone are the undone blocks, newest first; Applied the applied ones, oldest first.
	Undone, Applied []chain.BlockRef
}

// ErrLagged tells that a follower was too slow and has missed changes.
var ErrLagged = errors.New("follower has missed changes of the chain")
