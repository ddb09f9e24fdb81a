package segments

import (
	"context"
	"errors"
	"fmt"
	"io"
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
	if info.Logs > maximumRows || info.Transactions > maximumRows || info.Blocks() > maximumRows {
		return Info{}, [32]byte{}, fmt.Errorf("merge index files: %d logs and %d transactions pass the limit of %d", info.Logs, info.Transactions, maximumRows)
	}
	var tables [3][]indexTable // of all inputs: log terms, transactions, blocks
	var at [3]uint64
	for _, x := range inputs {
		for i, t := range x.tables() {
			t.offset = uint32(at[i])
			at[i] += t.bound
			tables[i] = append(tables[i], t)
		}
	}
	pages, err := countTerms(ctx, tables[0], info.Logs)
	if err != nil {
		return Info{}, [32]byte{}, err
	}
	w := newIndexWriter(out, info.Logs, pages)
	if err := mergeTables(ctx, &w.terms, tables[0]); err != nil {
		return Info{}, [32]byte{}, err
	}
	w.finishTerms()
	for i, id := range []columnID{columnTxLocator, columnBlockLocator} {
		t := tableWriter{column: w.file.addColumn(id), pages: locatorPages(at[i+1]), positions: at[i+1]}
		if err := mergeTables(ctx, &t, tables[i+1]); err != nil {
			return Info{}, [32]byte{}, err
		}
		t.finish()
	}
	digest, err := w.file.finish(info)
	return info, digest, err
}

// countTerms finds the number of pages that the merged table needs.
func countTerms(ctx context.Context, inputs []indexTable, bound uint64) (uint64, error) {
	var size tableSize
	err := walkTerms(ctx, inputs, func(_ uint32, at []*tableIterator) error {
		count := uint64(0)
		for _, it := range at {
			p, err := it.list()
			if err != nil {
				return err
			}
			count += p.count
		}
		size.add(count)
		return nil
	})
	return size.pages(bound), err
}

// mergeTables writes the terms of all inputs to w.
func mergeTables(ctx context.Context, w *tableWriter, inputs []indexTable) error {
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
