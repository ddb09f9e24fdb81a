package segments

import (
	"encoding/binary"
	"errors"

	"github.com/leani-go/leani/codec"
)

// A blob page holds byte strings of any length for consecutive rows:
//
//	rows    u32
//	lengths uvarint for each row
//	bytes   of all rows, one behind the other

// blobWriter writes a column of blobs. A page is closed when it holds blobPageSize bytes.
type blobWriter struct {
	column      *columnWriter
	compression codec.Compression
	lengths     []byte // uvarints of the open page
	bytes       []byte
	rows        uint32 // in the open page
	next        uint32 // row number of the next blob
	raw         []byte // scratch
}

// add appends one blob, given in parts.
func (w *blobWriter) add(parts ...[]byte) {
	size := 0
	for _, p := range parts {
		w.bytes = append(w.bytes, p...)
		size += len(p)
	}
	w.lengths = binary.AppendUvarint(w.lengths, uint64(size))
	w.rows++
	w.next++
	if len(w.bytes)+len(w.lengths) >= blobPageSize {
		w.flush()
	}
}

func (w *blobWriter) flush() {
	if w.rows == 0 {
		return
	}
	w.raw = binary.LittleEndian.AppendUint32(w.raw[:0], w.rows)
	w.raw = append(w.raw, w.lengths...)
	w.raw = append(w.raw, w.bytes...)
	w.column.writePage(w.compression, w.raw, w.next-w.rows)
	w.lengths, w.bytes, w.rows = w.lengths[:0], w.bytes[:0], 0
}

// finish closes the column.
func (w *blobWriter) finish() {
	w.flush()
	w.column.column.rows = uint64(w.next)
}

var errBlobPage = errors.New("blob page does not hold the rows its table says")

// blobs yields the blobs of rows [from, to). A blob aliases its page and stays valid. An error of yield
// is reported as damage of the page.
func (f *File) blobs(c *column, from, to uint32, access *Access, yield func([]byte) error) error {
	if from >= to {
		return nil
	}
	var memo tableMemo
	run, err := f.find(c, from, access, &memo)
	for err == nil {
		if err := blobRows(&run, from, min(to, run.to), yield); err != nil {
			return f.damaged(&run, err)
		}
		if run.to >= to {
			return nil
		}
		from = run.to
		run, err = f.pageAfter(c, &run, access, &memo)
	}
	return err
}

// blob reads the blob of one row.
func (f *File) blob(c *column, row uint32, access *Access, use func([]byte) error) error {
	return f.blobs(c, row, row+1, access, use)
}

// blobRows yields rows [from, to) of one page.
func blobRows(run *pageRun, from, to uint32, yield func([]byte) error) error {
	if len(run.raw) < 4 || run.to <= run.from || from < run.from {
		return errBlobPage
	}
	rows := binary.LittleEndian.Uint32(run.raw)
	lengths := run.raw[4:]
	// A page is closed at blobPageSize, and a row takes a byte at least.
	if rows != run.to-run.from || rows > blobPageSize || int(rows) > len(lengths) {
		return errBlobPage
	}
	// The bytes start behind the last length: walk all lengths once to find them.
	at, skip, total := 0, uint64(0), uint64(0)
	firstLength := 0
	for row := run.from; row < run.to; row++ {
		if row == from {
			firstLength, skip = at, total
		}
		size, n := binary.Uvarint(lengths[at:])
		if n <= 0 || size > codec.MaximumPage {
			return errBlobPage
		}
		at += n
		total += size
	}
	bytes := lengths[at:]
	if total != uint64(len(bytes)) {
		return errBlobPage
	}
	bytes = bytes[skip:]
	at = firstLength
	for row := from; row < to; row++ {
		size, n := binary.Uvarint(lengths[at:])
		if err := yield(bytes[:size:size]); err != nil {
			return err
		}
		bytes = bytes[size:]
		at += n
	}
	return nil
}
