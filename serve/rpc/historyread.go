package rpc

import (
	"context"
	"errors"
	"fmt"

	"github.com/ethereum/go-ethereum/common"

	"github.com/leani-go/leani/api/jsonrpc"
	"github.com/leani-go/leani/chain"
)

// This file holds what all methods share that fetch history on demand: which blocks they ask for, and the proof
// that what comes is those blocks and fits the retained ones beside them.

// anchor is the hash that a block beside a run has in the view.
type anchor struct {
	known bool
	hash  common.Hash
}

// gap is a run of blocks that the view does not hold, and what it knows of their hashes.
type gap struct {
	chain.Range
	below anchor // of the block before the run
	above anchor // the parent hash of the block behind the run, so that of its last block
}

// fetch is one request for history on demand. It is the HistoryReader that proves what comes before the method
// sees it.
type fetch struct {
	*call
	parts chain.Parts
	hash  anchor // of the only block
	// restart, if set, drops what the method made of an earlier source; answer takes the blocks.
	restart func()
	answer  func(b *chain.Block) error

	gaps   []gap
	source HistorySource

	at   int         // the gap that is being read
	next uint64      // the number of the next block in it
	last common.Hash // of the block before
}

// missing gives the runs of blocks that the view does not hold, in order.
func missing(blocks chain.Range, coverage []chain.Range) []chain.Range {
	rest := []chain.Range{blocks}
	for _, held := range coverage {
		rest = chain.Subtract(rest, held)
	}
	return rest
}

// run fetches the runs, which the view does not hold.
func (f *fetch) run(runs []chain.Range) error {
	for _, r := range runs {
		g, err := f.gapOf(r)
		if err != nil {
			return err
		}
		f.gaps = append(f.gaps, g)
	}
	f.extend(f.limits.HistoryTime)
	// Who holds memory of responses does not wait for a place: who has a place may wait for that memory.
	request := HistoryRequest{Runs: runs, Parts: f.parts, Impatient: f.out.reserved > 0}
	start := len(f.out.buf)
	err := protect(func() error { return f.history.Fetch(f.context(), request, f) })
	if err == nil && f.at < len(f.gaps) {
		err = &HistoryError{jsonrpc.ReasonHistoryIncomplete,
			fmt.Errorf("source %s: block %d of %v did not come", f.source.ID, f.next, f.gaps[f.at])}
	}
	if errors.Is(err, context.DeadlineExceeded) {
		err = &HistoryError{jsonrpc.ReasonHistoryTime, err}
	}
	if err != nil {
		f.out.buf = f.out.buf[:start]
		return fmt.Errorf("history on demand: %w", err)
	}
	f.noteFetched()
	return nil
}

// hintAt adds to the failure of a log query from a block on, of which runs were missing, which part of it may succeed, or what nobody
// has.
func (c *call) hintAt(err error, from uint64, runs []chain.Range) error {
	var failure *HistoryError
	if !errors.As(err, &failure) {
		return err
	}
	switch limit := c.history.Abilities().MaximumBlocks; {
	case failure.Reason == jsonrpc.ReasonHistoryRange:
		if last, ok := lastWithin(limit, from, runs); ok {
			return jsonrpc.UnavailableHistoryRange(limit, from, last)
		}
	case failure.Reason == jsonrpc.ReasonNoHistorySource:
		return jsonrpc.NoHistorySourceForLogs(runs[0].From, runs[0].To-1)
	}
	return err
}

// lastWithin gives the last block up to which no more than limit blocks from a block on are missing. It returns false where that
// leaves nothing, or everything.
func lastWithin(limit, from uint64, runs []chain.Range) (last uint64, ok bool) {
	for _, r := range runs {
		if r.Len() > limit {
			end := r.From + limit
			return end - 1, end > from
		}
		limit -= r.Len()
	}
	return 0, false
}

// gapOf finds out what the view knows of the hashes beside a run.
func (f *fetch) gapOf(r chain.Range) (g gap, err error) {
	g.Range = r
	coverage := f.view.Coverage()
	if r.From > 0 && holds(coverage, r.From-1) {
		ref, err := f.refOf(r.From - 1)
		if err != nil {
			return g, err
		}
		g.below = anchor{true, ref.Hash}
	}
	if holds(coverage, r.To) {
		ref, err := f.refOf(r.To)
		if err != nil {
			return g, err
		}
		g.above = anchor{true, ref.ParentHash}
	}
	return g, nil
}

// holds tells whether coverage has a block.
func holds(coverage []chain.Range, number uint64) bool {
	return firstMissing(chain.Range{From: number, To: number + 1}, coverage).Empty()
}

