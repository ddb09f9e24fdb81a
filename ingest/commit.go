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

// committer is the ordered stage. It belongs to the goroutine that called Fill.
type committer struct {
	*run
	ctx  context.Context
	sink Sink

	ranges []chain.Range // whose end was not reached yet
	last   common.Hash   // of the block before, when it belongs to the same range

	pending  int              // of the sink, after the last call
	deadline <-chan time.Time // of the open run; nil when there is none
	broken   bool             // the sink failed
	culprit  *file            // the file that stopped the run; nil when it was something else
}

// commit takes the chunks in order and adds their blocks to the sink. It returns nil when all are
// added. A file is closed as soon as nothing of it follows: what it takes is needed for the next.
func (c *committer) commit() error {
	var current *file
	for {
		next, err := wait(c, c.order)
		if err != nil || next == nil {
			return err
		}
		if current != next.file {
			current = next.file
			if _, err := wait(c, current.proven); err != nil {
				return err
			}
			if current.proveErr != nil {
				return c.blame(current, current.proveErr)
			}
		}
		final := next.final
		if err := c.take(next); err != nil {
			return err
		}
		if final {
			if err := current.close(); err != nil {
				return err
			}
		}
	}
}

// blame notes the file that an error is the fault of. What ends with ctx is nobody's.
func (c *committer) blame(f *file, err error) error {
	if c.ctx.Err() == nil {
		c.culprit = f
	}
	return err
}

// take adds the blocks of a chunk as they become ready, and returns the chunk to its pool.
func (c *committer) take(from *chunk) error {
	for {
		p, err := wait(c, from.parts)
		if err != nil {
			return err
		}
		for i := range p.blocks {
			if err := c.ctx.Err(); err != nil {
				return err
			}
			if err := c.add(from.file, &from.room[i]); err != nil {
				return err
			}
		}
		c.report()
		if p.err != nil {
			return c.blame(from.file, p.err)
		}
		if p.last {
			c.pool.put(from)
			return nil
		}
		from.again <- struct{}{}
	}
}

// add compares what joins a block to its neighbours, and hands it over.
func (c *committer) add(f *file, b *chain.Block) error {
	r := c.ranges[0]
	parent, known := c.last, true
	if b.Number == r.From {
		parent, known = c.options.ExpectedParent(b.Number)
		if !known && b.Number == 0 { // a genesis block has the zero hash for a parent
			parent, known = common.Hash{}, true
		}
	}
	if known && b.ParentHash != parent {
		return c.blame(f, f.blameCheck(b.Number, &verify.Error{
			Block: b.Number, Check: verify.CheckParent, Err: fmt.Errorf("got %x want %x", b.ParentHash, parent),
		}))
	}
	if b.Number+1 == r.To {
		if hash, known := c.options.ExpectedParent(r.To); known && b.Hash != hash {
			return c.blame(f, f.blameCheck(b.Number, &verify.Error{
				Block: b.Number, Check: verify.CheckHash,
				Err: fmt.Errorf("got %x want %x, the parent of retained block %d", b.Hash, hash, r.To),
			}))
		}
		c.ranges = c.ranges[1:]
	}
	c.last = b.Hash
	stored, _ := f.reader.Size(b.Number)
	if err := c.sink.Add(b); err != nil {
		c.broken = true
		var refused *RefusedError
		if err = fmt.Errorf("store block %d: %w", b.Number, err); errors.As(err, &refused) {
			return c.blame(f, err)
		}
		return err
	}
	c.count(uint64(stored))
	return c.cutWhenDue()
}

// cutWhenDue keeps the deadline of the open run and cuts the run when it has passed.
func (c *committer) cutWhenDue() error {
	before := c.pending
	c.pending = c.sink.Pending()
	switch {
	case c.pending == 0:
		c.deadline = nil
	case c.pending <= before || c.deadline == nil: // the sink began a run with this block
		c.deadline = c.options.After(c.options.CutAfter)
	}
	select {
	case <-c.deadline:
		return c.cut()
	default:
		return nil
	}
}

func (c *committer) cut() error {
	c.pending, c.deadline = 0, nil
	if err := c.sink.Cut(); err != nil {
		c.broken = true
		return fmt.Errorf("store: %w", err)
	}
	return nil
}

// close ends the sink: what was added is committed unless the sink itself has failed.
func (c *committer) close() error {
	if err := c.sink.Close(c.broken); err != nil {
		return fmt.Errorf("store: %w", err)
	}
	return nil
}

// wait receives from a channel, and cuts the open run meanwhile when it is due. It returns the
// zero value when the channel is closed, and the context's error when that is done.
func wait[T any](c *committer, from <-chan T) (T, error) {
	for {
		select {
		case v := <-from:
			return v, nil
		case <-c.deadline:
			if err := c.cut(); err != nil {
				var zero T
				return zero, err
			}
		case <-c.ctx.Done():
			var zero T
			return zero, c.ctx.Err()
		}
	}
}
