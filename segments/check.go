package segments

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/leani-go/leani/internal/corrupt"
	"github.com/zeebo/blake3"
)

// CheckPages reads every byte of the file and compares it with what was written: the header, the
// checksum and the BLAKE3 of every page, and the digest over all of them. It does not use the cache.
// report is called with the stored bytes of each page, and may be nil.
//
// It returns the first damage found. Together with a footer digest that is known from elsewhere (the
// catalog), success proves that the file is byte for byte the one that was written.
func (f *File) CheckPages(ctx context.Context, report func(bytes int)) error {
	var head [headerSize]byte
	if _, err := f.src.ReadAt(head[:], 0); err != nil {
		return f.readError(0, err)
	}
	le := binary.LittleEndian
	if string(head[:8]) != magic || le.Uint16(head[8:]) != formatVersion || Kind(le.Uint16(head[10:])) != f.footer.info.Kind || le.Uint32(head[12:]) != 0 {
		return corrupt.AtOffset(f.name, 0, errHeader)
	}
	pages, err := f.pages()
	if err != nil {
		return err
	}
	digests, err := f.column(columnDigests)
	if err != nil {
		return err
	}
	if digests.rowSize != digestSize || digests.rows != uint64(len(pages)) {
		return corrupt.AtOffset(f.name, int64(f.limit), fmt.Errorf("%w: %d digests of %d pages", errFooterColumn, digests.rows, len(pages)))
	}
	var all []byte
	for i := range digests.pages {
		raw, err := f.readStored(digests.fixedEntry(i), int(i))
		if err != nil {
			return err
		}
		all = append(all, raw...)
	}
	if len(all) != len(pages)*digestSize || rootOf(all) != f.footer.root {
		return corrupt.AtOffset(f.name, int64(f.limit), errRootDigest)
	}
	at := uint64(headerSize)
	var stored []byte
	for i, p := range pages {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if p.entry.offset != at {
			return corrupt.AtOffset(f.name, int64(at), fmt.Errorf("%w: %s page %d starts at %d", errPageTable, p.column, p.number, p.entry.offset))
		}
		at += uint64(p.entry.size)
		if _, err := f.readStored(p.entry, int(p.number)); err != nil {
			return err
		}
		stored = slices.Grow(stored[:0], int(p.entry.size))[:p.entry.size]
		if _, err := f.src.ReadAt(stored, int64(p.entry.offset)); err != nil {
			return f.readError(int64(p.entry.offset), err)
		}
		if sum := blake3.Sum256(stored); !bytes.Equal(sum[:digestSize], all[i*digestSize:(i+1)*digestSize]) {
			return corrupt.AtPage(f.name, int(p.number), int64(p.entry.offset), errPageDigest)
		}
		if report != nil {
			report(len(stored))
		}
	}
	if digests.pages > 0 && digests.base != at {
		return corrupt.AtOffset(f.name, int64(at), fmt.Errorf("%w: %s", errPageTable, columnDigests))
	}
	if end := at + digests.storedBytes; end != f.limit {
		return corrupt.AtOffset(f.name, int64(end), fmt.Errorf("%w: pages end at %d, the footer starts at %d", errPageTable, end, f.limit))
	}
	return nil
}

// pageRef is a page with where it belongs.
type pageRef struct {
	entry  tableEntry
	column columnID
	number uint32
	table  bool // a page of the column's page table
}

// pages lists all pages but those of the digests, in file order.
func (f *File) pages() ([]pageRef, error) {
	var out []pageRef
	for i := range f.footer.columns {
		c := &f.footer.columns[i]
		if c.id == columnDigests {
			continue
		}
		for n := range c.pages {
			if c.rowSize > 0 {
				out = append(out, pageRef{c.fixedEntry(n), c.id, n, false})
				continue
			}
			e, err := f.entry(c, n, nil)
			if err != nil {
				return nil, err
			}
			out = append(out, pageRef{e, c.id, n, false})
		}
		for n, e := range c.root {
			out = append(out, pageRef{e, c.id, uint32(n), true})
		}
	}
	slices.SortFunc(out, func(a, b pageRef) int {
		if a.entry.offset < b.entry.offset {
			return -1
		}
		return 1
	})
	return out, nil
}
