package segments

import (
	"errors"
	"fmt"

	"github.com/leani-go/leani/codec"
	"github.com/leani-go/leani/internal/corrupt"
)

// Access counts what a query did to segment files. A nil Access counts nothing. One goroutine.
type Access struct {
	Pages     uint64 // pages asked for
	Misses    uint64 // of these, pages that were not in the cache
	BytesRead uint64 // stored bytes of the misses
}

var (
	errPageTable = errors.New("page table does not fit its column")
	errPageShape = errors.New("page does not hold what its column says")
	errNoSuchRow = errors.New("row is outside the column")
)

// readPage returns the raw bytes of a page with codec.Slack bytes of zeros behind them. number is
// used in errors only.
func (f *File) readPage(e tableEntry, number int, access *Access) ([]byte, error) {
	key := cacheKey{f.id, e.offset}
	if access != nil {
		access.Pages++
	}
	if raw := f.cache.get(key); raw != nil {
		return raw, nil
	}
	if access != nil {
		access.Misses++
		access.BytesRead += uint64(e.size)
	}
	raw, err := f.readStored(e, number)
	if err != nil {
		return nil, err
	}
	f.cache.put(key, raw)
	return raw, nil
}

// readPlain is readPage for a page that is never compressed: what is computed from its numbers is
// then bounded by what the file takes on disk.
func (f *File) readPlain(e tableEntry, number int, access *Access) ([]byte, error) {
	raw, err := f.readPage(e, number, access)
	if err == nil && codec.PageHeader+len(raw) != int(e.size) {
		err = corrupt.AtPage(f.name, number, int64(e.offset), errPageShape)
	}
	return raw, err
}

// readStored reads and checks a page without the cache.
func (f *File) readStored(e tableEntry, number int) ([]byte, error) {
	if e.offset < headerSize || e.end() > f.limit {
		return nil, corrupt.AtPage(f.name, number, int64(e.offset), errPageTable)
	}
	stored := make([]byte, e.size, int(e.size)+codec.Slack)
	if _, err := f.src.ReadAt(stored, int64(e.offset)); err != nil {
		return nil, f.readError(int64(e.offset), err)
	}
	raw, err := codec.DecodePage(stored)
	if err != nil {
		return nil, corrupt.AtPage(f.name, number, int64(e.offset), err)
	}
	return raw, nil
}

// fixedPage reads page i of a fixed column.
func (f *File) fixedPage(c *column, i uint32, access *Access) ([]byte, error) {
	if i >= c.pages {
		return nil, f.rowError(c, uint64(i)*uint64(c.rowsPerPage))
	}
	return f.readPlain(c.fixedEntry(i), int(i), access)
}

// rowMemo reads rows of a fixed column and keeps the last page, so that the cache is asked once for
// rows that lie together.
type rowMemo struct {
	column *column
	number uint32
	page   []byte // nil before the first row
}

// row reads one row. The result aliases the page.
func (m *rowMemo) row(f *File, row uint64, access *Access) ([]byte, error) {
	c := m.column
	if row >= c.rows {
		return nil, f.rowError(c, row)
	}
	i := uint32(row / uint64(c.rowsPerPage))
	if m.page == nil || m.number != i {
		page, err := f.fixedPage(c, i, access)
		if err != nil {
			return nil, err
		}
		m.page, m.number = page, i
	}
	at := int(row%uint64(c.rowsPerPage)) * int(c.rowSize)
	return m.page[at : at+int(c.rowSize)], nil
}

// fixedRows yields rows [from, to) of a fixed column, as many at once as lie in a page.
func (f *File) fixedRows(c *column, from, to uint64, access *Access, yield func(rows []byte)) error {
	if to > c.rows {
		return f.rowError(c, to)
	}
	for from < to {
		i := from / uint64(c.rowsPerPage)
		page, err := f.fixedPage(c, uint32(i), access)
		if err != nil {
			return err
		}
		first := i * uint64(c.rowsPerPage)
		end := min(to, first+uint64(c.rowsPerPage))
		yield(page[(from-first)*uint64(c.rowSize) : (end-first)*uint64(c.rowSize)])
		from = end
	}
	return nil
}

func (f *File) rowError(c *column, row uint64) error {
	return corrupt.AtOffset(f.name, int64(f.limit), fmt.Errorf("%w: row %d of %d of %s", errNoSuchRow, row, c.rows, c.id))
}

// rowDamaged reports a row of a fixed column that says what cannot be.
func (f *File) rowDamaged(c *column, row uint64, err error) error {
	i := uint32(row / uint64(c.rowsPerPage))
	return corrupt.AtPage(f.name, int(i), int64(c.fixedEntry(i).offset), err)
}
