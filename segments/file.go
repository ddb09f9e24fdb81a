package segments

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"

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
	errMissingColumn = errors.New("column is missing")
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
	if kind < KindData || kind > KindFrames {
		return nil, &UnsupportedError{name, "kind", uint64(kind)}
	}
	if flags := le.Uint64(trailer[16:]); flags != 0 {
		return nil, &UnsupportedError{name, "flags", flags}
	}
	offset, length := le.Uint64(trailer), uint64(le.Uint32(trailer[8:]))
	if offset < headerSize || offset > uint64(size) || offset+length != uint64(size)-trailerSize || length > codec.PageHeader+codec.MaximumPage {
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
	switch profile := f.footer.info.Profile; {
	case profile != 0 && kind != KindFrames:
		return nil, &UnsupportedError{name, "profile", uint64(profile)}
	case profile == 0 && kind == KindFrames:
		return nil, corrupt.AtOffset(name, int64(offset), errFramesProfile)
	}
	for i := range f.footer.columns {
		if id := f.footer.columns[i].id; columnNames[id] == "" {
			return nil, &UnsupportedError{name, "column", uint64(id)}
		}
	}
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

// anyRows stands for a number of rows that the footer alone knows.
const anyRows = ^uint64(0)

// expect finds a column and checks its dimensions.
func (f *File) expect(id columnID, rows uint64, rowSize uint32) (*column, error) {
	c, err := f.column(id)
	if err != nil {
		return nil, err
	}
	if (rows != anyRows && c.rows != rows) || c.rowSize != rowSize {
		return nil, corrupt.AtOffset(f.name, int64(f.limit),
			fmt.Errorf("%w: %s has %d rows of %d bytes, want %d of %d", errFooterColumn, id, c.rows, c.rowSize, rows, rowSize))
	}
	return c, nil
}

// errKind reports a file that is viewed as one of another kind.
func (f *File) errKind(want Kind) error {
	return fmt.Errorf("segment file %s is of kind %s, not %s", f.name, f.footer.info.Kind, want)
}

// uncached is the same file read past the cache: for passes over all of it, so that queries keep their
// pages.
func (f *File) uncached() *File {
	g := *f
	g.cache = nil
	return &g
}
