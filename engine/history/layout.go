package history

import (
	"sort"

	"github.com/leani-go/leani/chain"
	"github.com/leani-go/leani/engine"
)

// layout is what a catalog generation implies and many queries need: the positions of data files
// counted from the first one. It is computed once a generation, immutable, and shared by views.
type layout struct {
	generation uint64 // the last one that touched a file
	data       []positioned
	unindexed  []chain.Range // retained blocks that no index file covers: normally none
}

// positioned is a data file with the positions of its first log and transaction.
type positioned struct {
	row          *engine.FileRow
	logs         uint64
	transactions uint64
}

func newLayout(snap *engine.Snapshot) *layout {
	l := &layout{generation: snap.FilesGeneration()}
	rows := snap.Rows(engine.KindData)
	l.data = make([]positioned, len(rows))
	var logs, transactions uint64
	for i, r := range rows {
		l.data[i] = positioned{r, logs, transactions}
		logs += r.Logs
		transactions += r.Transactions
	}
	for _, run := range snap.Coverage(engine.FieldReceipts) {
		for r := run.Range; !r.Empty(); {
			gap, ok := snap.Missing(engine.FieldIndex, r)
			if !ok {
				break
			}
			l.unindexed = append(l.unindexed, gap)
			r.From = gap.To
		}
	}
	return l
}

// files are the data files that touch a range, in order.
func (l *layout) files(r chain.Range) []positioned {
	from := sort.Search(len(l.data), func(i int) bool { return l.data[i].row.To > r.From })
	to := sort.Search(len(l.data), func(i int) bool { return l.data[i].row.From >= r.To })
	if to < from {
		return nil
	}
	return l.data[from:to]
}
