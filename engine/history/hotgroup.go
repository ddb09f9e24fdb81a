package history

import (
	"math/bits"
	"slices"
	"sync/atomic"

	"github.com/leani-go/leani/engine/history/hotblock"
)

// maximumHotGroup is the number of blocks of a group: the bits of a mask.
const maximumHotGroup = 32

// hotGroup is an aligned run of hot blocks with the terms of all of them, so that a query looks at a few groups
// instead of some hundred blocks. Sets share the groups whose blocks did not change. About 5 KiB a full block.
type hotGroup struct {
	entries []*hotEntry
	terms   atomic.Pointer[groupTerms] // nil until a query was through the group
}

// groupTerms says which blocks have a term. It is immutable.
type groupTerms struct {
	terms []uint32 // rising
	masks []uint32 // for each term, a bit for each block
}

// newGroupTerms merges the terms of blocks, of which nil ones have no logs.
func newGroupTerms(blocks []*hotblock.Logs) *groupTerms {
	total := 0
	for _, l := range blocks {
		if l != nil {
			total += len(l.Terms())
		}
	}
	pairs := make([]uint64, 0, total) // term and block
	for i, l := range blocks {
		if l == nil {
			continue
		}
		for _, term := range l.Terms() {
			pairs = append(pairs, uint64(term)<<32|uint64(i))
		}
	}
	slices.Sort(pairs)
	g := &groupTerms{}
	for _, p := range pairs {
		term, bit := uint32(p>>32), uint32(1)<<uint32(p)
		if n := len(g.terms); n > 0 && g.terms[n-1] == term {
			g.masks[n-1] |= bit
			continue
		}
		g.terms, g.masks = append(g.terms, term), append(g.masks, bit)
	}
	g.terms, g.masks = slices.Clip(g.terms), slices.Clip(g.masks)
	return g
}

// blocks are those, as a mask, in which every clause has a term.
func (g *groupTerms) blocks(clauses [][]uint32) uint32 {
	mask := ^uint32(0)
	for _, c := range clauses {
		var any uint32
		for _, term := range c {
			if i := hotblock.Nearest(g.terms, term); i < len(g.terms) && g.terms[i] == term {
				any |= g.masks[i]
			}
		}
		if mask &= any; mask == 0 {
			break
		}
	}
	return mask
}

// groupsOf cuts a set into full aligned groups of size blocks, taking those of an older set that are the same.
func (set *hotSet) groupsOf(old *hotSet, size uint64) {
	if len(set.blocks) == 0 {
		return
	}
	first := (set.span.From + size - 1) / size * size
	set.grouped = first
	for at := first; at+size <= set.span.To; at += size {
		entries := set.blocks[at-set.span.From:][:size]
		if g := old.groupAt(at, size); g != nil && slices.Equal(g.entries, entries) {
			set.groups = append(set.groups, g)
			continue
		}
		set.groups = append(set.groups, &hotGroup{entries: entries})
	}
}

// groupAt is the group that begins with a block, nil when there is none.
func (set *hotSet) groupAt(n, size uint64) *hotGroup {
	if set == nil || n < set.grouped || (n-set.grouped)%size != 0 || (n-set.grouped)/size >= uint64(len(set.groups)) {
		return nil
	}
	return set.groups[(n-set.grouped)/size]
}

// candidates gives the blocks of a group that can have matches.
func (v *View) candidates(g *hotGroup, terms *hotTerms) ([]*hotEntry, error) {
	t := g.terms.Load()
	if t == nil {
		logs := make([]*hotblock.Logs, len(g.entries))
		for i, e := range g.entries {
			if e.Logs == 0 {
				continue
			}
			var err error
			if logs[i], err = v.hotLogs(e); err != nil {
				return nil, err
			}
		}
		t = newGroupTerms(logs)
		g.terms.Store(t)
	}
	mask := t.blocks(terms.clauses)
	found := make([]*hotEntry, 0, bits.OnesCount32(mask))
	for i, e := range g.entries {
		if mask>>i&1 == 1 {
			found = append(found, e)
		}
	}
	return found, nil
}
