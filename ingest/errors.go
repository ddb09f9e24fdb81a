package ingest

import (
	"errors"
	"fmt"

	"github.com/leani-go/leani/chain"
	"github.com/leani-go/leani/ingest/verify"
)

// ErrNoReceipts means that a source has a block without its receipts, which is not the complete
// material that a store of raw history keeps.
var ErrNoReceipts = errors.New("the file holds no receipts, which complete history needs")

// RefusedError is what a sink returns of a block that it does not take for what the block is, such as one
// of another chain. It is the fault of the source, where any other error is that of the sink. The open
// run is given up in either case.
type RefusedError struct{ Err error }

// Error is the reason.
func (e *RefusedError) Error() string { return e.Err.Error() }

// Unwrap gives the reason.
func (e *RefusedError) Unwrap() error { return e.Err }

// BlockError says which block of which file cannot be taken. Blocks whose bytes cannot be decoded
// give the source's own error instead, which has the same fields (*era.CorruptError).
type BlockError struct {
	File   string
	Block  uint64
	Offset int64 // in bytes, of the record that is wrong
	Err    error // a *verify.Error, ErrNoReceipts, or that of a read
}

// Error writes file, block, offset and cause.
func (e *BlockError) Error() string {
	if v, ok := e.Err.(*verify.Error); ok && v.Block == e.Block { // the block is named already
		return fmt.Sprintf("%s: block %d: offset %d: %v: %v", e.File, e.Block, e.Offset, v.Check, v.Err)
	}
	return fmt.Sprintf("%s: block %d: offset %d: %v", e.File, e.Block, e.Offset, e.Err)
}

// Unwrap gives the cause.
func (e *BlockError) Unwrap() error { return e.Err }

// partOf is the part of a block that a check is about.
func partOf(c verify.Check) chain.Parts {
	switch c {
	case verify.CheckTransactionsRoot:
		return chain.PartTransactions
	case verify.CheckOmmersHash:
		return chain.PartOmmers
	case verify.CheckWithdrawals, verify.CheckWithdrawalsRoot:
		return chain.PartWithdrawals
	case verify.CheckReceiptsCount, verify.CheckReceiptType, verify.CheckLogs, verify.CheckCumulativeGas,
		verify.CheckReceiptsRoot, verify.CheckLogsBloom:
		return chain.PartReceipts
	}
	return chain.PartHeader
}
