package history

import (
	"context"

	"github.com/leani-go/leani/chain"
	"github.com/leani-go/leani/engine"
)

// FrameProver proves a frame as far as its material allows. It is used by one goroutine.
type FrameProver interface {
	// ProveFrame recomputes what a frame says was checked of its own content, and returns an error when it
	// does not hold. It does not change the frame.
	ProveFrame(f *chain.Frame) error
}

// framesFile proves a frames file: its bytes, that its frames link, that it is of the profile that the store
// describes, and what the frames say was checked of them.
func (v *verification) framesFile(ctx context.Context, row *engine.FileRow) error {
	f, err := v.store.openApart(row)
	if err != nil {
		return err
	}
	if err := f.CheckPages(ctx, nil); err != nil {
		return err
	}
	if err := f.CheckRows(ctx); err != nil {
		return err
	}
	frames, err := framesOf(v.snap, row, f)
	if err != nil || v.opts.NewFrameProver == nil {
		return err
	}
	prover := v.opts.NewFrameProver()
	var frame chain.Frame
	for n := row.From; n < row.To; n++ {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := frames.Load(n, &frame, nil); err != nil {
			return err
		}
		if err := prover.ProveFrame(&frame); err != nil {
			return corruptRow(row, err)
		}
	}
	return nil
}
