package history

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/leani-go/leani/chain"
	"github.com/leani-go/leani/engine"
	"github.com/leani-go/leani/engine/history/hotblock"
)

// RecentOptions bound the hot tier. The zero value is the default throughout.
type RecentOptions struct {
	// MinimumBlocks stay in the hot tier, as long as it is below HardBytes.
	MinimumBlocks uint64
	// SoftBytes is the size from which final blocks are sealed without waiting for a full file.
	SoftBytes int64
	// HardBytes is the size above which Extend applies nothing.
	HardBytes int64
	// Depth is how deep a block must lie to count as final while nothing was ever marked as finalized; 0
	// never counts depth.
	Depth uint64
}

// Defaults of RecentOptions.
const (
	DefaultMinimumBlocks = 128
	DefaultSoftBytes     = 256 << 20
	DefaultHardBytes     = 512 << 20
	// FinalDepth is two epochs of 32 slots: what finality takes while the network is well.
	FinalDepth = 64
)

func (o RecentOptions) withDefaults() RecentOptions {
	if o.MinimumBlocks == 0 {
		o.MinimumBlocks = DefaultMinimumBlocks
	}
	if o.SoftBytes <= 0 {
		o.SoftBytes = DefaultSoftBytes
	}
	if o.HardBytes <= 0 {
		o.HardBytes = DefaultHardBytes
	}
	return o
}

// Extension is a change of the newest blocks. It happens as a whole or not at all.
type Extension struct {
	// Undo are the blocks to undo, newest first; Apply the blocks to apply, oldest first, complete and verified.
	Undo  []chain.BlockRef
	Apply []*chain.Block
	// Attested and Finalized move the marks; nil leaves them.
	Attested, Finalized *chain.BlockRef
}

// ErrRecentFull is returned by Extend while the hot tier is above RecentOptions.HardBytes. It takes blocks again
// once older ones are sealed.
var ErrRecentFull = errors.New("recent blocks use up their bytes (recent_storage_full)")

// extender is what Extend works with; mu orders commits and their publication.
type extender struct {
	mu      sync.Mutex
	encoder hotblock.Encoder
}

// Extend commits a change of the newest blocks and then publishes it to the subscribers: what a subscriber sees
// is durable, and visible in views. The errors are those of engine.Commit: engine.ErrNotChild,
// engine.ErrFinalized and engine.ErrTooDeep tell that the change does not fit the chain. Nothing of the blocks is
// kept.
func (s *Store) Extend(ctx context.Context, x *Extension) error {
	s.extend.mu.Lock()
	defer s.extend.mu.Unlock()
	edit := engine.Edit{Hot: engine.HotEdit{Undo: x.Undo, Attested: x.Attested, Finalized: x.Finalized}}
	if len(x.Apply) > 0 {
		if err := s.admitRecent(); err != nil {
			return err
		}
	}
	for i, b := range x.Apply {
		parts, err := s.extend.encoder.Encode(b)
		if err != nil {
			return err
		}
		n := engine.NewBlock{BlockRef: b.BlockRef, Transactions: uint32(len(b.Transactions)), Logs: uint32(len(b.Logs))}
		for p, content := range parts {
			if i+1 < len(x.Apply) { // the encoder's memory serves the next one
				content = slices.Clone(content)
			}
			n.Parts = append(n.Parts, engine.NewPart{Part: uint8(p + 1), Content: content})
		}
		edit.Hot.Apply = append(edit.Hot.Apply, n)
	}
	generation, err := s.engine.CommitGeneration(ctx, edit)
	if err != nil {
		return err
	}
	c := &Change{Generation: generation, Undone: slices.Clone(x.Undo), Attested: copyRef(x.Attested), Finalized: copyRef(x.Finalized)}
	for _, b := range x.Apply {
		c.Applied = append(c.Applied, b.BlockRef)
	}
	s.feed.publish(c)
	s.deliver(c)
	return nil
}

func copyRef(r *chain.BlockRef) *chain.BlockRef {
	if r == nil {
		return nil
	}
	out := *r
	return &out
}

// admitRecent tells whether another block fits the hot tier.
func (s *Store) admitRecent() error {
	snap := s.engine.Acquire()
	defer snap.Release()
	if used := snap.HotBytes(); used >= s.opts.Recent.HardBytes {
		return fmt.Errorf("%w: %d bytes are used, the maximum is %d", ErrRecentFull, used, s.opts.Recent.HardBytes)
	}
	return nil
}
