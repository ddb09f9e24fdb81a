package rpc

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/leani-go/leani/api/jsonrpc"
	"github.com/leani-go/leani/chain"
	"github.com/leani-go/leani/internal/hexenc"
)

// This file holds the methods that poll for changes. A poll compares the chain of one view with what
// the filter has told: blocks that are no longer part of it are told as removed, then those that came.
// So a poll says what changed in the end, however often the chain changed its mind in between, and
// depends on no stream of events that it could miss.

// newLogFilter answers eth_newFilter.
func newLogFilter(c *call) error {
	p, err := readPositions(c.params, 1)
	if err != nil {
		return err
	}
	f := c.filters.newFilter()
	if f.query, err = readLogQuery(p[0], &c.limits, &c.filter); err != nil {
		return err
	}
	switch from, to := f.query.from, f.query.to; {
	case f.query.byHash:
		return jsonrpc.InvalidParams("a filter with blockHash never changes")
	case from.tag == tagPending || to.tag == tagPending:
		return jsonrpc.Unavailable(jsonrpc.ReasonPendingBlock)
	case from.tag == tagNone && to.tag == tagNone && from.number > to.number:
		return jsonrpc.InvalidParams("fromBlock is above toBlock")
	}
	copyFilter(&f.criteria, &c.filter)
	return c.install(f)
}

// newBlockFilter answers eth_newBlockFilter.
func newBlockFilter(c *call) error {
	if _, err := readPositions(c.params, 0); err != nil {
		return err
	}
	f := c.filters.newFilter()
	f.blocks = true
	return c.install(f)
}

// newPendingTransactionFilter takes any parameters and is always refused: there is no mempool.
func newPendingTransactionFilter(*call) error {
	return jsonrpc.UnavailableMethod(jsonrpc.ReasonPendingBlock, jsonrpc.NewPendingTransactionFilter)
}

// uninstallFilter answers eth_uninstallFilter.
func uninstallFilter(c *call) error {
	p, err := readPositions(c.params, 1)
	if err != nil {
		return err
	}
	id, err := readFilterID(p[0])
	if err != nil {
		return err
	}
	c.out.buf = append(c.out.buf, fmt.Sprint(c.filters.remove(id))...)
	return nil
}

// filterLogs answers eth_getFilterLogs: the log query of the filter, from the start.
func filterLogs(c *call) error {
	f, err := c.takeFilter()
	if err != nil {
		return err
	}
	query := f.query
	copyFilter(&c.filter, &f.criteria)
	f.give()
	if f.blocks {
		return jsonrpc.FilterNotFound()
	}
	return c.queryLogs(&query)
}

// filterChanges answers eth_getFilterChanges.
func filterChanges(c *call) error {
	f, err := c.takeFilter()
	if err != nil {
		return err
	}
	defer f.give()
	if err := c.openView(); err != nil {
		return err
	}
	p := &poll{call: c, ctx: c.context(), f: f, tell: true}
	err = p.run()
	if lost := new(lostError); errors.As(err, &lost) {
		c.filters.remove(f.id)
		return jsonrpc.Unavailable(jsonrpc.ReasonFilterChanges)
	}
	return err
}

// takeFilter reads a filter id as the only parameter and takes the filter's turn.
func (c *call) takeFilter() (*pollFilter, error) {
	p, err := readPositions(c.params, 1)
	if err != nil {
		return nil, err
	}
	id, err := readFilterID(p[0])
	if err != nil {
		return nil, err
	}
	return c.filters.take(c.context(), id)
}

// install makes a filter start behind the head of the chain now, and answers with its id.
func (c *call) install(f *pollFilter) error {
	if err := c.openView(); err != nil {
		return err
	}
	if head, known := c.view.Head(); known {
		// What is remembered of the blocks up to the head can be told as removed later.
		coverage := c.view.Coverage()
		f.next = coverage[len(coverage)-1].From
		if head >= rememberedBlocks {
			f.next = max(f.next, head+1-rememberedBlocks)
		}
		f.started = true
		p := &poll{call: c, ctx: c.context(), f: f}
		if err := p.run(); err != nil {
			return err
		}
	}
	if err := c.filters.install(f); err != nil {
		return err
	}
	return c.text(f.id.String())
}

