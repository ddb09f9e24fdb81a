package bench

import (
	"math/bits"
	"slices"
)

// histogram counts the logs of the whole corpus.
type histogram struct {
	contracts []uint32
	approvals []uint32 // by token
	senders   []uint32 // transfers by holder in topic 1
	involved  []uint32 // logs by holder in topic 1
	receivers []uint32 // logs by holder in topic 2
}

func (c *Corpus) histogram() *histogram {
	h := &histogram{
		contracts: make([]uint32, c.contracts()), approvals: make([]uint32, corpusTokens),
		senders: make([]uint32, c.accounts()), involved: make([]uint32, c.accounts()), receivers: make([]uint32, c.accounts()),
	}
	var s blockSketch
	for n := range c.Blocks {
		c.sketch(n, &s)
		for i := range s.logs {
			l := &s.logs[i]
			h.contracts[l.contract]++
			if l.event == eventApproval {
				h.approvals[l.contract]++
			}
			if w := l.words[0]; w&wordKind == wordHolder {
				h.involved[w&^wordKind]++
				if l.event == eventTransfer || l.event == eventMint {
					h.senders[w&^wordKind]++
				}
			}
			if w := l.words[1]; w&wordKind == wordHolder {
				h.receivers[w&^wordKind]++
			}
		}
	}
	return h
}

// closest finds the value that occurs about so many times, and not in taken.
func closest(counts []uint32, target int, taken []int) int {
	best, distance := 0, -1
	for i, n := range counts {
		if d := max(int(n)-target, target-int(n)); n > 0 && (distance < 0 || d < distance) && !slices.Contains(taken, i) {
			best, distance = i, d
		}
	}
	return best
}

// spread finds values that occur about target times each, one of them for each target.
func spread(counts []uint32, targets ...int) []int {
	var out []int
	for _, t := range targets {
		out = append(out, closest(counts, t, out))
	}
	return out
}

// count walks over the corpus, counts the logs of all queries and cuts their ranges.
func (c *Corpus) count(list []wanted) {
	m := newMatcher(list)
	var s blockSketch
	for n := range c.Blocks {
		if active := m.active(list, n); active.any() {
			c.sketch(n, &s)
			m.count(active, s.logs)
			m.settle(list, n)
		}
	}
}

// querySet is a set of positions in a list of queries.
type querySet [2]uint64

func (s *querySet) add(i int)              { s[i/64] |= 1 << (i % 64) }
func (s querySet) any() bool               { return s[0]|s[1] != 0 }
func (s querySet) and(o querySet) querySet { return querySet{s[0] & o[0], s[1] & o[1]} }
func (s querySet) or(o querySet) querySet  { return querySet{s[0] | o[0], s[1] | o[1]} }

// each calls f with the positions.
func (s querySet) each(f func(i int)) {
	for k, w := range s {
		for ; w != 0; w &= w - 1 {
			f(64*k + bits.TrailingZeros64(w))
		}
	}
}

// clauseSet tells which queries accept a value at one place of a log.
type clauseSet[V comparable] struct {
	free querySet // queries without the clause
	with map[V]querySet
}

func newClauseSet[V comparable](list []wanted, values func(*wanted) []V) *clauseSet[V] {
	c := &clauseSet[V]{with: make(map[V]querySet)}
	for i := range list {
		accepted := values(&list[i])
		if len(accepted) == 0 {
			c.free.add(i)
		}
		for _, v := range accepted {
			set := c.with[v]
			set.add(i)
			c.with[v] = set
		}
	}
	return c
}

func (c *clauseSet[V]) accept(v V) querySet { return c.free.or(c.with[v]) }

// matcher matches logs against all queries at once.
type matcher struct {
	contracts *clauseSet[contract]
	events    *clauseSet[event]
	words     [3]*clauseSet[word]
	inBlock   []int // logs of the current block, by query
	ended     []bool
}

func newMatcher(list []wanted) *matcher {
	m := &matcher{
		contracts: newClauseSet(list, func(w *wanted) []contract { return w.contracts }),
		events:    newClauseSet(list, func(w *wanted) []event { return w.events }),
		inBlock:   make([]int, len(list)), ended: make([]bool, len(list)),
	}
	for k := range m.words {
		m.words[k] = newClauseSet(list, func(w *wanted) []word { return w.words[k] })
	}
	return m
}

// active are the queries that block n can add to.
func (m *matcher) active(list []wanted, n uint64) (set querySet) {
	for i := range list {
		if w := &list[i]; !m.ended[i] && w.blocks.Contains(n) && !w.neverAddress && !w.neverTopic1 {
			set.add(i)
		}
	}
	return set
}

func (m *matcher) count(active querySet, logs []sketch) {
	for i := range logs {
		l := &logs[i]
		set := active.and(m.contracts.accept(l.contract))
		if !set.any() {
			continue
		}
		set = set.and(m.events.accept(l.event))
		for k, w := range l.words {
			if set.any() {
				set = set.and(m.words[k].accept(w))
			}
		}
		set.each(func(i int) { m.inBlock[i]++ })
	}
}

// settle adds the logs of block n to the queries, and ends those that would get too many.
func (m *matcher) settle(list []wanted, n uint64) {
	for i := range list {
		w := &list[i]
		if w.cut && w.count+m.inBlock[i] > resultLimit {
			w.blocks.To, m.ended[i] = n, true
		} else {
			w.count += m.inBlock[i]
		}
	}
	clear(m.inBlock)
}
