package segments

import (
	"encoding/binary"
	"fmt"

	"github.com/leani-go/leani/internal/corrupt"
)

// The pages of a variable column are found through its page table, which lies in pages itself. Those
// are few: the footer holds where each starts, so that any page takes one page of the table and the
// page itself.

// tableEntry locates a page.
type tableEntry struct {
	offset   uint64 // of the stored page in the file
	size     uint32 // stored size
	firstRow uint32 // the lowest position in posting pages, the page's number in hash tables
	firstTx  uint32 // log pages: the first transaction; 0 elsewhere
}

// end is the offset one past the stored page.
func (e tableEntry) end() uint64 { return e.offset + uint64(e.size) }

func appendTableEntry(dst []byte, e tableEntry) []byte {
	dst = binary.LittleEndian.AppendUint64(dst, e.offset|uint64(e.size)<<40)
	dst = binary.LittleEndian.AppendUint32(dst, e.firstRow)
	return binary.LittleEndian.AppendUint32(dst, e.firstTx)
}

func decodeTableEntry(b []byte) tableEntry {
	le := binary.LittleEndian
	v := le.Uint64(b)
	return tableEntry{offset: v & maximumFileSize, size: uint32(v >> 40), firstRow: le.Uint32(b[8:]), firstTx: le.Uint32(b[12:])}
}

// Keys of a page table, as offsets in an entry.
const (
	rowKey         = 8
	transactionKey = 12
)

func (e tableEntry) key(key int) uint32 {
	if key == transactionKey {
		return e.firstTx
	}
	return e.firstRow
}

// pageRun is one page of a variable column with the rows it holds.
type pageRun struct {
	raw      []byte
	number   uint32
	offset   uint64
	end      uint64 // offset one past the stored page
	from, to uint32 // rows, half-open; to is the next page's first row whatever that means for the column
}

// tableMemo keeps the page of a page table that was read last. The zero value keeps none.
type tableMemo struct {
	number uint32
	page   []byte
}

// tablePage reads page i of a column's page table.
func (f *File) tablePage(c *column, i uint32, access *Access, memo *tableMemo) ([]byte, error) {
	if memo.page != nil && memo.number == i {
		return memo.page, nil
	}
	t, err := f.readPlain(c.root[i], int(i), access)
	if err != nil {
		return nil, err
	}
	if first := decodeTableEntry(t); first.firstRow != c.root[i].firstRow || first.firstTx != c.root[i].firstTx {
		return nil, f.tableError(c, i)
	}
	memo.number, memo.page = i, t
	return t, nil
}

// entry reads the page table entry of page i of a variable column.
func (f *File) entry(c *column, i uint32, access *Access, memo *tableMemo) (tableEntry, error) {
	if i >= c.pages {
		return tableEntry{}, corrupt.AtOffset(f.name, int64(f.limit), fmt.Errorf("%w: page %d of %d of %s", errPageTable, i, c.pages, c.id))
	}
	t, err := f.tablePage(c, i/tablePageRows, access, memo)
	if err != nil {
		return tableEntry{}, err
	}
	return decodeTableEntry(t[int(i%tablePageRows)*tableEntrySize:]), nil
}

// page reads page i of a variable column.
func (f *File) page(c *column, i uint32, access *Access, memo *tableMemo) (pageRun, error) {
	e, err := f.entry(c, i, access, memo)
	if err != nil {
		return pageRun{}, err
	}
	run := pageRun{number: i, offset: e.offset, end: e.end(), from: e.firstRow, to: uint32(c.rows)}
	switch t := i / tablePageRows; {
	case i+1 == c.pages:
	case (i+1)%tablePageRows == 0:
		run.to = c.root[t+1].firstRow
	default:
		next := decodeTableEntry(memo.page[int((i+1)%tablePageRows)*tableEntrySize:])
		if next.offset < run.end { // pages that share bytes would let a small file claim much
			return pageRun{}, f.tableError(c, t)
		}
		run.to = next.firstRow
	}
	if c.compressible() {
		run.raw, err = f.readPage(e, int(i), access)
	} else {
		run.raw, err = f.readPlain(e, int(i), access)
	}
	return run, err
}

// pageAfter reads the page behind run, which must lie behind it in rows and in the file.
func (f *File) pageAfter(c *column, run *pageRun, access *Access, memo *tableMemo) (pageRun, error) {
	next, err := f.page(c, run.number+1, access, memo)
	if err == nil && (next.from != run.to || next.offset < run.end) {
		err = f.tableError(c, next.number/tablePageRows)
	}
	return next, err
}

// find reads the page of a variable column that holds the row.
func (f *File) find(c *column, row uint32, access *Access, memo *tableMemo) (pageRun, error) {
	if uint64(row) >= c.rows {
		return pageRun{}, f.rowError(c, uint64(row))
	}
	number, err := f.findPage(c, row, rowKey, access, memo)
	if err != nil {
		return pageRun{}, err
	}
	run, err := f.page(c, number, access, memo)
	if err == nil && run.to <= row {
		err = f.tableError(c, number/tablePageRows)
	}
	return run, err
}

// findPage is the number of the last page whose key is at most value.
func (f *File) findPage(c *column, value uint32, key int, access *Access, memo *tableMemo) (uint32, error) {
	return f.findPageIn(c, 0, c.pages, value, key, access, memo)
}

// findPageIn is the number of the last page of [from, to) whose key is at most value. The keys of
// these pages ascend.
func (f *File) findPageIn(c *column, from, to, value uint32, key int, access *Access, memo *tableMemo) (uint32, error) {
	if from >= to || to > c.pages {
		return 0, f.tableError(c, 0)
	}
	// The last page of the table that does not start above the value, then the entry in it.
	lo, hi := from/tablePageRows, (to-1)/tablePageRows
	for lo < hi {
		mid := lo + (hi-lo+1)/2
		if c.root[mid].key(key) <= value {
			lo = mid
		} else {
			hi = mid - 1
		}
	}
	first := lo * tablePageRows
	t, err := f.tablePage(c, lo, access, memo)
	if err != nil {
		return 0, err
	}
	a, b := int(max(from, first)-first), int(min(to-first, tablePageRows))
	for low := a; low < b; {
		mid := int(uint(low+b) >> 1)
		if binary.LittleEndian.Uint32(t[mid*tableEntrySize+key:]) > value {
			b = mid
		} else {
			low = mid + 1
		}
	}
	if b == a { // not even the first page
		return 0, f.tableError(c, lo)
	}
	return first + uint32(b) - 1, nil
}

// tableError reports page i of a column's page table.
func (f *File) tableError(c *column, i uint32) error {
	err := fmt.Errorf("%w: %s", errPageTable, c.id)
	if int(i) >= len(c.root) {
		return corrupt.AtOffset(f.name, int64(f.limit), err)
	}
	return corrupt.AtPage(f.name, int(i), int64(c.root[i].offset), err)
}

// damaged reports a page whose checksum holds but whose content cannot be.
func (f *File) damaged(run *pageRun, err error) error {
	return corrupt.AtPage(f.name, int(run.number), int64(run.offset), err)
}
