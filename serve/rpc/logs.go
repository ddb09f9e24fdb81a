package rpc

import (
	"context"
	"errors"
	"fmt"

	"github.com/leani-go/leani/api/jsonrpc"
	"github.com/leani-go/leani/chain"
)

// logs answers eth_getLogs: it plans the query against one view and runs it, in the lane for
// heavy queries when it is one.
func logs(c *call) error {
	p, err := readPositions(c.params, 1)
	if err != nil {
		return err
	}
	query, err := readLogQuery(p[0], &c.limits, &c.filter)
	if err != nil {
		return err
	}
	return c.queryLogs(&query)
}

// queryLogs runs a query whose addresses and topics are in c.filter.
func (c *call) queryLogs(query *logQuery) error {
	if err := c.openView(); err != nil {
		return err
	}
	blocks, hash, err := c.logRange(query)
	if err != nil {
		return err
	}
	if missing := firstMissing(blocks, c.view.Coverage()); !missing.Empty() {
		if c.history == nil {
			return jsonrpc.UnavailableLogs(missing.From, missing.To-1)
		}
		return c.fetchLogs(query, blocks, hash)
	}
	c.touch(blocks)
	cost, err := c.view.LogsCost(c.context(), blocks, &c.filter)
	if err != nil {
		return fmt.Errorf("plan log query over %s: %w", blocks, asMissingLogs(err))
	}
	run := logRun{call: c, ctx: c.context(), query: query, blocks: blocks}
	if cost < laneCost {
		c.out.expected = len(c.out.buf) + int(cost)*logFixed
		defer func() { c.out.expected = 0 }()
		return run.do()
	}
	// The memory comes first: a query that waits for it must not hold up the lane.
	if err := c.out.reserve(run.ctx); err != nil {
		return err
	}
	return c.lane.do(run.ctx, run.do)
}

// logRange gives the blocks of a query, and the hash of the only one where that was looked up in history.
func (c *call) logRange(query *logQuery) (blocks chain.Range, hash anchor, err error) {
	if query.byHash {
		number, ok, err := c.view.NumberByHash(query.hash)
		if err != nil {
			return chain.Range{}, hash, fmt.Errorf("find block %x: %w", query.hash, err)
		}
		if !ok && c.findsHashes() {
			if number, ok, err = c.lookUp(query.hash); err != nil {
				return chain.Range{}, hash, err
			}
			hash = anchor{true, query.hash}
		}
		if !ok {
			return chain.Range{}, hash, jsonrpc.Unavailable(jsonrpc.ReasonBlockHashNotRetained)
		}
		return chain.Range{From: number, To: number + 1}, hash, nil
	}

	head, known := c.view.Head()
	if !known && (query.from.tag == tagLatest || query.to.tag == tagLatest) {
		return chain.Range{}, hash, jsonrpc.Unavailable(jsonrpc.ReasonLatestForLogs)
	}
	first, err := c.resolve(query.from, head)
	if err != nil {
		return chain.Range{}, hash, err
	}
	last, err := c.resolve(query.to, head)
	if err != nil {
		return chain.Range{}, hash, err
	}
	switch {
	case query.to.tag == tagNone && last > head:
		return chain.Range{}, hash, jsonrpc.BeyondHead("toBlock", last, head)
	case query.from.tag == tagNone && first > head:
		return chain.Range{}, hash, jsonrpc.BeyondHead("fromBlock", first, head)
	case first > last:
		return chain.Range{}, hash, jsonrpc.InvalidParams("fromBlock is above toBlock")
	}
	return chain.Range{From: first, To: last + 1}, hash, nil
}

// firstMissing is the first run of blocks that the coverage, ascending and disjoint, does not
// hold; empty when it holds them all.
func firstMissing(blocks chain.Range, coverage []chain.Range) chain.Range {
	at := blocks.From
	for _, held := range coverage {
		if held.To <= at {
			continue
		}
		if held.From > at {
			return chain.Range{From: at, To: min(held.From, blocks.To)}
		}
		if at = held.To; at >= blocks.To {
			return chain.Range{}
		}
	}
	return chain.Range{From: at, To: blocks.To}
}

// asMissingLogs gives the reason of log queries to a store's report of missing blocks.
func asMissingLogs(err error) error {
	var missing *chain.NotRetainedError
	if errors.As(err, &missing) && !missing.Range.Empty() {
		return jsonrpc.UnavailableLogs(missing.Range.From, missing.Range.To-1)
	}
	return err
}

// logRun writes the logs of one planned query to the response while the store finds them, and
// stops at the first limit.
type logRun struct {
	*call
	ctx    context.Context
	query  *logQuery
	blocks chain.Range

	count int
}

func (r *logRun) do() error {
	r.out.buf = append(r.out.buf, '[')
	if err := r.view.Logs(r.ctx, r.blocks, &r.filter, r.add); err != nil {
		return fmt.Errorf("query logs of %s: %w", r.blocks, asMissingLogs(err))
	}
	r.out.buf = append(r.out.buf, ']')
	return nil
}

// mayAdd decides whether one more log may follow, of a block. The hint of a query that passes a limit ends before the block of the
// first log that is too much, so that its answer is a part of this one and fits.
func (r *logRun) mayAdd(block uint64) error {
	if r.count == r.limits.MaxLogResults {
		limit := uint64(r.limits.MaxLogResults)
		if fitting := r.before(block); !fitting.Empty() {
			return jsonrpc.TooManyLogs(limit, fitting.From, fitting.To-1)
		}
		return jsonrpc.TooManyLogsInBlock(limit)
	}
	if r.count%deadlineStride == 0 {
		return r.ctx.Err()
	}
	return nil
}

// add appends one log.
func (r *logRun) add(l *chain.FoundLog) error {
	if err := r.mayAdd(l.Block.Number); err != nil {
		return err
	}
	if r.query.byHash && l.Block.Hash != r.query.hash {
		return jsonrpc.Unavailable(jsonrpc.ReasonBlockHashNotRetained)
	}
	if err := r.out.grow(r.context, logSize(&l.Log)); err != nil {
		return err
	}
	if r.count > 0 {
		r.out.buf = append(r.out.buf, ',')
	}
	r.out.buf = r.encode.AppendLog(r.out.buf, l)
	r.count++
	if len(r.out.buf)+len("]") > r.out.limit {
		return &oversizeError{fitting: r.before(l.Block.Number)}
	}
	return nil
}

// before is the part of the query before a block.
func (r *logRun) before(block uint64) chain.Range {
	return r.blocks.Intersect(chain.Range{From: r.blocks.From, To: block})
}
