package history

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/ethereum/go-ethereum/common"

	"github.com/leani-go/leani/chain"
	"github.com/leani-go/leani/engine"
	"github.com/leani-go/leani/engine/history/hotblock"
	"github.com/leani-go/leani/internal/corrupt"
)

// hotSet is the hot tier of one snapshot, with what was decoded of its blocks. It is immutable but for the
// decoded parts, and shared by all views of the same commit; consecutive sets share the blocks that both have.
type hotSet struct {
	generation uint64
	span       chain.Range
	blocks     []*hotEntry // by number
	groups     []*hotGroup // full ones, from block grouped on without a gap
	grouped    uint64
}

// hotEntry is a hot block and its decoded parts.
type hotEntry struct {
	*engine.HotBlock
	logs   atomic.Pointer[hotblock.Logs]
	hashes atomic.Pointer[hotblock.Hashes]

	// What follows is guarded by hotCache.mu.
	held int64 // bytes of the decoded parts that are counted
	gone bool  // no newer set has the block: nothing of it is kept any more
}

// hotCache holds the newest set and bounds what is decoded.
type hotCache struct {
	current atomic.Pointer[hotSet]

	mu   sync.Mutex
	held int64 // bytes of all decoded parts that are kept
}

// hotSetOf gives the set of a snapshot.
func (s *Store) hotSetOf(snap *engine.Snapshot) *hotSet {
	set := s.hot.current.Load()
	if set != nil && set.generation == snap.Generation() {
		return set
	}
	s.hot.mu.Lock()
	defer s.hot.mu.Unlock()
	old := s.hot.current.Load()
	if old != nil && old.generation == snap.Generation() {
		return old
	}
	set = &hotSet{generation: snap.Generation(), span: snap.HotRange()}
	set.blocks = make([]*hotEntry, len(snap.Hot()))
	for i, b := range snap.Hot() {
		if e, ok := old.at(b.Number); ok && e.HotBlock == b {
			set.blocks[i] = e
			continue
		}
		set.blocks[i] = &hotEntry{HotBlock: b}
	}
	set.groupsOf(old, s.opts.hotGroup)
	if old != nil && old.generation > set.generation {
		for _, e := range set.blocks { // of an older snapshot: decoded for itself, and not kept
			if kept, ok := old.at(e.Number); !ok || kept != e {
				e.gone = true
			}
		}
		return set
	}
	if old != nil {
		for _, e := range old.blocks {
			if kept, ok := set.at(e.Number); !ok || kept != e {
				s.hot.drop(e)
				e.gone = true
			}
		}
	}
	s.hot.current.Store(set)
	return set
}

// at finds a block by number. A nil set has none.
func (set *hotSet) at(n uint64) (*hotEntry, bool) {
	if set == nil || !set.span.Contains(n) {
		return nil, false
	}
	return set.blocks[n-set.span.From], true
}

// cut gives the blocks of a range.
func (set *hotSet) cut(r chain.Range) []*hotEntry {
	r = r.Intersect(set.span)
	if r.Empty() {
		return nil
	}
	return set.blocks[r.From-set.span.From : r.To-set.span.From]
}

// numberOf finds a block by hash, newest first. Hashes are looked at by their first bytes, one after the
// other: a window of 256 blocks costs less than a cache miss.
func (set *hotSet) numberOf(hash *common.Hash) (uint64, bool) {
	for i := len(set.blocks) - 1; i >= 0; i-- {
		if set.blocks[i].Hash == *hash {
			return set.blocks[i].Number, true
		}
	}
	return 0, false
}

// drop forgets the decoded parts of a block. mu is held.
func (c *hotCache) drop(e *hotEntry) {
	e.logs.Store(nil)
	e.hashes.Store(nil)
	c.held -= e.held
	e.held = 0
}

// keep counts n more bytes of a block that was decoded, and calls set to keep them. Where they would pass the
// limit, older blocks of the current set give up theirs, the oldest first, and no newer one does: most queries go
// through all blocks in order, and would otherwise find that each was dropped for the one before.
func (c *hotCache) keep(e *hotEntry, n, limit int64, set func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e.gone || n > limit {
		return
	}
	for _, other := range c.current.Load().blocks {
		if c.held+n <= limit || other.Number >= e.Number {
			break
		}
		c.drop(other)
	}
	if c.held+n > limit {
		return
	}
	set()
	e.held += n
	c.held += n
}

// hotPart reads a part of a hot block.
func (v *View) hotPart(e *hotEntry, part uint8) ([]byte, error) {
	return v.snapshot.HotPart(e.HotBlock, part)
}

// damagedPart names the row of a part that was stored whole and does not decode.
func damagedPart(e *hotEntry, part uint8, err error) error {
	return corrupt.New(fmt.Sprintf("frame/%d/%s/part=%d", e.Number, e.Hash.Hex(), part), err)
}

// hotLogs gives the decoded logs of a hot block.
func (v *View) hotLogs(e *hotEntry) (*hotblock.Logs, error) {
	if l := e.logs.Load(); l != nil {
		return l, nil
	}
	raw, err := v.hotPart(e, hotblock.PartLogs)
	if err != nil {
		return nil, err
	}
	l, err := hotblock.DecodeLogs(raw, e.Transactions)
	if err == nil && l.Len() != int(e.Logs) {
		err = fmt.Errorf("got %d logs want %d", l.Len(), e.Logs)
	}
	if err != nil {
		return nil, damagedPart(e, hotblock.PartLogs, err)
	}
	v.store.hot.keep(e, l.Bytes(), v.store.opts.HotBytes, func() {
		if e.logs.Load() != nil {
			e.held -= l.Bytes() // another view was faster: it is counted already
			v.store.hot.held -= l.Bytes()
			return
		}
		e.logs.Store(l)
	})
	return l, nil
}

