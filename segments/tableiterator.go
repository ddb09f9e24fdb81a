package segments

import (
	"context"
	"fmt"
	"slices"

	"github.com/leani-go/leani/codec"
)

// indexTable is one hash table of an index.
type indexTable struct {
	index  *Index
	column *column
	bound  uint64 // of its positions
	offset uint32 // what a merge adds to them
}

// tables are the hash tables of an index: log terms, transactions, blocks.
func (x *Index) tables() [3]indexTable {
	info := &x.footer.info
	return [3]indexTable{
		{index: x, column: x.terms, bound: info.Logs},
		{index: x, column: x.transactions, bound: info.Transactions},
		{index: x, column: x.blocks, bound: info.Blocks()},
	}
}

// tableIterator walks a hash table in the order of its terms, past the cache. It holds one page of the
// table and one of the postings. What it yields in all is bounded by the size of the file: lists share
// no bytes.
type tableIterator struct {
	indexTable
	table  tableMemo
	run    pageRun // of page
	page   tablePage
	next   uint32   // page to read
	terms  []uint32 // of page
	i      int      // the current term
	end    int      // where the lists of the page end that were read
	buf    []uint32
	cursor ListCursor
	long   uint64 // positions in long lists that were passed
}

// newTableIterator stands before the first term.
func newTableIterator(t indexTable) *tableIterator {
	t.index = t.index.uncached()
	return &tableIterator{indexTable: t, cursor: ListCursor{x: t.index}, i: -1}
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
		it.i, it.end = 0, 0
	}
	return true, nil
}

// skipPage makes advance go on behind a page that it could not read.
func (it *tableIterator) skipPage() {
	it.terms, it.i, it.run = it.terms[:0], -1, pageRun{}
	it.next++
}

// load reads and decodes page it.next.
func (it *tableIterator) load() (err error) {
	if it.run.raw == nil {
		it.run, err = it.index.page(it.column, it.next, nil, &it.table)
	} else {
		it.run, err = it.index.pageAfter(it.column, &it.run, nil, &it.table)
	}
	if err != nil {
		return err
	}
	pages := uint64(it.column.pages)
	if err := it.page.parse(it.run.raw, it.next, it.column.pages); err != nil {
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

// list reads the list of the current term. It may be called once for a term.
func (it *tableIterator) list() (positions, error) {
	p, err := it.page.at(it.i, it.bound, it.buf[:0])
	switch {
	case err != nil:
	case p.end > 0 && p.start != it.end:
		err = errTablePage
	case p.inline == nil:
		it.long += p.count
		if !it.index.reaches(it.column, &p) || it.long > it.index.postings.rows {
			err = errTablePage
		}
	default:
		it.buf = p.inline
	}
	if err != nil {
		return positions{}, it.index.damaged(&it.run, fmt.Errorf("term %08x: %w", it.term(), err))
	}
	if p.end > 0 {
		it.end = p.end
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
func walkTerms(ctx context.Context, inputs []indexTable, yield func(term uint32, at []*tableIterator) error) error {
	var live []*tableIterator
	for i := range inputs {
		it := newTableIterator(inputs[i])
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
