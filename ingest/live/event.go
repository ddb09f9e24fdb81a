package live

import (
	"context"
	"errors"

	"github.com/ethereum/go-ethereum/common"

	"github.com/leani-go/leani/chain"
)

// Kind numbers the kinds of events.
type Kind uint8

// The kinds of events.
const (
	// Apply: blocks that follow one another. The first may be the child of any recent block: those above its
	// parent are undone in the same step.
	Apply Kind = iota + 1
	// Undo: the chain ends at a block again.
	Undo
	// Attested: a block, and all below it, is attested.
	Attested
	// Finalized: a block, and all below it, is final.
	Finalized
	// Current: there is no more to tell until something new happens. It names no block. A source says so each time
	// before it waits; without it a lane never takes itself to be at the head.
	Current
)

// String is the name of the kind.
func (k Kind) String() string {
	switch k {
	case Apply:
		return "apply"
	case Undo:
		return "undo"
	case Attested:
		return "attested"
	case Finalized:
		return "finalized"
	case Current:
		return "current"
	default:
		return "unknown"
	}
}

// Event is what a source says.
type Event struct {
	Kind Kind
	// Blocks are those of Apply, oldest first, with header, body and receipts. The lane takes them over and fills
	// in references and transaction hashes.
	Blocks []*chain.Block
	// Block is that of the other kinds.
	Block BlockID
}

// BlockID names a block. With a zero hash it names the canonical block of the number.
type BlockID struct {
	Number uint64
	Hash   common.Hash
}

// Source gives events in order.
type Source interface {
	// Next waits for the next event. The error is io.EOF after the last one, and the context's. Any other error ends
	// the lane.
	Next(ctx context.Context) (*Event, error)
}

// Errors that end a lane.
var (
	// ErrUnknownParent is returned for a block whose parent is neither the newest block nor a recent one.
	ErrUnknownParent = errors.New("parent of the block is not known")
	// ErrUnknownBlock is returned for an undo to a block that is not known.
	ErrUnknownBlock = errors.New("block is not known")
	// ErrOtherChain is returned for a finalized block that is not the retained one, which cannot be undone.
	ErrOtherChain = errors.New("the live source and the retained history are of different chains")
)
