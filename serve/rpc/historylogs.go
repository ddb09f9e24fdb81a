package rpc

import (
	"fmt"

	"github.com/leani-go/leani/chain"
)

// mixedRun is a log query over blocks of which the view holds only some: their logs come from the view, those of
// the others from history on demand, in chain order.
type mixedRun struct {
	logRun
	held  []chain.Range // of the query, in order
	next  int           // the first of them that is not in the answer yet
	start int           // of the answer in the response
	found chain.FoundLog
}

// fetchLogs runs a query over blocks that the view does not hold all.
func (c *call) fetchLogs(query *logQuery, blocks chain.Range, hash anchor) error {
	coverage := c.view.Coverage()
	m := &mixedRun{logRun: logRun{call: c, ctx: c.context(), query: query, blocks: blocks}, start: len(c.out.buf)}
	for _, r := range coverage {
		if held := r.Intersect(blocks); !held.Empty() {
			m.held = append(m.held, held)
			c.touch(held)
		}
	}
	f := fetch{call: c, parts: chain.PartReceipts | chain.PartTransactionHashes, hash: hash, restart: m.restart, answer: m.block}
	if err := f.run(missing(blocks, coverage)); err != nil {
		return err
	}
	c.out.buf = append(c.out.buf, ']')
	return nil
}

// restart drops what came from an earlier source.
func (m *mixedRun) restart() {
	m.ctx = m.context() // has been extended
	m.next, m.count = 0, 0
	m.out.buf = append(m.out.buf[:m.start], '[')
}

// block adds the logs of a fetched block, those of retained blocks below it before, and those of retained
// blocks above it when no fetched block follows.
func (m *mixedRun) block(b *chain.Block) error {
	if err := m.retained(b.Number); err != nil {
		return err
	}
	m.found.Block = &b.BlockRef
	receipt := 0
	for i := range b.Logs {
		for receipt < len(b.Receipts) && uint32(i) >= b.Receipts[receipt].LogsEnd {
			receipt++
		}
		if !m.filter.Match(&b.Logs[i]) {
			continue
		}
		m.found.Log, m.found.LogIndex = b.Logs[i], uint32(i)
		m.found.TransactionIndex, m.found.TransactionHash = uint32(receipt), &b.TransactionHashes[receipt]
		if err := m.add(&m.found); err != nil {
			return err
		}
	}
	if firstMissing(chain.Range{From: b.Number + 1, To: m.blocks.To}, m.held).Empty() {
		return m.retained(m.blocks.To)
	}
	return m.ctx.Err()
}

// retained adds the logs of retained blocks below a number.
func (m *mixedRun) retained(below uint64) error {
	for ; m.next < len(m.held) && m.held[m.next].From < below; m.next++ {
		if err := m.view.Logs(m.ctx, m.held[m.next], &m.filter, m.add); err != nil {
			return fmt.Errorf("query logs of %s: %w", m.held[m.next], asMissingLogs(err))
		}
	}
	return nil
}
