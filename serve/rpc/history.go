package rpc

import (
	"context"
	"fmt"

	"github.com/ethereum/go-ethereum/common"

	"github.com/leani-go/leani/chain"
)

// History fetches blocks that the store does not hold, for the answer of one call. It is safe for concurrent use.
type History interface {
	// Abilities says what can be fetched. It does not change.
	Abilities() HistoryAbilities
	// Fetch gives blocks to a reader, all of one source and proved against their own headers. When a source fails the
	// next one begins anew. It returns the reader's own errors as they are, a *HistoryBusyError, a *HistoryError, or the
	// error of a context that was cancelled; after nil the reader has all blocks. The reader is called by one goroutine at a
	// time, which need not be the caller's, and not after Fetch has returned.
	Fetch(ctx context.Context, request HistoryRequest, reader HistoryReader) error
	// NumberByHash asks a source with HistoryAbilities.BlockHashes for the canonical block with a hash. Errors are those of
	// Fetch. No source of this module has that ability yet: era files and archives find blocks by number.
	NumberByHash(ctx context.Context, hash common.Hash) (number uint64, ok bool, err error)
}

// HistoryAbilities is what the sources of a History offer.
type HistoryAbilities struct {
	// Sources are those that may answer, in the order in which they are asked. Without any every Fetch fails.
	Sources []HistorySource
	// BlockHashes tells whether NumberByHash knows every block of the chain.
	BlockHashes bool
	// MaximumBlocks is how many blocks one request may have.
	MaximumBlocks uint64
}

// HistorySource names a source.
type HistorySource struct {
	ID    string
	Trust string // how far its material is believed: "verified_material" or "trusted_dataset"
}

// HistoryRequest is what one call needs.
type HistoryRequest struct {
	// Runs are the blocks: ascending, disjoint, not empty.
	Runs []chain.Range
	// Parts is the material that is needed of each. chain.PartSenders costs a recovery for each transaction.
	Parts chain.Parts
	// Impatient fails with a *HistoryBusyError where it would wait for other requests.
	Impatient bool
}

// HistoryReader takes the blocks of a request.
type HistoryReader interface {
	// Begin begins with a source: whatever came from an earlier one is void.
	Begin(source HistorySource)
	// Block takes the next block, which is valid until it returns. A *HistoryRejection makes the next source begin, any other
	// error ends the request.
	Block(b *chain.Block) error
}

// HistoryError is why history was not fetched.
type HistoryError struct {
	// Reason is one of the reasons of package jsonrpc.
	Reason string
	Err    error // for the log
}

// Error gives reason and cause.
func (e *HistoryError) Error() string { return e.Reason + ": " + e.Err.Error() }

// Unwrap gives the cause.
func (e *HistoryError) Unwrap() error { return e.Err }

// HistoryBusyError says that as many requests wait as may.
type HistoryBusyError struct{ Limit uint64 }

// Error gives the limit.
func (e *HistoryBusyError) Error() string {
	return fmt.Sprintf("%d requests wait for history on demand", e.Limit)
}

// HistoryRejection says that the blocks of a source do not fit what is asked for or what is retained.
type HistoryRejection struct {
	// Reason is one of the reasons of package jsonrpc.
	Reason string
	Err    error // for the log
}

// Error gives reason and cause.
func (e *HistoryRejection) Error() string { return e.Reason + ": " + e.Err.Error() }

// Unwrap gives the cause.
func (e *HistoryRejection) Unwrap() error { return e.Err }
