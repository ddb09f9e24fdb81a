package segments

import (
	"fmt"
	"io"
	"slices"

	"github.com/ethereum/go-ethereum/common"
	"github.com/leani-go/leani/chain"
)

// indexWriter writes an index file: the table of log terms with its postings, and the locators of
// transactions and blocks.
type indexWriter struct {
	file     *fileWriter
	postings postingsWriter
	terms    tableWriter
}

func newIndexWriter(out io.Writer, logs, tablePages uint64) *indexWriter {
	w := &indexWriter{file: newFileWriter(out, KindIndex)}
	w.postings.column = w.file.addColumn(columnPostings)
	w.terms = tableWriter{column: w.file.addColumn(columnTerms), postings: &w.postings, pages: tablePages, positions: logs}
	return w
}

// finishTerms closes the table of log terms.
func (w *indexWriter) finishTerms() {
	w.terms.finish()
	w.postings.finish()
}

// locatorPages is the number of pages of a locator, whose terms have one position each.
func locatorPages(rows uint64) uint64 {
	size := tableSize{singles: rows}
	return size.pages(rows)
}

// writeLocator writes a whole locator from its entries, which it sorts.
func (w *indexWriter) writeLocator(id columnID, entries []locatorEntry) {
	slices.Sort(entries)
	n := uint64(len(entries))
	t := tableWriter{column: w.file.addColumn(id), pages: locatorPages(n), positions: n}
	for i := 0; i < len(entries); {
		term := entries[i].term()
		t.begin(term)
		for ; i < len(entries) && entries[i].term() == term; i++ {
			t.add(uint32(entries[i]))
		}
		t.end()
	}
	t.finish()
}

// locatorEntry is the term of a hash, and its position in the low half, so that numbers sort as entries
// should.
type locatorEntry uint64

func newLocatorEntry(hash []byte, position uint64) locatorEntry {
	return locatorEntry(uint64(hashTerm(hash))<<32 | position)
}

func (e locatorEntry) term() uint32 { return uint32(e >> 32) }

// termList is a term with its positions in what collectTerms returns.
type termList struct {
	term     uint32
	from, to uint32
}

// WriteIndex writes the index file of the data file, after Finish.
func (b *DataBuilder) WriteIndex(out io.Writer) (Info, [32]byte, error) {
	if !b.finished {
		return Info{}, [32]byte{}, fmt.Errorf("write index file: finish the data file first")
	}
	info := b.info
	info.Kind = KindIndex
	order, lists := b.collectTerms()
	var size tableSize
	eachTerm(order, lists, func(_ uint32, positions []uint32) { size.add(uint64(len(positions))) })
	w := newIndexWriter(out, info.Logs, size.pages(info.Logs))
	eachTerm(order, lists, func(term uint32, positions []uint32) {
		w.terms.begin(term)
		for _, p := range positions {
			w.terms.add(p)
		}
		w.terms.end()
	})
	w.finishTerms()

	entries := make([]locatorEntry, info.Transactions)
	for i := range entries {
		entries[i] = newLocatorEntry(b.hashes[i*common.HashLength:], uint64(i))
	}
	w.writeLocator(columnTxLocator, entries)
	entries = entries[:0]
	for i := range info.Blocks() {
		entries = append(entries, newLocatorEntry(b.blocks[i*blockRowSize:], i))
	}
	w.writeLocator(columnBlockLocator, entries)
	digest, err := w.file.finish(info)
	return info, digest, err
}

// eachTerm yields the terms in order with their positions, ascending. Lists of terms that collide become
// one.
func eachTerm(order []uint32, lists []termList, yield func(term uint32, positions []uint32)) {
	for i := 0; i < len(lists); {
		l := lists[i]
		positions := order[l.from:l.to]
		for i++; i < len(lists) && lists[i].term == l.term; i++ {
			merged := append(slices.Clone(positions), order[lists[i].from:lists[i].to]...)
			slices.Sort(merged)
			positions = slices.Compact(merged)
		}
		yield(l.term, positions)
	}
}

