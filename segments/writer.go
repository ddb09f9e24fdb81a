package segments

import (
	"encoding/binary"
	"fmt"
	"io"

	"github.com/leani-go/leani/codec"
	"github.com/zeebo/blake3"
)

// fileWriter writes the container: header, pages, page tables, digests, footer, trailer. It writes
// front to back, keeps only page tables and digests in memory, and remembers its first error.
type fileWriter struct {
	out     io.Writer
	kind    Kind
	offset  uint64
	page    []byte // scratch: the page being framed
	digests []byte
	columns []*columnWriter
	err     error
}

// columnWriter collects where the pages of one column lie.
type columnWriter struct {
	file   *fileWriter
	column column
	table  []tableEntry // variable columns only
}

func newFileWriter(out io.Writer, kind Kind) *fileWriter {
	w := &fileWriter{out: out, kind: kind}
	var head [headerSize]byte
	copy(head[:], magic)
	binary.LittleEndian.PutUint16(head[8:], formatVersion)
	binary.LittleEndian.PutUint16(head[10:], uint16(kind))
	w.write(head[:])
	return w
}

func (w *fileWriter) write(b []byte) {
	if w.err != nil {
		return
	}
	if w.offset+uint64(len(b)) > maximumFileSize {
		w.err = fmt.Errorf("segment file would pass %d bytes", uint64(maximumFileSize))
		return
	}
	if _, err := w.out.Write(b); err != nil {
		w.err = fmt.Errorf("write segment file: %w", err)
		return
	}
	w.offset += uint64(len(b))
}

// writePage frames, digests and writes one page.
func (w *fileWriter) writePage(c codec.Compression, raw []byte) tableEntry {
	if len(raw) > codec.MaximumPage && w.err == nil {
		w.err = fmt.Errorf("one value takes %d bytes; a page holds at most %d", len(raw), codec.MaximumPage)
	}
	if w.err != nil {
		return tableEntry{}
	}
	w.page = codec.AppendPage(w.page[:0], c, raw)
	entry := tableEntry{offset: w.offset, size: uint32(len(w.page))}
	if len(w.page) > codec.MaximumPage {
		w.err = fmt.Errorf("one value takes %d stored bytes; a page holds at most %d", len(w.page), codec.MaximumPage)
		return tableEntry{}
	}
	digest := blake3.Sum256(w.page)
	w.digests = append(w.digests, digest[:digestSize]...)
	w.write(w.page)
	return entry
}

// addColumn starts a variable column.
func (w *fileWriter) addColumn(id columnID) *columnWriter {
	c := &columnWriter{file: w, column: column{id: id}}
	w.columns = append(w.columns, c)
	return c
}

// writePage adds a page that starts at row firstRow of the column.
func (c *columnWriter) writePage(compression codec.Compression, raw []byte, firstRow uint32) {
	c.writeKeyed(compression, raw, firstRow, 0)
}

// writeKeyed adds a page that is found by row and by transaction.
func (c *columnWriter) writeKeyed(compression codec.Compression, raw []byte, firstRow, firstTx uint32) {
	e := c.file.writePage(compression, raw)
	e.firstRow, e.firstTx = firstRow, firstTx
	c.table = append(c.table, e)
	c.column.storedBytes += uint64(e.size)
}

// addFixed writes a whole fixed column: data holds rows of rowSize bytes.
func (w *fileWriter) addFixed(id columnID, data []byte, rowSize int) {
	c := w.addColumn(id)
	perPage := randomPageSize / rowSize
	c.column.rowSize, c.column.rowsPerPage = uint32(rowSize), uint32(perPage)
	c.column.rows = uint64(len(data) / rowSize)
	c.column.base = w.offset
	for len(data) > 0 {
		n := min(len(data), perPage*rowSize)
		e := w.writePage(codec.None, data[:n])
		c.column.storedBytes += uint64(e.size)
		c.column.pages++
		data = data[n:]
	}
}

// finish writes tables, digests, footer and trailer, and returns the footer's BLAKE3, which
// identifies the content of the whole file.
func (w *fileWriter) finish(info Info) (digest [32]byte, err error) {
	var raw []byte
	for _, c := range w.columns {
		c.column.pages = max(c.column.pages, uint32(len(c.table)))
		for from := 0; from < len(c.table); from += tablePageRows {
			part := c.table[from:min(from+tablePageRows, len(c.table))]
			raw = raw[:0]
			for _, e := range part {
				raw = appendTableEntry(raw, e)
			}
			e := w.writePage(codec.None, raw)
			e.firstRow, e.firstTx = part[0].firstRow, part[0].firstTx
			c.column.root = append(c.column.root, e)
		}
	}
	f := footer{info: info, root: rootOf(w.digests)}
	w.addFixed(columnDigests, w.digests, digestSize)
	for _, c := range w.columns {
		f.columns = append(f.columns, c.column)
	}
	body := f.encode()
	if len(body) > codec.MaximumPage && w.err == nil {
		w.err = fmt.Errorf("footer would take %d bytes; a page holds at most %d", len(body), codec.MaximumPage)
	}
	if w.err != nil {
		return digest, w.err
	}
	digest = blake3.Sum256(body)
	w.page = codec.AppendPage(w.page[:0], codec.None, body)
	trailer := binary.LittleEndian.AppendUint64(nil, w.offset)
	trailer = binary.LittleEndian.AppendUint32(trailer, uint32(len(w.page)))
	trailer = binary.LittleEndian.AppendUint16(trailer, formatVersion)
	trailer = binary.LittleEndian.AppendUint16(trailer, uint16(w.kind))
	trailer = append(trailer, make([]byte, 8)...)
	trailer = append(trailer, magic...)
	w.write(w.page)
	w.write(trailer)
	return digest, w.err
}
