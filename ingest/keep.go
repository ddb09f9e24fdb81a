package ingest

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"github.com/leani-go/leani/chain"
	"github.com/leani-go/leani/ingest/verify"
)

// FrameSource offers blocks as frames, whole ones or not.
type FrameSource interface {
	// Frames yields the frames of the blocks of r that the source has, in order. A frame is valid until
	// yield returns; an error of yield ends it and is returned as it is.
	Frames(ctx context.Context, r chain.Range, yield func(*chain.Frame) error) error
}

// FrameSink takes frames of partial material that were proved as far as they can be. One goroutine calls it.
type FrameSink interface {
	// Add appends a frame, of which nothing is kept when it returns. After an error only Close is called.
	Add(f *chain.Frame) error
	// Cut makes what was added durable.
	Cut() error
	// Pending is the number of frames that are not durable.
	Pending() int
	// Close makes everything durable that was added without an error, or with discard set gives it up. It is
	// called once.
	Close(discard bool) error
}

// KeepOptions configure Keep. Source, Blocks and Frames are required.
type KeepOptions struct {
	Source FrameSource
	// Ranges are the blocks to keep: ascending, without overlap, and without those that are retained.
	Ranges []chain.Range
	// Blocks makes the sink of whole blocks, and Frames that of all others. The context outlives that of Keep
	// by SealGrace.
	Blocks func(ctx context.Context, committed func(chain.Range)) Sink
	Frames func(ctx context.Context) FrameSink
	// ExpectedParent is asked about what is retained beside whole blocks, as in Options.
	ExpectedParent func(n uint64) (common.Hash, bool)
	// CutAfter is how long frames and blocks may wait for their commit, SealGrace how long the last commit may
	// take after a cancellation; After is the clock. The defaults are those of Options.
	CutAfter, SealGrace time.Duration
	After               func(time.Duration) <-chan time.Time
	// Progress is told after each frame; it must be quick. Nil tells nobody.
	Progress func(KeepResult)
}

// KeepResult is what Keep has done.
type KeepResult struct {
	Whole   uint64 // blocks that are history like any other
	Partial uint64 // frames of blocks that are not whole
}

// ErrNotFinal means that a source has a block that is not final: history keeps final blocks alone.
var ErrNotFinal = errors.New("the block is not final")

// Keep reads frames, proves each as far as its material allows, and decides by it where it goes: a frame that is
// the whole block, with everything that its header commits to, becomes history as with Fill; any other is kept
// as what it is. Consecutive frames must name each other as parents.
//
// It is for sources that have not the whole blocks which Fill reads, on one goroutine: what there is of such
// blocks is little to compute. When something fails, what came before is committed nevertheless.
func Keep(ctx context.Context, o KeepOptions) (KeepResult, error) {
	plain := Options{CutAfter: o.CutAfter, SealGrace: o.SealGrace, After: o.After, ExpectedParent: o.ExpectedParent}.withDefaults()
	o.CutAfter, o.SealGrace, o.After, o.ExpectedParent = plain.CutAfter, plain.SealGrace, plain.After, plain.ExpectedParent
	if o.Progress == nil {
		o.Progress = func(KeepResult) {}
	}
	if o.Source == nil || o.Blocks == nil || o.Frames == nil {
		return KeepResult{}, errors.New("keep partial material: a source or a sink is missing")
	}
	ranges, err := joinRanges(o.Ranges)
	if err != nil {
		return KeepResult{}, fmt.Errorf("keep partial material: %w", err)
	}
	sinkCtx, release := sinkContext(ctx, plain)
	defer release()
	k := &keeper{KeepOptions: o, blocks: o.Blocks(sinkCtx, func(chain.Range) {}), frames: o.Frames(sinkCtx)}
	for _, r := range ranges {
		if err = o.Source.Frames(ctx, r, func(f *chain.Frame) error { return k.take(ctx, r, f) }); err != nil {
			break
		}
	}
	var errs []error
	if err != nil {
		errs = append(errs, err)
	}
	for _, err := range []error{k.blocks.Close(k.broken), k.frames.Close(false)} {
		if err != nil {
			errs = append(errs, fmt.Errorf("store: %w", err))
		}
	}
	return k.result, join(errs)
}