// collectTerms sorts the positions of all logs by term with counting sorts. Lists are in the order of
// their terms, their positions ascend. Terms that collide have a list each.
func (b *DataBuilder) collectTerms() (order []uint32, lists []termList) {
	rows := len(b.rowShapes)
	words := b.words.len()
	order = make([]uint32, 0, 2*rows+len(b.topics))

	// Addresses: number the distinct ones of the shapes, then sort rows by number.
	addressOf := make([]uint32, len(b.shapes.shapes))
	addresses := make(map[common.Address]uint32)
	var addressList []common.Address
	for i := range b.shapes.shapes {
		a := b.shapes.shapes[i].address
		n, ok := addresses[a]
		if !ok {
			n = uint32(len(addressList))
			addresses[a] = n
			addressList = append(addressList, a)
		}
		addressOf[i] = n
	}
	group := newGrouping(max(words, len(addressList)))
	order, lists = group.run(order, lists, len(addressList), rows,
		func(row int) uint32 { return addressOf[b.rowShapes[row]] },
		func(n uint32) uint32 { return AddressTerm(&addressList[n]) })

	// Topics at each position; noTopic rows are left out.
	wordAt := func(position int) func(n uint32) uint32 {
		return func(n uint32) uint32 {
			h := b.words.stored(n)
			return TopicTerm(position, &h)
		}
	}
	first := make([]uint32, len(b.shapes.shapes))
	for i := range first {
		first[i] = b.words.final(b.shapes.shapes[i].word)
	}
	order, lists = group.run(order, lists, words, rows, func(row int) uint32 { return first[b.rowShapes[row]] }, wordAt(0))
	at := make([]uint32, rows) // position of each row's topics
	n := uint32(0)
	for row, s := range b.rowShapes {
		at[row] = n
		n += uint32(max(int(b.shapes.shapes[s].topics), 1) - 1)
	}
	for k := 1; k < chain.MaximumTopics; k++ {
		order, lists = group.run(order, lists, words, rows, func(row int) uint32 {
			if int(b.shapes.shapes[b.rowShapes[row]].topics) <= k {
				return noTopic
			}
			return b.topics[at[row]+uint32(k-1)]
		}, wordAt(k))
	}
	return order, sortLists(lists)
}

// sortLists sorts lists by term, and lists of one term by where they are. Sorting numbers costs a third
// of sorting the lists themselves.
func sortLists(lists []termList) []termList {
	keys := make([]uint64, len(lists))
	for i := range lists {
		keys[i] = uint64(lists[i].term)<<32 | uint64(i)
	}
	slices.Sort(keys)
	sorted := make([]termList, len(lists))
	for i, k := range keys {
		sorted[i] = lists[uint32(k)]
	}
	return sorted
}

// grouping is a reusable counting sort.
type grouping struct{ ends []uint32 }

func newGrouping(keys int) *grouping { return &grouping{make([]uint32, keys+1)} }

// run appends the rows of each key to order and a list for each key that has rows.
func (g *grouping) run(order []uint32, lists []termList, keys, rows int, key func(row int) uint32, term func(key uint32) uint32) ([]uint32, []termList) {
	ends := g.ends[:keys+1]
	clear(ends)
	total := uint32(0)
	for row := range rows {
		if k := key(row); k != noTopic {
			ends[k+1]++
			total++
		}
	}
	base := uint32(len(order))
	at := base
	for k := range ends {
		at += ends[k]
		ends[k] = at
	}
	// ends[k] is now where the rows of key k start.
	order = slices.Grow(order, int(total))[:base+total]
	for row := range rows {
		if k := key(row); k != noTopic {
			order[ends[k]] = uint32(row)
			ends[k]++
		}
	}
	from := base
	for k := range keys {
		if to := ends[k]; to > from {
			lists = append(lists, termList{term(uint32(k)), from, to})
			from = to
		}
	}
	return order, lists
}
