package rpc

import (
	"context"

	"github.com/ethereum/go-ethereum/common"

	"github.com/leani-go/leani/chain"
)

// Store is what the server reads. It is safe for concurrent use.
type Store interface {
	// View opens a snapshot of everything the store holds now. The caller closes it.
	View() (View, error)
}

// View is one consistent snapshot of the store: a block, its logs and its index entries are
// visible together or not at all, and nothing that is committed later shows up in it.
//
// A View is used by one goroutine at a time. What its methods hand out stays valid until Close
// unless a method says less. Material the view does not hold is reported with an error that
// matches chain.ErrNotRetained, never as an empty answer.
type View interface {
	// Close releases the snapshot. Nothing obtained from the view may be used afterwards.
	Close()

	// Head is the number of the highest retained block; false when the store holds none.
	Head() (number uint64, ok bool)
	// Finalized is the newest block that the node itself verified as finalized; false before
	// there is one. It need not be retained.
	Finalized() (chain.BlockRef, bool)
	// Attested is the newest block that the node verified as attested or finalized; false before there
	// is one. It need not be retained.
	Attested() (chain.BlockRef, bool)
	// Recent is the run of blocks that a live source may still undo; the others lie in files.
	Recent() chain.Range
	// Coverage lists the runs of blocks whose material is complete: ascending, disjoint and
	// maximal. The slice is the view's own; callers only read it.
	Coverage() []chain.Range

	// NumberByHash finds the retained canonical block with the hash.
	NumberByHash(hash common.Hash) (number uint64, ok bool, err error)
	// LocateTransaction finds a transaction of a retained canonical block.
	LocateTransaction(hash common.Hash) (number uint64, index uint32, ok bool, err error)

	// LoadBlock resets dst and fills it with the block's reference and the given parts. The parent hash is sure to be there only
	// with chain.PartHeader.
	// chain.PartSenders fills dst.Senders for every transaction, recovering them if need be.
	// The data is valid until Close.
	LoadBlock(ctx context.Context, number uint64, parts chain.Parts, dst *chain.Block) error
	// LoadTransaction is LoadBlock for who wants one transaction, whose index is below the number of
	// transactions. Lists have their full lengths; of transactions, hashes, senders and logs only
	// those of that transaction need to be there, of receipts also the types and gas of all.
	LoadTransaction(ctx context.Context, number uint64, index uint32, parts chain.Parts, dst *chain.Block) error

	// LogsCost estimates how many candidate rows Logs would visit, without visiting them. It
	// decides where a query runs, so it has to be cheap and may be wrong by a small factor.
	// Logs may use what it found if it is called next with the same range and filter, which must not
	// change in between.
	LogsCost(ctx context.Context, r chain.Range, f *chain.LogFilter) (uint64, error)
	// Logs yields the logs of the range that match the filter, in chain order. An error from
	// yield stops the query and is returned as it is. The logs are valid during yield only.
	Logs(ctx context.Context, r chain.Range, f *chain.LogFilter, yield func(*chain.FoundLog) error) error
}