// keeper is one run of Keep.
type keeper struct {
	KeepOptions
	verifier verify.Verifier
	blocks   Sink
	frames   FrameSink
	last     chain.BlockRef // of the frame before; none is zero
	result   KeepResult
	deadline <-chan time.Time
	broken   bool // the sink of blocks failed
}

// take proves one frame and hands it over.
func (k *keeper) take(ctx context.Context, r chain.Range, f *chain.Frame) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if !r.Contains(f.Number) || k.last.Hash != (common.Hash{}) && f.Number <= k.last.Number {
		return fmt.Errorf("block %d: the source has it out of order", f.Number)
	}
	if !f.Finality.Satisfies(chain.Finalized) {
		return fmt.Errorf("block %d: %w: %s", f.Number, ErrNotFinal, f.Finality)
	}
	want := verify.Expected{Number: f.Number}
	if k.last.Hash != (common.Hash{}) && f.Number == k.last.Number+1 {
		want.ParentHash = k.last.Hash
	}
	if err := k.verifier.Frame(f, want); err != nil {
		return err
	}
	whole := k.whole(f)
	if err := k.add(f, whole); err != nil {
		return err
	}
	k.last = f.BlockRef
	if whole {
		k.result.Whole++
	} else {
		k.result.Partial++
	}
	k.Progress(k.result)
	return k.cutWhenDue()
}

// whole tells whether a frame that was verified is the whole block: it has all that exact answers need, senders and
// gas among it as in every archive that Fill reads, and every root in its header was compared.
func (k *keeper) whole(f *chain.Frame) bool {
	r := &f.Verification
	if r.HeaderHash.Status != chain.Verified || f.Ommers == nil || r.TransactionsRoot.Status != chain.Verified || r.ReceiptsRoot.Status != chain.Verified {
		return false
	}
	hasWithdrawals := k.verifier.Header().WithdrawalsRoot != nil
	return f.CheckExact(hasWithdrawals) == nil && (!hasWithdrawals || r.WithdrawalsRoot.Status == chain.Verified)
}

func (k *keeper) add(f *chain.Frame, whole bool) error {
	var err error
	if whole {
		if err = k.fits(f); err != nil {
			return err
		}
		err = k.blocks.Add(&f.Block)
		k.broken = err != nil
	} else {
		err = k.frames.Add(f)
	}
	if err != nil {
		return fmt.Errorf("store block %d: %w", f.Number, err)
	}
	return nil
}

// fits compares a whole block with what is retained beside it.
func (k *keeper) fits(f *chain.Frame) error {
	if parent, known := k.ExpectedParent(f.Number); known && f.ParentHash != parent {
		return &verify.Error{Block: f.Number, Check: verify.CheckParent, Err: fmt.Errorf("got %x want %x", f.ParentHash, parent)}
	}
	if hash, known := k.ExpectedParent(f.Number + 1); known && f.Hash != hash {
		return &verify.Error{Block: f.Number, Check: verify.CheckHash,
			Err: fmt.Errorf("got %x want %x, the parent of retained block %d", f.Hash, hash, f.Number+1)}
	}
	return nil
}

// cutWhenDue commits what has waited for long enough.
func (k *keeper) cutWhenDue() error {
	switch {
	case k.blocks.Pending()+k.frames.Pending() == 0:
		k.deadline = nil
	case k.deadline == nil:
		k.deadline = k.After(k.CutAfter)
	}
	select {
	case <-k.deadline:
	default:
		return nil
	}
	k.deadline = nil
	if err := k.blocks.Cut(); err != nil {
		k.broken = true
		return fmt.Errorf("store: %w", err)
	}
	if err := k.frames.Cut(); err != nil {
		return fmt.Errorf("store: %w", err)
	}
	return nil
}
