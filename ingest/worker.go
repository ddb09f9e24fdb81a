package ingest

import (
	"context"
	"errors"

	"github.com/leani-go/leani/chain"
	"github.com/leani-go/leani/ingest/era"
	"github.com/leani-go/leani/ingest/verify"
)

// work is a worker. It ends with the last job or with ctx.
func (r *run) work(ctx context.Context) {
	var v verify.Verifier
	for {
		select {
		case <-ctx.Done():
			return
		case j, ok := <-r.jobs:
			if !ok {
				return
			}
			if j.chunk == nil {
				j.file.proveErr = j.file.reader.Prove(ctx)
				close(j.file.proven)
				continue
			}
			r.load(ctx, &v, j.chunk)
		}
	}
}

// load reads and verifies the blocks of a chunk, in one part unless a batch reaches its limit.
// Between two parts it waits until the blocks of the first are not needed any more, because it
// reuses their memory. It cannot wait forever: chunks before this one are with other workers, or
// done.
func (r *run) load(ctx context.Context, v *verify.Verifier, c *chunk) {
	for next := c.blocks; ; {
		n, err := c.read(ctx, v, next)
		next.From += uint64(n)
		last := err != nil || next.Empty()
		r.pool.settle(c, c.memory())
		c.parts <- part{blocks: n, err: err, last: last} // has room: the part before was taken
		if last {
			return
		}
		select {
		case <-c.again:
		case <-ctx.Done():
			return
		}
	}
}

var errNoProgress = errors.New("BUG: the source returned neither blocks nor an error")

// read fills the room of the chunk with the first blocks of a run and verifies them one by one. It
// returns how many are good, and the error of the next one.
func (c *chunk) read(ctx context.Context, v *verify.Verifier, blocks chain.Range) (int, error) {
	f := c.file
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	n, failure := f.reader.ReadBlocks(blocks, &c.buffer, c.room[:blocks.Len()])
	if failure != nil && n == 0 && blocks.Len() > 1 {
		// A failed read can spoil a whole batch: go on with single blocks to the bad one.
		n, failure = f.reader.ReadBlocks(chain.Range{From: blocks.From, To: blocks.From + 1}, &c.buffer, c.room[:1])
	}
	if failure == nil && n == 0 {
		failure = errNoProgress
	}
	for i := range n {
		if err := ctx.Err(); err != nil {
			return i, err
		}
		b, number := &c.room[i], blocks.From+uint64(i)
		if !b.HasReceipts {
			return i, f.blame(number, chain.PartHeader, ErrNoReceipts)
		}
		// Parent hashes are compared by the ordered stage, which knows the block before.
		if err := v.Block(b, verify.Expected{Number: number}); err != nil {
			return i, f.blameCheck(number, err)
		}
	}
	var corrupt *era.CorruptError
	if failure != nil && !errors.As(failure, &corrupt) {
		failure = f.blame(blocks.From+uint64(n), chain.PartHeader, failure)
	}
	return n, failure
}

// blame names the place of an error that concerns a part of a block.
func (f *file) blame(number uint64, part chain.Parts, err error) error {
	return &BlockError{File: f.name, Block: number, Offset: f.reader.Offset(number, part), Err: err}
}

// blameCheck is blame for an error of verification.
func (f *file) blameCheck(number uint64, err error) error {
	part := chain.PartHeader
	var check *verify.Error
	if errors.As(err, &check) {
		part = partOf(check.Check)
	}
	return f.blame(number, part, err)
}
