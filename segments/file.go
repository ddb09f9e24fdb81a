package segments

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"sort"

	"github.com/leani-go/leani/codec"
	"github.com/leani-go/leani/internal/corrupt"
	"github.com/zeebo/blake3"
)

// Source is what a segment file is read from: a local file, or later an object of an object store.
// It must be safe for concurrent use.
type Source interface {
	io.ReaderAt
	// Size is the length in bytes.
	Size() int64
}

// File is an open segment file of any kind. Only its footer is in memory; pages come through the
// cache. Safe for concurrent use.
type File struct {
	name   string
	id     uint64 // names the file in the cache
	src    Source
	cache  *Cache
	footer footer
	digest [32]byte
	limit  uint64 // where pages end and the footer starts
}

var (
	errNotSegment    = errors.New("not a segment file: wrong magic")
	errTrailer       = errors.New("trailer does not fit the file")
	errHeader        = errors.New("header and trailer differ")
	errShort         = errors.New("file is too short for a segment")
	errPageTable     = errors.New("page table does not fit its column")
	errPageShape     = errors.New("page does not hold what its column says")
	errNoSuchRow     = errors.New("row is outside the column")
	errMissingColumn = errors.New("column is missing")
	errRootDigest    = errors.New("digest over all pages differs")
	errPageDigest    = errors.New("page digest differs")
)

// tailRead is how much of the end of a file Open reads at once: trailer and, almost always, footer.
const tailRead = 4096

// Open reads the trailer and footer of a segment file. name is used in errors, id must be unique
// among the files that share the cache. The file keeps src but does not close it.
//
// Errors: *UnsupportedError for what a newer release wrote, *corrupt.Error for damage, else what src
// returned.
func Open(name string, id uint64, src Source, cache *Cache) (*File, error) {
	f := &File{name: name, id: id, src: src, cache: cache}
	size := src.Size()
	if size < headerSize+trailerSize {
		return nil, corrupt.New(name, errShort)
	}
	tail := make([]byte, min(size, tailRead))
	if _, err := src.ReadAt(tail, size-int64(len(tail))); err != nil {
		return nil, f.readError(size-int64(len(tail)), err)
	}
	le := binary.LittleEndian
	trailer := tail[len(tail)-trailerSize:]
	if string(trailer[24:]) != magic {
		return nil, corrupt.AtOffset(name, size-trailerSize, errNotSegment)
	}
	version, kind := le.Uint16(trailer[12:]), Kind(le.Uint16(trailer[14:]))
	if version != formatVersion {
		return nil, &UnsupportedError{name, "version", uint64(version)}
	}
	if kind < KindData || kind > KindSenders {
		return nil, &UnsupportedError{name, "kind", uint64(kind)}
	}
	if flags := le.Uint64(trailer[16:]); flags != 0 {
		return nil, &UnsupportedError{name, "flags", flags}
	}
	offset, length := le.Uint64(trailer), uint64(le.Uint32(trailer[8:]))
	if offset < headerSize || offset > uint64(size) || offset+length != uint64(size)-trailerSize {
		return nil, corrupt.AtOffset(name, size-trailerSize, errTrailer)
	}
	f.limit = offset
	var stored []byte
	if length+trailerSize <= uint64(len(tail)) {
		stored = tail[uint64(len(tail))-trailerSize-length : len(tail)-trailerSize]
	} else {
		stored = make([]byte, length)
		if _, err := src.ReadAt(stored, int64(offset)); err != nil {
			return nil, f.readError(int64(offset), err)
		}
	}
	body, err := codec.DecodePage(stored[:len(stored):len(stored)])
	if err != nil {
		return nil, corrupt.AtOffset(name, int64(offset), fmt.Errorf("footer: %w", err))
	}
	if err := f.footer.decode(body, offset); err != nil {
		return nil, corrupt.AtOffset(name, int64(offset), err)
	}
	f.footer.info.Kind = kind
	f.digest = blake3.Sum256(body)
	return f, nil
}

// Info says what the file covers.
func (f *File) Info() Info { return f.footer.info }

// Digest is the BLAKE3 of the footer, and through it of every page.
func (f *File) Digest() [32]byte { return f.digest }

// Name is the name given to Open.
func (f *File) Name() string { return f.name }

// readError reports bytes that could not be read. A file that ends early is damaged.
func (f *File) readError(offset int64, err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return corrupt.AtOffset(f.name, offset, errShort)
	}
	return fmt.Errorf("read segment file %s at %d: %w", f.name, offset, err)
}

// column finds a column by id.
func (f *File) column(id columnID) (*column, error) {
	for i := range f.footer.columns {
		if c := &f.footer.columns[i]; c.id == id {
			return c, nil
		}
	}
	return nil, corrupt.AtOffset(f.name, int64(f.limit), fmt.Errorf("%w: %s", errMissingColumn, id))
}

// Access counts what a query did to segment files. A nil Access counts nothing. One goroutine.
type Access struct {
	Pages     uint64 // pages asked for
	Misses    uint64 // of these, pages that were not in the cache
	BytesRead uint64 // stored bytes of the misses
}

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