// hotHashes gives the decoded transaction hashes of a hot block.
func (v *View) hotHashes(e *hotEntry) (*hotblock.Hashes, error) {
	if h := e.hashes.Load(); h != nil {
		return h, nil
	}
	raw, err := v.hotPart(e, hotblock.PartHashes)
	if err != nil {
		return nil, err
	}
	h, err := hotblock.DecodeHashes(raw)
	if err == nil && h.Len() != int(e.Transactions) {
		err = fmt.Errorf("got %d hashes want %d", h.Len(), e.Transactions)
	}
	if err != nil {
		return nil, damagedPart(e, hotblock.PartHashes, err)
	}
	v.store.hot.keep(e, h.Bytes(), v.store.opts.HotBytes, func() {
		if e.hashes.Load() != nil {
			e.held -= h.Bytes()
			v.store.hot.held -= h.Bytes()
			return
		}
		e.hashes.Store(h)
	})
	return h, nil
}

// loadHot fills dst with parts of a hot block. What it holds is memory of its own, or shared and immutable.
func (v *View) loadHot(e *hotEntry, parts chain.Parts, dst *chain.Block) error {
	dst.Reset()
	dst.BlockRef = e.BlockRef
	load := func(part uint8, use func(raw []byte, dst *chain.Block) error) error {
		raw, err := v.hotPart(e, part)
		if err != nil {
			return err
		}
		if err := use(raw, dst); err != nil {
			return damagedPart(e, part, err)
		}
		return nil
	}
	if parts&chain.PartHeader != 0 {
		if err := load(hotblock.PartHeader, hotblock.LoadHeader); err != nil {
			return err
		}
	}
	const body = chain.PartTransactions | chain.PartOmmers | chain.PartWithdrawals
	if parts&body != 0 {
		if err := load(hotblock.PartBody, hotblock.LoadBody); err != nil {
			return err
		}
		if len(dst.Transactions) != int(e.Transactions) {
			return damagedPart(e, hotblock.PartBody, fmt.Errorf("got %d transactions want %d", len(dst.Transactions), e.Transactions))
		}
		if parts&chain.PartTransactions == 0 {
			dst.Transactions = dst.Transactions[:0]
		}
		if parts&chain.PartOmmers == 0 {
			dst.Ommers = nil
		}
		if parts&chain.PartWithdrawals == 0 {
			dst.Withdrawals = nil
		}
	}
	if parts&chain.PartTransactionHashes != 0 {
		h, err := v.hotHashes(e)
		if err != nil {
			return err
		}
		dst.TransactionHashes = h.Append(dst.TransactionHashes[:0])
	}
	if parts&chain.PartReceipts == 0 {
		return nil
	}
	if err := load(hotblock.PartReceipts, hotblock.LoadReceipts); err != nil {
		return err
	}
	if len(dst.Receipts) != int(e.Transactions) {
		return damagedPart(e, hotblock.PartReceipts, fmt.Errorf("got %d receipts want %d", len(dst.Receipts), e.Transactions))
	}
	l, err := v.hotLogs(e)
	if err != nil {
		return err
	}
	if err := l.Load(dst); err != nil {
		return damagedPart(e, hotblock.PartLogs, err)
	}
	return nil
}

// loadHotBlock is LoadBlock for a hot block.
func (v *View) loadHotBlock(ctx context.Context, e *hotEntry, parts chain.Parts, dst *chain.Block) error {
	if parts&chain.PartSenders != 0 && v.store.senders.get(e.Hash) == nil {
		parts |= chain.PartTransactions
	}
	if err := v.loadHot(e, parts, dst); err != nil || parts&chain.PartSenders == 0 {
		return err
	}
	if known := v.store.senders.get(e.Hash); known != nil {
		dst.Senders = append(dst.Senders[:0], known...)
		return nil
	}
	if parts&chain.PartTransactions == 0 { // the cache forgot them since
		return v.loadHotBlock(ctx, e, parts|chain.PartTransactions, dst)
	}
	senders, err := v.store.recoverSenders(ctx, dst.Transactions, runtime.GOMAXPROCS(0))
	if err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return damagedPart(e, hotblock.PartBody, err)
	}
	v.store.senders.put(e.Hash, senders)
	dst.Senders = append(dst.Senders[:0], senders...)
	return nil
}

// loadHotTransaction is LoadTransaction for a hot block, whose parts are read whole.
func (v *View) loadHotTransaction(ctx context.Context, e *hotEntry, index uint32, parts chain.Parts, dst *chain.Block) error {
	wanted := parts
	if parts&chain.PartSenders != 0 {
		parts |= chain.PartTransactions
	}
	if err := v.loadHot(e, parts, dst); err != nil || wanted&chain.PartSenders == 0 {
		return err
	}
	one, err := v.store.recoverSenders(ctx, dst.Transactions[index:index+1], 1)
	if err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return damagedPart(e, hotblock.PartBody, fmt.Errorf("transaction %d: %w", index, err))
	}
	dst.Senders = append(dst.Senders[:0], make([]common.Address, e.Transactions)...)
	dst.Senders[index] = one[0]
	return nil
}
