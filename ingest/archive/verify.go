package archive

import (
	"context"
	"fmt"

	"github.com/ethereum/go-ethereum/common"

	"github.com/leani-go/leani/chain"
	"github.com/leani-go/leani/ingest/verify"
)

// Report is what Verify found.
type Report struct {
	Objects, Frames uint64
	// Proved counts the frames of whole blocks, which were held against the roots of their headers.
	Proved   uint64
	Bytes    uint64  // of the objects that were read to their end
	Problems []error // one for each object at most, and one for each link between objects
}

// Verify reads every object of the archive: lengths and digests, all that Read checks of frames, the links
// between objects that touch, and the roots of headers where a frame holds the whole block. An object with a
// problem is left at that place, and the others are read. observe is told the frames and bytes so far, and
// may be nil. The error is the context's.
func (a *Archive) Verify(ctx context.Context, budget Budget, observe func(frames, bytes uint64)) (Report, error) {
	var (
		r    Report
		v    verify.Verifier
		last chain.BlockRef // of the object before, when that is whole
	)
	if observe == nil {
		observe = func(uint64, uint64) {}
	}
	for i := range a.manifest.Objects {
		o := &a.manifest.Objects[i]
		var first, newest chain.BlockRef
		err := a.Read(ctx, o, o.Range, budget, func(f *chain.Frame) error {
			if f.Number == o.Range.From {
				first = f.BlockRef
			}
			newest = f.BlockRef
			proved, err := prove(&v, f)
			if err != nil {
				return &CorruptError{Object: a.PathOf(o), Err: err}
			}
			if r.Frames++; proved {
				r.Proved++
			}
			observe(r.Frames, r.Bytes)
			return nil
		})
		if ctx.Err() != nil {
			return r, ctx.Err()
		}
		if last.Hash != (common.Hash{}) && first.Number == last.Number+1 && first.ParentHash != last.Hash {
			r.Problems = append(r.Problems, &CorruptError{Object: a.PathOf(o), Err: fmt.Errorf("block %d: %w, which ends another object: got %x, want %x",
				first.Number, ErrParent, first.ParentHash, last.Hash)})
		}
		last = chain.BlockRef{}
		if err != nil {
			r.Problems = append(r.Problems, err)
			continue
		}
		last = newest
		r.Objects++
		r.Bytes += uint64(o.Bytes)
		observe(r.Frames, r.Bytes)
	}
	return r, nil
}

// prove holds a frame against its header, as far as its material goes, and tells whether that proves the whole block.
func prove(v *verify.Verifier, f *chain.Frame) (bool, error) {
	if err := v.Frame(f, verify.Expected{Number: f.Number, Hash: f.Hash}); err != nil {
		return false, err
	}
	r := &f.Verification
	withdrawals := f.Material(chain.CapabilityWithdrawals).Complete() && r.WithdrawalsRoot.Status != chain.Unavailable
	return r.HeaderHash.Status == chain.Verified && f.Ommers != nil && r.TransactionsRoot.Status == chain.Verified &&
		r.ReceiptsRoot.Status == chain.Verified && withdrawals, nil
}
