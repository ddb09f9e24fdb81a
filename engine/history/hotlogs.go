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

// lead finds the clause with the fewest rows in a block. all is set when every row is a candidate.
func (t *hotTerms) lead(l *hotblock.Logs) (clause []uint32, count int, all bool) {
	if len(t.clauses) == 0 {
		return nil, l.Len(), true
	}
	for i, c := range t.clauses {
		n := 0
		for _, term := range c {
			n += len(l.Find(term))
		}
		if i == 0 || n < count {
			clause, count = c, n
		}
		if count == 0 {
			break
		}
	}
	return clause, count, false
}

// planHot finds out what the blocks of the hot tier cost.
func (v *View) planHot(ctx context.Context, r chain.Range, f *chain.LogFilter) error {
	v.plan.hot = v.hot.cut(r)
	if len(v.plan.hot) == 0 {
		return nil
	}
	v.plan.terms = newHotTerms(f)
	if v.plan.terms.never {
		v.plan.hot = nil
		return nil
	}
	for i, e := range v.plan.hot {
		if i%checkEvery == checkEvery-1 && ctx.Err() != nil {
			return ctx.Err()
		}
		if e.Logs == 0 {
			continue
		}
		l, err := v.hotLogs(e)
		if err != nil {
			return err
		}
		_, n, _ := v.plan.terms.lead(l)
		v.plan.cost += uint64(n)
	}
	return nil
}

// hotLogs yields the matching logs of hot blocks in order.
func (r *logRun) hotLogs(blocks []*hotEntry, terms *hotTerms) error {
	var found chain.FoundLog
	var rows []uint32
	for _, e := range blocks {
		if r.ctx.Err() != nil {
			return r.ctx.Err()
		}
		if e.Logs == 0 {
			continue
		}
		l, err := r.view.hotLogs(e)
		if err != nil {
			return err
		}
		clause, count, all := terms.lead(l)
		if count == 0 {
			continue
		}
		at := hotPosition{entry: e, found: &found}
		if all {
			for row := range uint32(l.Len()) {
				if err := r.hotRow(&at, l, row); err != nil {
					return err
				}
			}
			continue
		}
		lists := 0
		rows = rows[:0]
		for _, term := range clause {
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