// readStored reads and checks a page without the cache.
func (f *File) readStored(e tableEntry, number int) ([]byte, error) {
	if e.offset < headerSize || e.offset+uint64(e.size) > f.limit {
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

// fixedEntry locates page i of a fixed column.
func (c *column) fixedEntry(i uint32) tableEntry {
	full := uint64(codec.PageHeader) + uint64(c.rowSize)*uint64(c.rowsPerPage)
	e := tableEntry{offset: c.base + uint64(i)*full, size: uint32(full), firstRow: i * c.rowsPerPage}
	if i+1 == c.pages {
		last := c.rows - uint64(i)*uint64(c.rowsPerPage)
		e.size = uint32(codec.PageHeader + last*uint64(c.rowSize))
	}
	return e
}

// fixedEnd is the offset one past the last page of a fixed column.
func (c *column) fixedEnd() uint64 {
	if c.pages == 0 {
		return c.base
	}
	e := c.fixedEntry(c.pages - 1)
	return e.offset + uint64(e.size)
}

// fixedPage reads page i of a fixed column.
func (f *File) fixedPage(c *column, i uint32, access *Access) ([]byte, error) {
	if i >= c.pages {
		return nil, f.rowError(c, uint64(i)*uint64(c.rowsPerPage))
	}
	e := c.fixedEntry(i)
	raw, err := f.readPage(e, int(i), access)
	if err != nil {
		return nil, err
	}
	if len(raw) != int(e.size)-codec.PageHeader {
		return nil, corrupt.AtPage(f.name, int(i), int64(e.offset), errPageShape)
	}
	return raw, nil
}

// fixedRow reads one row of a fixed column. The result aliases the page.
func (f *File) fixedRow(c *column, row uint64, access *Access) ([]byte, error) {
	if row >= c.rows {
		return nil, f.rowError(c, row)
	}
	raw, err := f.fixedPage(c, uint32(row/uint64(c.rowsPerPage)), access)
	if err != nil {
		return nil, err
	}
	at := int(row%uint64(c.rowsPerPage)) * int(c.rowSize)
	return raw[at : at+int(c.rowSize)], nil
}

func (f *File) rowError(c *column, row uint64) error {
	return corrupt.New(f.name, fmt.Errorf("%w: row %d of %d of %s", errNoSuchRow, row, c.rows, c.id))
}

// entry reads the page table entry of page i of a variable column.
func (f *File) entry(c *column, i uint32, access *Access) (tableEntry, error) {
	t, err := f.tablePage(c, i/tablePageRows, access)
	if err != nil {
		return tableEntry{}, err
	}
	at := int(i%tablePageRows) * tableEntrySize
	if i >= c.pages || at+tableEntrySize > len(t) {
		return tableEntry{}, corrupt.New(f.name, fmt.Errorf("%w: page %d of %s", errPageTable, i, c.id))
	}
	return decodeTableEntry(t[at:]), nil
}

func (f *File) tablePage(c *column, i uint32, access *Access) ([]byte, error) {
	if int(i) >= len(c.root) {
		return nil, corrupt.New(f.name, fmt.Errorf("%w: %s", errPageTable, c.id))
	}
	return f.readPage(c.root[i], int(i), access)
}

// pageRun is one page of a variable column with the rows it holds.
type pageRun struct {
	raw      []byte
	number   uint32
	offset   uint64
	from, to uint32 // rows, half-open
}

// find reads the page of a variable column that holds the row.
func (f *File) find(c *column, row uint32, access *Access) (pageRun, error) {
	if uint64(row) >= c.rows {
		return pageRun{}, f.rowError(c, uint64(row))
	}
	number, err := f.findPage(c, row, rowKey, access)
	if err != nil {
		return pageRun{}, err
	}
	return f.pageAt(c, number, access)
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

// findPage is the number of the last page whose key is at most value.
func (f *File) findPage(c *column, value uint32, key int, access *Access) (uint32, error) {
	ti := sort.Search(len(c.root), func(i int) bool { return c.root[i].key(key) > value }) - 1
	if ti < 0 {
		return 0, corrupt.New(f.name, fmt.Errorf("%w: %s", errPageTable, c.id))
	}
	table, err := f.tablePage(c, uint32(ti), access)
	if err != nil {
		return 0, err
	}
	lo, hi := 0, len(table)/tableEntrySize
	for lo < hi {
		mid := (lo + hi) / 2
		if binary.LittleEndian.Uint32(table[mid*tableEntrySize+key:]) > value {
			hi = mid
		} else {
			lo = mid + 1
		}
	}
	if lo == 0 {
		return 0, corrupt.New(f.name, fmt.Errorf("%w: %s", errPageTable, c.id))
	}
	return uint32(ti)*tablePageRows + uint32(lo-1), nil
}

// pageAt reads page i of a variable column.
func (f *File) pageAt(c *column, i uint32, access *Access) (pageRun, error) {
	e, err := f.entry(c, i, access)
	if err != nil {
		return pageRun{}, err
	}
	raw, err := f.readPage(e, int(i), access)
	if err != nil {
		return pageRun{}, err
	}
	run := pageRun{raw: raw, number: i, offset: e.offset, from: e.firstRow, to: uint32(c.rows)}
	if i+1 < c.pages {
		next, err := f.entry(c, i+1, access)
		if err != nil {
			return pageRun{}, err
		}
		run.to = next.firstRow
	}
	return run, nil
}

// damaged reports a page whose checksum holds but whose content cannot be.
func (f *File) damaged(run pageRun, err error) error {
	return corrupt.AtPage(f.name, int(run.number), int64(run.offset), err)
}
