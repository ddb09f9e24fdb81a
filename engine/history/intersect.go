package history

import (
	"math/bits"
	"slices"

	"github.com/leani-go/leani/chain"
	"github.com/leani-go/leani/segments"
)

// A query is a conjunction of clauses, each a union of posting lists: the addresses, and the
// alternatives at each topic position. The clause with the fewest positions leads; the others only
// drop what it proposes. Rows are read for what is left.

// clause is the union of the lists of one part of a filter.
type clause struct {
	lists []*segments.ListCursor
	count uint64
}

// findClauses looks up the terms of a filter, fewest positions first. possible is false when a clause
// has no position at all.
func (p *logPart) findClauses(f *chain.LogFilter, access *segments.Access) (possible bool, err error) {
	if len(f.Addresses) > 0 {
		c := clause{}
		for i := range f.Addresses {
			if err := c.add(p.index, segments.AddressTerm(&f.Addresses[i]), access); err != nil {
				return false, err
			}
		}
		if c.count == 0 {
			return false, nil
		}
		p.clauses = append(p.clauses, c)
	}
	if len(f.Topics) > chain.MaximumTopics {
		return false, nil
	}
	for k, alternatives := range f.Topics {
		if len(alternatives) == 0 {
			continue
		}
		c := clause{}
		for i := range alternatives {
			if err := c.add(p.index, segments.TopicTerm(k, &alternatives[i]), access); err != nil {
				return false, err
			}
		}
		if c.count == 0 {
			return false, nil
		}
		p.clauses = append(p.clauses, c)
	}
	slices.SortStableFunc(p.clauses, func(a, b clause) int {
		if a.count < b.count {
			return -1
		}
		return int(min(a.count-b.count, 1))
	})
	return true, nil
}

func (c *clause) add(x *segments.Index, term uint32, access *segments.Access) error {
	list, err := x.Find(term, access)
	if err != nil || list.Count == 0 {
		return err
	}
	c.lists = append(c.lists, x.Open(list, access))
	c.count += list.Count
	return nil
}

const (
	// windowRows is how many positions are worked on at once: a bit set of them stays in the
	// innermost cache.
	windowRows = 1 << 16
	// sortBelow is the number of positions up to which sorting beats a bit set.
	sortBelow = 64
)

// window collects the positions that the leading clause proposes.
type window struct {
	positions []uint32
	bits      []uint64
	keep      []bool
}

// intersect yields the rows of a part on which all clauses agree.
func (r *logRun) intersect(p *logPart) error {
	var w window
	lead := &p.clauses[0]
	end := p.to - p.base
	for at := p.from - p.base; at < end; {
		first, ok, err := lead.seek(uint32(at))
		if err != nil {
			return err
		}
		if !ok || uint64(first) >= end {
			return nil
		}
		stop := min(uint64(first)&^(windowRows-1)+windowRows, end)
		if err := w.collect(lead, first, uint32(stop)); err != nil {
			return err
		}
		for i := 1; i < len(p.clauses) && len(w.positions) > 0; i++ {
			if err := w.restrict(&p.clauses[i]); err != nil {
				return err
			}
		}
		if err := r.rows(p, w.positions); err != nil {
			return err
		}
		if r.ctx.Err() != nil {
			return r.ctx.Err()
		}
		at = stop
	}
	return nil
}

// seek finds the first position of the clause at or above target. Lists that have ended are dropped.
func (c *clause) seek(target uint32) (first uint32, ok bool, err error) {
	live := c.lists[:0]
	for _, l := range c.lists {
		more, err := l.Seek(target)
		if err != nil {
			return 0, false, err
		}
		if !more {
			continue
		}
		if v := l.Values()[0]; !ok || v < first {
			first, ok = v, true
		}
		live = append(live, l)
	}
	c.lists = live
	return first, ok, nil
}

// collect takes the positions of the clause in [from, to), sorted and without repeats. All lists stand
// at their first position from from on.
func (w *window) collect(c *clause, from, to uint32) error {
	w.positions = w.positions[:0]
	sources := 0
	for _, l := range c.lists {
		if l.Values()[0] >= to {
			continue
		}
		sources++
		for {
			v := l.Values()
			if v[len(v)-1] < to {
				w.positions = append(w.positions, v...)
			} else {
				n, _ := slices.BinarySearch(v, to)
				w.positions = append(w.positions, v[:n]...)
				break
			}
			more, err := l.Seek(v[len(v)-1] + 1)
			if err != nil {
				return err
			}
			if !more {
				break
			}
		}
	}
	if sources > 1 {
		w.unite(from &^ (windowRows - 1))
	}
	return nil
}

// unite sorts the collected positions, which lie within windowRows of base, and drops repeats.
func (w *window) unite(base uint32) {
	if len(w.positions) <= sortBelow {
		slices.Sort(w.positions)
		w.positions = slices.Compact(w.positions)
		return
	}
	if w.bits == nil {
		w.bits = make([]uint64, windowRows/64)
	}
	for _, p := range w.positions {
		w.bits[(p-base)>>6] |= 1 << ((p - base) & 63)
	}
	w.positions = w.positions[:0]
	for i, b := range w.bits {
		for ; b != 0; b &= b - 1 {
			w.positions = append(w.positions, base+uint32(i*64+bits.TrailingZeros64(b)))
		}
		w.bits[i] = 0
	}
}

// restrict drops the positions that the clause does not have.
func (w *window) restrict(c *clause) error {
	w.keep = slices.Grow(w.keep[:0], len(w.positions))[:len(w.positions)]
	clear(w.keep)
	live := c.lists[:0]
	for _, l := range c.lists {
		more, err := l.Mark(w.positions, w.keep)
		if err != nil {
			return err
		}
		if more {
			live = append(live, l)
		}
	}
	c.lists = live
	kept := w.positions[:0]
	for i, p := range w.positions {
		if w.keep[i] {
			kept = append(kept, p)
		}
	}
	w.positions = kept
	return nil
}
