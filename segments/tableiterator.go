package segments

import (
	"context"
	"fmt"
	"slices"

	"github.com/leani-go/leani/codec"
)

// mergeInput is a hash table of one input; offset is added to its positions.
type mergeInput struct {
	index  *Index
	column *column
	offset uint32
	bound  uint64
}

// tableIterator walks a hash table in the order of its terms.
type tableIterator struct {
	mergeInput
	cursor ListCursor
	next   uint32 // page to read
	table  tableMemo
	run    pageRun // of page
	page   tablePage
	terms  []uint32
	i      int
	buf    []uint32
}

// advance moves to the next term and tells whether there is one.
func (it *tableIterator) advance() (bool, error) {
	it.i++
	for it.i >= len(it.terms) {
		if it.next >= it.column.pages {
			return false, nil
		}
		if err := it.load(); err != nil {
			return false, err
		}
		it.next++
		it.i = 0
	}
	return true, nil
}

// load reads and decodes page it.next.
func (it *tableIterator) load() (err error) {
	if it.run, err = it.index.page(it.column, it.next, nil, &it.table); err != nil {
		return err
	}
	pages := uint64(it.column.pages)
	if err := it.page.parse(&it.run, pages); err != nil {
		return it.index.damaged(&it.run, err)
	}
	it.terms = slices.Grow(it.terms[:0], it.page.terms)[:it.page.terms]
	if err := codec.DecodeEliasFano(it.terms, it.page.list, it.page.start, it.page.shift, it.page.unary); err != nil {
		return it.index.damaged(&it.run, err)
	}
	if !ascending(it.terms) {
		return it.index.damaged(&it.run, errTablePage)
	}
	if n := len(it.terms); n > 0 && (pageOf(it.terms[0], pages) != uint64(it.next) || pageOf(it.terms[n-1], pages) != uint64(it.next)) {
		return it.index.damaged(&it.run, errTablePage)
	}
	return nil
}

func (it *tableIterator) term() uint32 { return it.terms[it.i] }

// list reads the list of the current term.
func (it *tableIterator) list() (positions, error) {
	p, err := it.page.at(it.i, it.bound, it.buf[:0])
	if err == nil && !it.index.reaches(&p) {
		err = errTablePage
	}
	if err != nil {
		return positions{}, it.index.damaged(&it.run, err)
	}
	if p.inline != nil {
		it.buf = p.inline
	}
	return p, nil
}

// each yields the positions of the current term, in runs.
func (it *tableIterator) each(yield func([]uint32)) error {
	p, err := it.list()
	if err != nil {
		return err
	}
	if p.inline != nil {
		yield(p.inline)
		return nil
	}
	c := &it.cursor
	c.x = it.index
	c.reset(List{p.count, p})
	read := uint64(0)
	for target := uint32(0); ; {
		ok, err := c.Seek(target)
		if err != nil {
			return err
		}
		if !ok {
			break
		}
		v := c.Values()
		yield(v)
		read += uint64(len(v))
		target = v[len(v)-1] + 1
	}
	if read != p.count {
		return it.index.damaged(&it.run, fmt.Errorf("%w: list of %d positions holds %d", errTablePage, p.count, read))
	}
	return nil
}

// walkTerms yields every distinct term of the inputs in order, with the iterators that stand at it.
func walkTerms(ctx context.Context, inputs []mergeInput, yield func(term uint32, at []*tableIterator) error) error {
	var live []*tableIterator
	for i := range inputs {
		it := &tableIterator{mergeInput: inputs[i], i: -1}
		it.index = it.index.uncached()
		ok, err := it.advance()
		if err != nil {
			return err
		}
		if ok {
			live = append(live, it)
		}
	}
	var at []*tableIterator
	for n := 0; len(live) > 0; n++ {
		if n%1024 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		term := live[0].term()
		for _, it := range live[1:] {
			term = min(term, it.term())
		}
		at = at[:0]
		for _, it := range live {
			if it.term() == term {
				at = append(at, it)
			}
		}
		if err := yield(term, at); err != nil {
			return err
		}
		kept := live[:0]
		for _, it := range live {
			if it.term() == term {
				ok, err := it.advance()
				if err != nil {
					return err
				}
				if !ok {
					continue
				}
			}
			kept = append(kept, it)
		}
		live = kept
	}
	return nil
}
