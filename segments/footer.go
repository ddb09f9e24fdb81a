package segments

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/ethereum/go-ethereum/common"
	"github.com/zeebo/blake3"
)

// Info says what a segment file covers. It is written in the footer and repeated in the catalog.
type Info struct {
	Kind    Kind
	Profile uint16 // 0: complete material; frames files have another one, and no other kind has

	From, To     uint64 // half-open range of block numbers
	Transactions uint64
	Logs         uint64

	FirstParent common.Hash // parent hash of block From
	FirstHash   common.Hash // hash of block From
	LastHash    common.Hash // hash of block To-1
}

// Blocks is the number of blocks covered.
func (i Info) Blocks() uint64 { return i.To - i.From }

// footer is the decoded footer of a file.
type footer struct {
	info    Info
	columns []column
	root    [32]byte // BLAKE3 over the digests of all pages
}

func (f *footer) encode() []byte {
	le := binary.LittleEndian
	var b []byte
	b = le.AppendUint16(b, f.info.Profile)
	b = le.AppendUint16(b, uint16(len(f.columns)))
	for _, v := range []uint64{f.info.From, f.info.To, f.info.Transactions, f.info.Logs} {
		b = le.AppendUint64(b, v)
	}
	b = append(b, f.info.FirstParent[:]...)
	b = append(b, f.info.FirstHash[:]...)
	b = append(b, f.info.LastHash[:]...)
	b = append(b, f.root[:]...)
	for _, c := range f.columns {
		b = le.AppendUint16(b, uint16(c.id))
		b = le.AppendUint16(b, 0) // reserved
		b = le.AppendUint32(b, c.pages)
		b = le.AppendUint64(b, c.rows)
		b = le.AppendUint64(b, c.storedBytes)
		b = le.AppendUint32(b, c.rowSize)
		b = le.AppendUint32(b, c.rowsPerPage)
		b = le.AppendUint64(b, c.base)
		b = le.AppendUint32(b, uint32(len(c.root)))
		for _, e := range c.root {
			b = appendTableEntry(b, e)
		}
	}
	return b
}

// footerFixed is the size of what precedes the columns; columnFixed that of a column without root.
const (
	footerFixed = 2 + 2 + 4*8 + 4*32
	columnFixed = 2 + 2 + 4 + 8 + 8 + 4 + 4 + 8 + 4
)

var (
	errFooterShort   = errors.New("footer ends early")
	errFooterSurplus = errors.New("footer has surplus bytes")
	errFooterColumn  = errors.New("footer has an impossible column")
	errFooterRange   = errors.New("footer has an empty or inverted block range")
	errFooterRows    = errors.New("footer claims more rows than a file can have")
)

// decode parses a footer of a file whose pages end at limit.
func (f *footer) decode(b []byte, limit uint64) error {
	le := binary.LittleEndian
	if len(b) < footerFixed {
		return errFooterShort
	}
	f.info.Profile = le.Uint16(b)
	columns := int(le.Uint16(b[2:]))
	b = b[4:]
	for _, v := range []*uint64{&f.info.From, &f.info.To, &f.info.Transactions, &f.info.Logs} {
		*v = le.Uint64(b)
		b = b[8:]
	}
	for _, h := range []*common.Hash{&f.info.FirstParent, &f.info.FirstHash, &f.info.LastHash, (*common.Hash)(&f.root)} {
		copy(h[:], b)
		b = b[32:]
	}
	if f.info.To <= f.info.From {
		return errFooterRange
	}
	if f.info.Blocks() > maximumRows || f.info.Transactions > maximumRows || f.info.Logs > maximumRows {
		return errFooterRows
	}
	if columns*columnFixed > len(b) {
		return errFooterShort
	}
	f.columns = make([]column, columns)
	for i := range f.columns {
		if len(b) < columnFixed {
			return errFooterShort
		}
		c := &f.columns[i]
		c.id = columnID(le.Uint16(b))
		if reserved := le.Uint16(b[2:]); reserved != 0 || slices.ContainsFunc(f.columns[:i], func(o column) bool { return o.id == c.id }) {
			return fmt.Errorf("%w: %s", errFooterColumn, c.id)
		}
		c.pages = le.Uint32(b[4:])
		c.rows = le.Uint64(b[8:])
		c.storedBytes = le.Uint64(b[16:])
		c.rowSize = le.Uint32(b[24:])
		c.rowsPerPage = le.Uint32(b[28:])
		c.base = le.Uint64(b[32:])
		roots := int(le.Uint32(b[40:]))
		b = b[columnFixed:]
		if roots > len(b)/tableEntrySize {
			return errFooterShort
		}
		for range roots {
			c.root = append(c.root, decodeTableEntry(b))
			b = b[tableEntrySize:]
		}
		if !c.plausible(limit) {
			return fmt.Errorf("%w: %s", errFooterColumn, c.id)
		}
	}
	if len(b) != 0 {
		return errFooterSurplus
	}
	return nil
}

// rootOf is the digest over page digests.
func rootOf(digests []byte) (root [32]byte) { return blake3.Sum256(digests) }