// lostError says that what changed cannot be told any more.
type lostError struct{ reason string }

func (e *lostError) Error() string { return "changes of a filter are lost: " + e.reason }

// errFull ends a poll at the last whole block before a limit.
var errFull = errors.New("the answer of a poll is full")

// poll is one look of a filter at the chain.
type poll struct {
	*call
	ctx  context.Context
	f    *pollFilter
	tell bool // false: only remember

	count  int // of what has been told
	head   uint64
	keep   int         // blocks of the tail that are still part of the chain
	blocks chain.Range // new blocks that are looked at
	recent []toldBlock // new blocks with logs, the newest ones
	bytes  int64       // of them

	// The answer up to here is about whole blocks, all below whole.
	whole      uint64
	wholeCount int
	wholeBytes int
}

// run tells what changed and moves the filter there. When it fails the filter stays.
func (p *poll) run() error {
	p.write("[")
	known := false
	if p.head, known = p.view.Head(); !known {
		if p.f.started {
			return &lostError{"the chain is gone"}
		}
		p.write("]")
		return nil
	}
	if !p.f.started { // the store was empty
		coverage := p.view.Coverage()
		p.f.next, p.f.started = coverage[len(coverage)-1].From, true
	}
	if err := p.findFork(); err != nil {
		return err
	}
	if more, err := p.tellRemoved(); err != nil || more {
		if err == nil {
			p.write("]")
		}
		return err
	}
	err := p.tellNew()
	if err != nil {
		return err
	}
	if err := p.settle(); err != nil {
		return err
	}
	p.write("]")
	return nil
}

func (p *poll) write(s string) {
	if p.tell {
		p.out.buf = append(p.out.buf, s...)
	}
}

// ref gives the block of the chain at a number. Its parent hash is sure to be there only with chain.PartHeader.
func (p *poll) ref(number uint64, parts chain.Parts) (chain.BlockRef, error) {
	if err := p.load(number, parts); err != nil {
		if errors.Is(err, chain.ErrNotRetained) {
			return chain.BlockRef{}, &lostError{err.Error()}
		}
		return chain.BlockRef{}, err
	}
	return p.block.BlockRef, nil
}

// findFork finds how much of the tail is still part of the chain.
func (p *poll) findFork() error {
	tail := p.f.tail
	for p.keep = len(tail); p.keep > 0; p.keep-- {
		told := &tail[p.keep-1].ref
		if told.Number > p.head {
			continue
		}
		ref, err := p.ref(told.Number, 0)
		if err != nil {
			return err
		}
		if ref.Hash == told.Hash {
			return nil
		}
	}
	if len(tail) == 0 {
		return nil
	}
	// All of it is undone. That is known to be all that is undone if its parent is not.
	first := &tail[0].ref
	if first.Number == 0 || first.Number-1 > p.head {
		return &lostError{"more blocks were undone than are remembered"}
	}
	parent, err := p.ref(first.Number-1, 0)
	if err != nil {
		return err
	}
	if parent.Hash != first.ParentHash {
		return &lostError{"more blocks were undone than are remembered"}
	}
	return nil
}

// tellRemoved tells the logs of undone blocks, newest block first. It returns true when the answer is
// full before all are told.
func (p *poll) tellRemoved() (more bool, err error) {
	f := p.f
	var found chain.FoundLog
	for i := len(f.tail) - 1; i >= p.keep; i-- {
		b := &f.tail[i]
		if f.blocks {
			continue
		}
		if b.forgotten {
			return false, &lostError{"logs of an undone block are not remembered"}
		}
		start, count := len(p.out.buf), p.count
		for at := range b.logs {
			b.logs[at].found(&b.ref, &found)
			err := p.append(&found, true)
			if errors.Is(err, errFull) {
				if p.out.buf, p.count = p.out.buf[:start], count; count == 0 {
					return false, p.tooMuch()
				}
				f.moveBack(i + 1)
				return true, nil
			}
			if err != nil {
				return false, err
			}
		}
	}
	return false, nil
}

