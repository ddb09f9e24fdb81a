package segments

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/leani-go/leani/internal/corrupt"
)

// Part says which part of an index SliceIndex keeps.
type Part struct {
	// Info describes the part as the new file will: range, counts and hashes. Its Kind is set by the
	// call.
	Info Info
	// FirstLog and FirstTransaction are the positions in the index where the part begins; its first
	// block follows from the ranges.
	FirstLog, FirstTransaction uint64
}

// errSlice reports an index that does not list every block or transaction of a part once.
var errSlice = errors.New("index does not list the blocks and transactions of its range once each")

// SliceIndex writes an index file over a part of what x covers: the same lists, without the positions
// outside of the part and counted from its start. Every page that is read is verified. Memory does not grow
// with the input but for page tables; time does: the whole index is read twice. It stops with the context's
// error between terms.
func SliceIndex(ctx context.Context, out io.Writer, x *Index, part Part) (Info, [32]byte, error) {
	info, whole := part.Info, x.Info()
	info.Kind, info.Profile = KindIndex, whole.Profile
	if info.From >= info.To || info.From < whole.From || info.To > whole.To ||
		part.FirstLog+info.Logs > whole.Logs || part.FirstTransaction+info.Transactions > whole.Transactions {
		return Info{}, [32]byte{}, fmt.Errorf("slice index file %s: blocks [%d, %d) with their logs and transactions are not a part of it", x.name, info.From, info.To)
	}
	tables := x.tables()
	windows := [3]window{
		{part.FirstLog, part.FirstLog + info.Logs},
		{part.FirstTransaction, part.FirstTransaction + info.Transactions},
		{info.From - whole.From, info.To - whole.From},
	}
	var size tableSize
	err := sliceTerms(ctx, tables[0], windows[0], func(_ uint32, positions []uint32) { size.add(uint64(len(positions))) })
	if err != nil {
		return Info{}, [32]byte{}, err
	}
	w := newIndexWriter(out, info.Logs, size.pages(info.Logs))
	if err := sliceTable(ctx, &w.terms, tables[0], windows[0]); err != nil {
		return Info{}, [32]byte{}, err
	}
	w.finishTerms()
	for i, id := range []columnID{columnTxLocator, columnBlockLocator} {
		rows := windows[i+1].to - windows[i+1].from
		t := tableWriter{column: w.file.addColumn(id), pages: locatorPages(rows), positions: rows}
		listed := uint64(0)
		err := sliceTerms(ctx, tables[i+1], windows[i+1], func(term uint32, positions []uint32) {
			writeList(&t, term, positions)
			listed += uint64(len(positions))
		})
		if err != nil {
			return Info{}, [32]byte{}, err
		}
		if listed != rows {
			return Info{}, [32]byte{}, corrupt.AtOffset(x.name, int64(x.limit), fmt.Errorf("%w: got %d of %d", errSlice, listed, rows))
		}
		t.finish()
	}
	digest, err := w.file.finish(info)
	return info, digest, err
}

// window is the half-open run of positions that a slice keeps.
type window struct{ from, to uint64 }

// sliceTerms yields every term that has positions in the window, with these, counted from its start. The
// slice is valid during the call.
func sliceTerms(ctx context.Context, table indexTable, w window, yield func(term uint32, positions []uint32)) error {
	var kept []uint32
	return walkTerms(ctx, []indexTable{table}, func(term uint32, at []*tableIterator) error {
		kept = kept[:0]
		err := at[0].each(func(positions []uint32) {
			for _, p := range positions {
				if v := uint64(p); w.from <= v && v < w.to {
					kept = append(kept, uint32(v-w.from))
				}
			}
		})
		if err == nil && len(kept) > 0 {
			yield(term, kept)
		}
		return err
	})
}

// sliceTable writes the terms of a table that have positions in the window.
func sliceTable(ctx context.Context, t *tableWriter, table indexTable, w window) error {
	if err := sliceTerms(ctx, table, w, func(term uint32, positions []uint32) { writeList(t, term, positions) }); err != nil {
		return err
	}
	return t.column.file.err
}

func writeList(t *tableWriter, term uint32, positions []uint32) {
	t.begin(term)
	for _, p := range positions {
		t.add(p)
	}
	t.end()
}
