package history

import (
	"context"
	"slices"

	"github.com/ethereum/go-ethereum/common"

	"github.com/leani-go/leani/chain"
	"github.com/leani-go/leani/engine/history/hotblock"
	"github.com/leani-go/leani/segments"
)

// hotTerms are the clauses of a filter as terms.
type hotTerms struct {
	clauses [][]uint32
	never   bool // no log can match
}

func newHotTerms(f *chain.LogFilter) (t hotTerms) {
	t.never = len(f.Topics) > chain.MaximumTopics
	if t.never {
		return t
	}
	if len(f.Addresses) > 0 {
		c := make([]uint32, len(f.Addresses))
		for i := range f.Addresses {
			c[i] = segments.AddressTerm(&f.Addresses[i])
		}
		t.clauses = append(t.clauses, c)
	}
	for k, alternatives := range f.Topics {
		if len(alternatives) == 0 {
			continue
		}
		c := make([]uint32, len(alternatives))
		for i := range alternatives {
			c[i] = segments.TopicTerm(k, &alternatives[i])
		}
		t.clauses = append(t.clauses, c)
	}
	for _, c := range t.clauses {
		slices.Sort(c)
	}
	return t
}

// lead finds the clause with the fewest rows in a block; -1 stands for all rows.
func (t *hotTerms) lead(l *hotblock.Logs) (clause, count int) {
	clause, count = -1, l.Len()
	for i, c := range t.clauses {
		n := 0
		for _, term := range c {
			n += len(l.Find(term))
		}
		if i == 0 || n < count {
			clause, count = i, n
		}
		if count == 0 {
			break
		}
	}
	return clause, count
}

// hotPart is a hot block that can have matches, and the clause that leads in it.
type hotPart struct {
	entry  *hotEntry
	clause int
}

// planHot finds out what the blocks of the hot tier cost.
func (v *View) planHot(ctx context.Context, r chain.Range, f *chain.LogFilter) error {
	blocks := v.hot.cut(r)
	if len(blocks) == 0 {
		return nil
	}
	v.plan.terms = newHotTerms(f)
	if v.plan.terms.never {
		return nil
	}
	size := v.store.opts.hotGroup
	for len(blocks) > 0 {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		// A whole group at a time where a filter names terms.
		some, rest := blocks[:1], blocks[1:]
		if g := v.hot.groupAt(blocks[0].Number, size); g != nil && uint64(len(blocks)) >= size && len(v.plan.terms.clauses) > 0 {
			var err error
			if some, err = v.candidates(g, &v.plan.terms); err != nil {
				return err
			}
			rest = blocks[size:]
		}
		if err := v.planBlocks(some); err != nil {
			return err
		}
		blocks = rest
	}
	return nil
}

// planBlocks adds hot blocks that can have matches to the plan.
func (v *View) planBlocks(blocks []*hotEntry) error {
	for _, e := range blocks {
		if e.Logs == 0 {
			continue
		}
		l, err := v.hotLogs(e)
		if err != nil {
			return err
		}
		if clause, n := v.plan.terms.lead(l); n > 0 {
			v.plan.hot = append(v.plan.hot, hotPart{e, clause})
			v.plan.cost += uint64(n)
		}
	}
	return nil
}

// hotLogs yields the matching logs of hot blocks in order.
func (r *logRun) hotLogs(parts []hotPart, terms *hotTerms) error {
	var found chain.FoundLog
	var rows []uint32
	for _, p := range parts {
		if r.ctx.Err() != nil {
			return r.ctx.Err()
		}
		l, err := r.view.hotLogs(p.entry)
		if err != nil {
			return err
		}
		at := hotPosition{entry: p.entry, found: &found}
		if p.clause < 0 {
			for row := range uint32(l.Len()) {
				if err := r.hotRow(&at, l, row); err != nil {
					return err
				}
			}
			continue
		}
		lists := 0
		rows = rows[:0]
		for _, term := range terms.clauses[p.clause] {
			if list := l.Find(term); len(list) > 0 {
				rows = append(rows, list...)
				lists++
			}
		}
		if lists > 1 {
			slices.Sort(rows)
			rows = slices.Compact(rows)
		}
		for _, row := range rows {
			if err := r.hotRow(&at, l, row); err != nil {
				return err
			}
		}
	}
	return nil
}

// hotPosition is what consecutive rows of one block share.
type hotPosition struct {
	entry  *hotEntry
	found  *chain.FoundLog
	hashes *hotblock.Hashes // loaded for the first match
	hash   common.Hash
}

// hotRow yields a row of a hot block if it matches.
func (r *logRun) hotRow(at *hotPosition, l *hotblock.Logs, row uint32) (err error) {
	if r.visits++; r.visits%checkEvery == 0 && r.ctx.Err() != nil {
		return r.ctx.Err()
	}
	transaction := l.Row(row, &at.found.Log)
	if !r.matcher.Match(&at.found.Log) {
		return nil
	}
	if at.hashes == nil {
		if at.hashes, err = r.view.hotHashes(at.entry); err != nil {
			return err
		}
		at.found.Block = &at.entry.BlockRef
	}
	at.hash = at.hashes.At(transaction)
	at.found.TransactionHash, at.found.TransactionIndex, at.found.LogIndex = &at.hash, transaction, row
	return r.yield(at.found)
}
