package rpc

import (
	"context"
	"errors"
	"fmt"

	"github.com/leani-go/leani/api/jsonrpc"
	"github.com/leani-go/leani/chain"
)

// mixedRun is a log query over blocks of which the view holds only some. The logs of the others are gathered first, in the
// response, while history on demand is read; those of the view follow once the place of the fetch is free, under the rules of every
// query; then all are put in chain order. Each log has a comma before it, the first of which becomes the bracket.
type mixedRun struct {
	logRun
	held  []chain.Range // of the query, in order
	start int           // of the answer in the response
	found chain.FoundLog

	gathered []gatheredLog // in the response from start on
	length   int           // of the response if it ended behind the last log that was passed in chain order
	// over says that the logs do not fit: which of them is the first that does not is all that is left to find out, and
	// nothing more is kept.
	over   bool
	pieces []piece // of the response, in chain order
}

// gatheredLog is a log of a fetched block as it lies in the response.
type gatheredLog struct {
	block uint64
	bytes int // with its comma
}

// piece is a part of the response.
type piece struct{ from, to int }

// errEnough ends a fetch of which the logs alone are more than an answer may have.
var errEnough = errors.New("the answer has no room for more")

// fetchLogs runs a query over blocks that the view does not hold all.
func (c *call) fetchLogs(query *logQuery, blocks chain.Range, hash anchor) error {
	coverage := c.view.Coverage()
	m := &mixedRun{logRun: logRun{call: c, query: query, blocks: blocks}, start: len(c.out.buf)}
	for _, r := range coverage {
		if held := r.Intersect(blocks); !held.Empty() {
			m.held = append(m.held, held)
			c.touch(held)
		}
	}
	f := fetch{call: c, parts: chain.PartReceipts | chain.PartTransactionHashes, hash: hash, restart: m.restart, answer: m.gather}
	runs := missing(blocks, coverage)
	err := c.hintAt(f.run(runs), blocks.From, runs)
	if m.over = errors.Is(err, errEnough); err != nil && !m.over {
		return err
	}

	// From here on the query is like any other, and has the time that any other has.
	ctx, cancel := context.WithTimeout(c.context(), c.limits.RequestTime)
	defer cancel()
	m.ctx = ctx
	err = m.run()
	if errors.Is(err, context.DeadlineExceeded) && c.context().Err() != nil { // the fetch has left less
		return &HistoryError{jsonrpc.ReasonHistoryTime, err}
	}
	return err
}

// restart drops what came from an earlier source.
func (m *mixedRun) restart() {
	m.gathered = m.gathered[:0]
	m.out.buf = m.out.buf[:m.start]
}

// gather adds the logs of a fetched block.
func (m *mixedRun) gather(b *chain.Block) error {
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
		bytes, err := m.write(&m.found)
		if err != nil {
			return err
		}
		m.gathered = append(m.gathered, gatheredLog{b.Number, bytes})
		if len(m.gathered) > m.limits.MaxLogResults || m.tooLong(len(m.out.buf)) {
			return errEnough
		}
	}
	return m.context().Err()
}

// write appends a log to the response, whatever its place in the answer.
func (m *mixedRun) write(l *chain.FoundLog) (bytes int, err error) {
	if err := m.out.grow(m.context, logSize(&l.Log)); err != nil {
		return 0, err
	}
	before := len(m.out.buf)
	m.out.buf = m.encode.AppendLog(append(m.out.buf, ','), l)
	return len(m.out.buf) - before, nil
}

// run adds the logs of the retained blocks, in the lane when that is much work.
func (m *mixedRun) run() error {
	var cost uint64
	for _, held := range m.held {
		of, err := m.view.LogsCost(m.ctx, held, &m.filter)
		if err != nil {
			return fmt.Errorf("plan log query over %s: %w", held, asMissingLogs(err))
		}
		if cost += of; cost >= laneCost {
			// The memory comes first: a query that waits for it must not hold up the lane.
			if err := m.out.reserve(m.ctx); err != nil {
				return err
			}
			return m.lane.do(m.ctx, m.join)
		}
	}
	return m.join()
}

// join queries the retained blocks and passes all logs in chain order, so that the first one beyond a limit is the same as if all
// blocks were retained.
func (m *mixedRun) join() error {
	m.length = m.start
	at, rest := m.start, m.gathered
	pass := func(below uint64) error {
		for ; len(rest) > 0 && rest[0].block < below; rest = rest[1:] {
			if err := m.pass(rest[0].block, rest[0].bytes); err != nil {
				return err
			}
			m.keep(piece{at, at + rest[0].bytes})
			at += rest[0].bytes
		}
		return nil
	}
	for _, held := range m.held {
		if err := pass(held.From); err != nil {
			return err
		}
		from := len(m.out.buf)
		if err := m.view.Logs(m.ctx, held, &m.filter, m.add); err != nil {
			return fmt.Errorf("query logs of %s: %w", held, asMissingLogs(err))
		}
		m.keep(piece{from, len(m.out.buf)})
	}
	if err := pass(m.blocks.To); err != nil {
		return err
	}
	m.arrange()
	return nil
}

// add adds a log of a retained block.
func (m *mixedRun) add(l *chain.FoundLog) error {
	if err := m.mayAdd(l.Block.Number); err != nil {
		return err
	}
	bytes, err := m.write(l)
	if err != nil {
		return err
	}
	if m.over = m.over || m.tooLong(len(m.out.buf)); m.over {
		m.out.buf = m.out.buf[:len(m.out.buf)-bytes]
	}
	return m.added(l.Block.Number, bytes)
}

// pass counts a log of a fetched block.
func (m *mixedRun) pass(block uint64, bytes int) error {
	if err := m.mayAdd(block); err != nil {
		return err
	}
	return m.added(block, bytes)
}

// added counts a log whose turn it was.
func (m *mixedRun) added(block uint64, bytes int) error {
	m.count++
	if m.length += bytes; m.tooLong(m.length) {
		return &oversizeError{fitting: m.before(block)}
	}
	return nil
}

// tooLong tells whether a response of some bytes leaves no room for its end.
func (m *mixedRun) tooLong(bytes int) bool { return bytes+len("]") > m.out.limit }

// keep makes a piece the next one of the answer.
func (m *mixedRun) keep(s piece) {
	switch n := len(m.pieces); {
	case s.from == s.to:
	case n > 0 && m.pieces[n-1].to == s.from:
		m.pieces[n-1].to = s.to
	default:
		m.pieces = append(m.pieces, s)
	}
}

// arrange puts the pieces in order and ends the answer. Like growing it needs a second buffer for a moment.
func (m *mixedRun) arrange() {
	buf := m.out.buf
	if len(m.pieces) > 1 {
		ordered := append(m.out.memory.get(len(buf)+len("]")), buf[:m.start]...)
		for _, s := range m.pieces {
			ordered = append(ordered, buf[s.from:s.to]...)
		}
		m.out.memory.put(buf)
		buf = ordered
	}
	if len(m.pieces) == 0 {
		buf = append(buf, ',')
	}
	buf[m.start] = '['
	m.out.buf = append(buf, ']')
}
