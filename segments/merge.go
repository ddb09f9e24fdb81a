package segments

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/leani-go/leani/codec"
)

// ErrNotAdjacent reports inputs of a merge that do not follow one another.
var ErrNotAdjacent = errors.New("index files do not cover adjacent ranges")

// MergeIndexes writes one index file that covers what the inputs cover, which must be adjacent and in
// order. Memory does not grow with the inputs but for page tables. It stops with the context's error
// between terms.
func MergeIndexes(ctx context.Context, out io.Writer, inputs []*Index) (Info, [32]byte, error) {
	if len(inputs) == 0 {
		return Info{}, [32]byte{}, errors.New("merge index files: no input")
	}
	info := inputs[0].Info()
	for _, x := range inputs[1:] {
		next := x.Info()
		if next.From != info.To || next.FirstParent != info.LastHash || next.Profile != info.Profile {
			return Info{}, [32]byte{}, fmt.Errorf("%w: %s after block %d", ErrNotAdjacent, x.name, info.To-1)
		}
		info.To, info.LastHash = next.To, next.LastHash
		info.Logs += next.Logs
		info.Transactions += next.Transactions
	}
	if info.Logs > maximumRows || info.Transactions > maximumRows {
		return Info{}, [32]byte{}, fmt.Errorf("merge index files: %d logs and %d transactions pass the limit of %d", info.Logs, info.Transactions, maximumRows)
	}
	var logs, transactions, blocks []mergeInput
	var logAt, transactionAt, blockAt uint64
	for _, x := range inputs {
		i := &x.footer.info
		logs = append(logs, mergeInput{x, x.terms, uint32(logAt), i.Logs})
		transactions = append(transactions, mergeInput{x, x.transactions, uint32(transactionAt), i.Transactions})
		blocks = append(blocks, mergeInput{x, x.blocks, uint32(blockAt), i.Blocks()})
		logAt += i.Logs
		transactionAt += i.Transactions
		blockAt += i.Blocks()
	}
	pages, err := countTerms(ctx, logs, info.Logs)
	if err != nil {
		return Info{}, [32]byte{}, err
	}
	w := newIndexWriter(out, info.Logs, pages)
	if err := mergeTables(ctx, &w.terms, logs); err != nil {
		return Info{}, [32]byte{}, err
	}
	w.finishTerms()
	for _, l := range []struct {
		id     columnID
		inputs []mergeInput
		rows   uint64
	}{{columnTxLocator, transactions, info.Transactions}, {columnBlockLocator, blocks, info.Blocks()}} {
		t := tableWriter{column: w.file.addColumn(l.id), pages: locatorPages(l.rows), positions: l.rows}
		if err := mergeTables(ctx, &t, l.inputs); err != nil {
			return Info{}, [32]byte{}, err
		}
		t.finish()
	}
	digest, err := w.file.finish(info)
	return info, digest, err
}

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
	next  uint32 // page to read
	page  tablePage
	terms []uint32
	i     int
	buf   []uint32
}

// advance moves to the next term and tells whether there is one.
func (it *tableIterator) advance() (bool, error) {
	it.i++
	for it.i >= len(it.terms) {
		if it.next >= it.column.pages {
			return false, nil
		}
		// Merges read everything once: past the cache, so that queries keep their pages.
		e, err := it.index.entry(it.column, it.next, nil)
		if err != nil {
			return false, err
		}
		raw, err := it.index.readStored(e, int(it.next))
		if err != nil {
			return false, err
		}
		run := pageRun{raw: raw, number: it.next, offset: e.offset}
		if err := it.page.parse(run, uint64(it.next), uint64(it.column.pages)); err != nil {
			return false, it.index.damaged(run, err)
		}
		if cap(it.terms) < it.page.terms {
			it.terms = make([]uint32, it.page.terms)
		}
		it.terms = it.terms[:it.page.terms]
		if err := codec.DecodeEliasFano(it.terms, it.page.list, it.page.start, it.page.shift, it.page.unary); err != nil {
			return false, it.index.damaged(run, err)
		}
		for k := range it.terms {
			if pageOf(it.terms[k], uint64(it.column.pages)) != uint64(it.next) || (k > 0 && it.terms[k-1] >= it.terms[k]) {
				return false, it.index.damaged(run, errTablePage)
			}
		}
		it.next++
		it.i = 0
	}
	return true, nil
}

func (it *tableIterator) term() uint32 { return it.terms[it.i] }

// list reads the list of the current term.
func (it *tableIterator) list() (positions, error) {
	p, err := it.page.at(it.i, it.bound, it.buf[:0])
	if err != nil {
		return positions{}, it.index.damaged(it.page.run, err)
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
	c := it.index.Open(List{p.count, p}, nil)
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
		return it.index.damaged(it.page.run, fmt.Errorf("%w: list of %d positions holds %d", errTablePage, p.count, read))
	}
	return nil
}

// walkTerms yields every distinct term of the inputs in order, with the iterators that stand at it.
func walkTerms(ctx context.Context, inputs []mergeInput, yield func(term uint32, at []*tableIterator) error) error {
	var live []*tableIterator
	for i := range inputs {
		it := &tableIterator{mergeInput: inputs[i], i: -1}
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

// countTerms finds the number of pages that the merged table needs.
func countTerms(ctx context.Context, inputs []mergeInput, bound uint64) (uint64, error) {
	var singles, others, inlined uint64
	err := walkTerms(ctx, inputs, func(_ uint32, at []*tableIterator) error {
		count := uint64(0)
		for _, it := range at {
			p, err := it.list()
			if err != nil {
				return err
			}
			count += p.count
		}
		switch {
		case count == 1:
			singles++
		case count < inlinePositions:
			others++
			inlined += count
		default:
			others++
		}
		return nil
	})
	return tablePages(singles, others, inlined, bound), err
}

// mergeTables writes the terms of all inputs to w.
func mergeTables(ctx context.Context, w *tableWriter, inputs []mergeInput) error {
	return walkTerms(ctx, inputs, func(term uint32, at []*tableIterator) error {
		w.begin(term)
		for _, it := range at {
			if err := it.each(func(v []uint32) {
				for _, p := range v {
					w.add(p + it.offset)
				}
			}); err != nil {
				return err
			}
		}
		w.end()
		return w.column.file.err
	})
}
