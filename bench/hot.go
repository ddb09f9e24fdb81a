package bench

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/leani-go/leani/chain"
	"github.com/leani-go/leani/engine/history"
)

// WriteHot writes the corpus to a store that does not hold it yet: the newest blocks to the hot tier, one by one, and
// those before to files.
func (c *Corpus) WriteHot(ctx context.Context, s *Store, recent uint64) error {
	w := s.History.NewWriter(ctx, nil)
	border, open := c.Blocks-min(recent, c.Blocks), true
	err := c.Each(ctx, func(b *chain.Block) error {
		if b.Number < border {
			return w.Add(b)
		}
		if open {
			open = false
			if err := w.Close(false); err != nil {
				return err
			}
		}
		return s.History.Extend(ctx, &history.Extension{Apply: []*chain.Block{b}})
	})
	if open {
		err = errors.Join(err, w.Close(err != nil))
	}
	if err != nil {
		return fmt.Errorf("write corpus with %d recent blocks: %w", recent, err)
	}
	return nil
}

// Head keeps the newest block of a store changing: it undoes it, or the one that took its place, and applies another
// one with the same content and another hash. Blocks are not proved here, so that any hash will do.
type Head struct {
	History *history.Store
	// Block is the newest block. Its hash changes.
	Block *chain.Block
	Pause time.Duration

	n uint64
}

// Once replaces the block, and gives how long that took: from the block in memory to where views show it.
func (h *Head) Once(ctx context.Context) (time.Duration, error) {
	h.n++
	old, next := h.Block.BlockRef, *h.Block
	binary.BigEndian.PutUint64(next.Hash[:], h.n^binary.BigEndian.Uint64(old.Hash[:]))
	start := time.Now()
	err := h.History.Extend(ctx, &history.Extension{Undo: []chain.BlockRef{old}, Apply: []*chain.Block{&next}})
	h.Block.Hash = next.Hash
	return time.Since(start), err
}

// Run replaces the block after each pause until the context ends, and gives the times.
func (h *Head) Run(ctx context.Context) (Times, error) {
	var times Times
	for {
		select {
		case <-ctx.Done():
			return times, nil
		case <-time.After(h.Pause):
		}
		t, err := h.Once(context.WithoutCancel(ctx))
		if err != nil {
			return times, err
		}
		times = append(times, t)
	}
}