// moveBack makes the first n blocks of the tail all that has been told.
func (f *pollFilter) moveBack(n int) {
	f.next = f.tail[n-1].ref.Number + 1
	clear(f.tail[n:])
	f.tail = f.tail[:n]
}

// append appends a log or fails with errFull.
func (p *poll) append(l *chain.FoundLog, removed bool) error {
	if p.count == p.limits.MaxLogResults {
		return errFull
	}
	if err := p.out.grow(p.context, logSize(&l.Log)); err != nil {
		return err
	}
	if p.count > 0 {
		p.out.buf = append(p.out.buf, ',')
	}
	if removed {
		p.out.buf = p.encode.AppendRemovedLog(p.out.buf, l)
	} else {
		p.out.buf = p.encode.AppendLog(p.out.buf, l)
	}
	p.count++
	if len(p.out.buf)+len("]") > p.out.limit {
		return errFull
	}
	return nil
}

// tooMuch is the error of a poll whose first block alone passes a limit.
func (p *poll) tooMuch() error {
	if p.count >= p.limits.MaxLogResults {
		return jsonrpc.TooManyLogsInBlock(uint64(p.limits.MaxLogResults))
	}
	return errOversize
}

// tellNew tells what is new, as far as limits go.
func (p *poll) tellNew() error {
	from := p.f.next
	if p.keep < len(p.f.tail) {
		from = p.f.tail[p.keep].ref.Number
	}
	p.blocks = chain.Range{From: from, To: max(from, p.head+1)}
	if p.blocks.Len() > maxFilterAdvance {
		p.blocks.To = from + maxFilterAdvance
	}
	if missing := firstMissing(p.blocks, p.view.Coverage()); !p.blocks.Empty() && !missing.Empty() {
		return &lostError{fmt.Sprintf("blocks %s are not retained", missing)}
	}
	if p.f.blocks {
		return p.tellHashes()
	}
	return p.tellLogs()
}

// tellHashes tells the hashes of new blocks.
func (p *poll) tellHashes() error {
	if !p.tell {
		return nil
	}
	if n := uint64(p.limits.MaxLogResults); p.blocks.Len() > n {
		p.blocks.To = p.blocks.From + n
	}
	for number := p.blocks.From; number < p.blocks.To; number++ {
		if p.count%deadlineStride == 0 && p.ctx.Err() != nil {
			return p.ctx.Err()
		}
		if len(p.out.buf)+hashFixed+len("]") > p.out.limit {
			if p.count == 0 {
				return errOversize
			}
			p.blocks.To = number
			return nil
		}
		ref, err := p.ref(number, 0)
		if err != nil {
			return err
		}
		if err := p.out.grow(p.context, hashFixed); err != nil {
			return err
		}
		if p.count > 0 {
			p.out.buf = append(p.out.buf, ',')
		}
		p.out.buf = append(hexenc.AppendBytes(append(p.out.buf, '"'), ref.Hash[:]), '"')
		p.count++
	}
	return nil
}

