package history

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/ethereum/go-ethereum/common"
	"github.com/zeebo/xxh3"

	"github.com/leani-go/leani/chain"
	"github.com/leani-go/leani/engine/history/hotblock"
	"github.com/leani-go/leani/internal/corrupt"
)

// eachHot loads every hot block of a snapshot in full and adds it to a digest.
func (v *View) eachHot(ctx context.Context, digest *contentDigest, use func(e *hotEntry, b *chain.Block) error) error {
	var hasher xxh3.Hasher
	var b chain.Block
	for _, e := range v.hot.blocks {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := v.loadHot(e, chain.PartsAll, &b); err != nil {
			return err
		}
		digest.add(e.Number, blockDigest(&hasher, &b))
		if err := use(e, &b); err != nil {
			return err
		}
	}
	return nil
}

var errPartHashes = errors.New("stored transaction hashes are not in order of the transactions")

// hotBlocks proves the blocks of the hot tier. That rows, window and files agree is for engine.Check.
func (v *verification) hotBlocks(ctx context.Context, view *View) error {
	var prover Prover
	if v.opts.NewProver != nil {
		prover = v.opts.NewProver()
	}
	var digest contentDigest
	defer func() {
		v.mu.Lock()
		v.digest.join(digest)
		v.mu.Unlock()
	}()
	var hashes []common.Hash
	parent := common.Hash{} // of the first block it is what the engine compared with the files
	return view.eachHot(ctx, &digest, func(e *hotEntry, b *chain.Block) error {
		hashes = append(hashes[:0], b.TransactionHashes...)
		where := fmt.Sprintf("frame/%d/%s", e.Number, e.Hash.Hex())
		if parent == (common.Hash{}) {
			parent = e.ParentHash
		}
		if prover != nil {
			if err := prover.Prove(b, e.Number, parent); err != nil {
				return corrupt.New(where, err)
			}
			if b.BlockRef != e.BlockRef {
				return corrupt.New(where, fmt.Errorf("%w: got %v want %v", errBlockRow, e.BlockRef, b.BlockRef))
			}
			if !slices.Equal(hashes, b.TransactionHashes) {
				return damagedPart(e, hotblock.PartHashes, errPartHashes)
			}
		}
		parent = e.Hash
		v.opts.OnBlocks(1)
		return nil
	})
}