// refOf gives the names of a block that the view holds.
func (c *call) refOf(number uint64) (chain.BlockRef, error) {
	c.loaded = true
	if err := c.view.LoadBlock(c.context(), number, chain.PartHeader, &c.block); err != nil {
		return chain.BlockRef{}, fmt.Errorf("load block %d: %w", number, err)
	}
	return c.block.BlockRef, nil
}

// Begin implements HistoryReader.
func (f *fetch) Begin(source HistorySource) {
	f.source, f.at, f.next, f.last = source, 0, f.gaps[0].From, common.Hash{}
	if f.restart != nil {
		f.restart()
	}
}

// Block implements HistoryReader.
func (f *fetch) Block(b *chain.Block) error {
	if err := f.check(b); err != nil {
		return err
	}
	if f.last = b.Hash; b.Number+1 == f.gaps[f.at].To {
		f.at++
	}
	if f.next = b.Number + 1; f.at < len(f.gaps) {
		f.next = max(f.next, f.gaps[f.at].From)
	}
	// Another goroutine may have called, which would take a panic for the source's.
	return protect(func() error { return f.answer(b) })
}

// check decides whether a block is the one that comes next.
func (f *fetch) check(b *chain.Block) error {
	if f.at == len(f.gaps) {
		return f.reject(b, jsonrpc.ReasonHistoryInvalid, "comes behind the last one")
	}
	g := &f.gaps[f.at]
	switch {
	case b.Number != f.next:
		return f.reject(b, jsonrpc.ReasonHistoryInvalid, "comes where block %d is next", f.next)
	case f.parts&chain.PartReceipts != 0 && !b.HasReceipts:
		return f.reject(b, jsonrpc.ReasonHistoryInvalid, "comes without receipts")
	case f.hash.known && b.Hash != f.hash.hash:
		return f.reject(b, jsonrpc.ReasonHistoryInvalid, "has not the hash %x", f.hash.hash)
	case b.Number > g.From && b.ParentHash != f.last:
		return f.reject(b, jsonrpc.ReasonHistoryInvalid, "has the parent %x, the block before is %x", b.ParentHash, f.last)
	case b.Number == g.From && g.below.known && b.ParentHash != g.below.hash:
		return f.reject(b, jsonrpc.ReasonHistoryHandoff, "has the parent %x, the retained one is %x", b.ParentHash, g.below.hash)
	case b.Number+1 == g.To && g.above.known && b.Hash != g.above.hash:
		return f.reject(b, jsonrpc.ReasonHistoryHandoff, "is not %x, the parent of the retained block behind it", g.above.hash)
	}
	for _, mark := range []func() (chain.BlockRef, bool){f.view.Finalized, f.view.Attested} {
		if ref, ok := mark(); ok && ref.Number == b.Number && ref.Hash != b.Hash {
			return f.reject(b, jsonrpc.ReasonHistoryHandoff, "is not %x, which the node knows as part of the chain", ref.Hash)
		}
	}
	return nil
}

func (f *fetch) reject(b *chain.Block, reason, format string, args ...any) error {
	return &HistoryRejection{reason, fmt.Errorf("block %d (%x) %s", b.Number, b.Hash, fmt.Sprintf(format, args...))}
}

// fetchBlock answers with a block that the view does not hold. The hash is that of the block where it was asked for
// by hash.
func (c *call) fetchBlock(number uint64, hash anchor, parts chain.Parts, answer func() error) error {
	f := fetch{call: c, parts: parts, hash: hash}
	start := len(c.out.buf)
	f.restart = func() { c.out.buf = c.out.buf[:start] }
	f.answer = func(b *chain.Block) error {
		// The block lives in memory of the source, and the scratch keeps its own.
		scratch := c.block
		c.block = *b
		defer func() { c.block = scratch }()
		return answer()
	}
	return f.run([]chain.Range{{From: number, To: number + 1}})
}

// lookUp finds a block by hash that the view does not hold. It returns false where no block has the hash.
func (c *call) lookUp(hash common.Hash) (number uint64, found bool, err error) {
	c.extend(c.limits.HistoryTime)
	number, found, err = c.history.NumberByHash(c.context(), hash)
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return 0, false, fmt.Errorf("find block %x in history: %w", hash, &HistoryError{jsonrpc.ReasonHistoryTime, err})
	case err != nil:
		return 0, false, fmt.Errorf("find block %x in history: %w", hash, err)
	case !found:
		return 0, false, nil
	}
	if head, known := c.view.Head(); !known || number > head {
		return 0, false, nil // as by number
	}
	if holds(c.view.Coverage(), number) {
		return 0, false, fmt.Errorf("find block %x in history: %w", hash, &HistoryError{jsonrpc.ReasonHistoryHandoff,
			fmt.Errorf("it has number %d, where another block is retained", number)})
	}
	return number, true, nil
}

// findsHashes tells whether blocks that are not retained are found by hash.
func (c *call) findsHashes() bool { return c.history != nil && c.history.Abilities().BlockHashes }