// tellLogs tells the logs of new blocks within the bounds of the filter.
func (p *poll) tellLogs() error {
	wanted := p.blocks
	if q := p.f.query.from; q.tag == tagNone {
		wanted.From = max(wanted.From, q.number)
	}
	if q := p.f.query.to; q.tag == tagNone && q.number < wanted.To {
		wanted.To = q.number + 1
		wanted.To = min(wanted.To, p.blocks.To)
	}
	if wanted.Empty() {
		return nil
	}
	p.touch(wanted)
	copyFilter(&p.filter, &p.f.criteria)
	cost, err := p.view.LogsCost(p.ctx, wanted, &p.filter)
	if err != nil {
		return fmt.Errorf("plan log query over %s: %w", wanted, asMissingLogs(err))
	}
	p.whole, p.wholeCount, p.wholeBytes = wanted.From, p.count, len(p.out.buf)
	read := func() error { return p.view.Logs(p.ctx, wanted, &p.filter, p.add) }
	if cost < laneCost {
		err = read()
	} else {
		if err := p.out.reserve(p.ctx); err != nil {
			return err
		}
		err = p.lane.do(p.ctx, read)
	}
	if errors.Is(err, errFull) {
		if p.wholeCount == 0 && p.whole == wanted.From {
			return p.tooMuch()
		}
		p.out.buf, p.count, p.blocks.To = p.out.buf[:p.wholeBytes], p.wholeCount, p.whole
		p.recent = slices.DeleteFunc(p.recent, func(b toldBlock) bool { return b.ref.Number >= p.whole })
		return nil
	}
	if err != nil {
		return fmt.Errorf("query logs of %s: %w", wanted, asMissingLogs(err))
	}
	return nil
}

// add tells and remembers one log.
func (p *poll) add(l *chain.FoundLog) error {
	if l.Block.Number > p.whole {
		p.whole, p.wholeCount, p.wholeBytes = l.Block.Number, p.count, len(p.out.buf)
	}
	if p.tell {
		if p.count%deadlineStride == 0 && p.ctx.Err() != nil {
			return p.ctx.Err()
		}
		if err := p.append(l, false); err != nil {
			return err
		}
	}
	last := len(p.recent) - 1
	if last < 0 || p.recent[last].ref.Number != l.Block.Number {
		if len(p.recent) == rememberedBlocks {
			p.bytes -= p.recent[0].bytes
			p.recent = slices.Delete(p.recent, 0, 1)
		}
		p.recent = append(p.recent, toldBlock{ref: *l.Block})
		last = len(p.recent) - 1
	}
	b := &p.recent[last]
	if b.forgotten {
		return nil
	}
	b.logs = append(b.logs, remember(l))
	size := int64(toldLogBytes + len(l.Data))
	b.bytes, p.bytes = b.bytes+size, p.bytes+size
	p.bytes = forgetOldest(p.recent, p.bytes, maxRememberedBytes)
	return nil
}

// settle moves the filter to the end of the blocks that were told.
func (p *poll) settle() error {
	first := p.blocks.From
	if p.blocks.Len() > rememberedBlocks {
		first = p.blocks.To - rememberedBlocks
	}
	final, hasFinal := p.view.Finalized()
	recent := p.recent
	var fresh []toldBlock
	for number := first; number < p.blocks.To; number++ {
		ref, err := p.ref(number, chain.PartHeader)
		if err != nil {
			return err
		}
		for len(recent) > 0 && recent[0].ref.Number < number {
			recent = recent[1:]
		}
		b := toldBlock{ref: ref}
		if len(recent) > 0 && recent[0].ref.Number == number {
			b = recent[0]
			b.ref = ref
		}
		fresh = append(fresh, b)
	}
	f := p.f
	clear(f.tail[p.keep:])
	f.tail = append(f.tail[:p.keep], fresh...)
	if surplus := len(f.tail) - rememberedBlocks; surplus > 0 {
		f.tail = slices.Delete(f.tail, 0, surplus)
	}
	if first > p.blocks.From { // blocks in between are not remembered
		f.tail = slices.Clone(fresh)
	}
	for i := range f.tail {
		if b := &f.tail[i]; hasFinal && b.ref.Number <= final.Number {
			b.logs, b.bytes, b.forgotten = nil, 0, true
		}
	}
	f.next = p.blocks.To
	return nil
}

// copyFilter makes dst equal to src in memory of its own, which it reuses.
func copyFilter(dst, src *chain.LogFilter) {
	dst.Addresses = append(dst.Addresses[:0], src.Addresses...)
	dst.Topics = dst.Topics[:0]
	for _, alternatives := range src.Topics {
		list := append(nextTopics(dst), alternatives...)
		dst.Topics[len(dst.Topics)-1] = list
	}
}
