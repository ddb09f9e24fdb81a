package segments

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/leani-go/leani/codec"
	"github.com/leani-go/leani/internal/corrupt"
	"github.com/zeebo/blake3"
)

// MaximumProblems is how many problems CheckFile collects before it stops.
const MaximumProblems = 100

// Report is what CheckFile found.
type Report struct {
	// Pages and Bytes were read and compared: pages of all columns, tables and digests, and their
	// stored bytes.
	Pages uint64
	Bytes uint64
	// Problems say what is damaged and where, at most MaximumProblems of them; each is a
	// *corrupt.Error. There is one for each page, however many rows it spoils.
	Problems []error
}

// CheckFile proves that a file is well-formed by itself: CheckPages for its bytes, then CheckRows for
// what they say. It goes on after damage and collects problems up to MaximumProblems. It does not use
// the file's cache.
//
// The error is the context's, or what the source returned; the report then says what was found before.
func CheckFile(ctx context.Context, f *File) (Report, error) {
	var r Report
	seen := make(map[location]bool)
	found := func(err error) error {
		var damage *corrupt.Error
		if !errors.As(err, &damage) {
			return err
		}
		at := location{damage.Page, damage.Offset}
		if seen[at] {
			return nil
		}
		seen[at] = true
		r.Problems = append(r.Problems, err)
		if len(r.Problems) == MaximumProblems {
			return errEnough
		}
		return nil
	}
	err := f.checkPages(ctx, func(n int) {
		r.Pages++
		r.Bytes += uint64(n)
	}, found)
	if err == nil {
		err = f.checkRows(ctx, found)
	}
	if errors.Is(err, errEnough) {
		err = nil
	}
	return r, err
}

type location struct {
	page   int
	offset int64
}

// errEnough ends a check that has found MaximumProblems.
var errEnough = errors.New("too many problems")

// first is a collector of problems that stops at the first.
func first(err error) error { return err }

// CheckPages reads every byte of the file and compares it with what was written: the header, the
// checksum and the BLAKE3 of every page, and the digest over all of them. It does not use the cache.
// report is called with the number of stored bytes of each page, and may be nil.
//
// It returns the first damage found. Together with a footer digest that is known from elsewhere (the
// catalog), success proves that the file is byte for byte the one that was written.
func (f *File) CheckPages(ctx context.Context, report func(bytes int)) error {
	if report == nil {
		report = func(int) {}
	}
	return f.checkPages(ctx, report, first)
}

var (
	errRootDigest = errors.New("digest over all pages differs")
	errPageDigest = errors.New("page digest differs")
	errGap        = errors.New("pages do not lie one behind the other")
	errColumnSize = errors.New("pages of the column do not have the bytes that the footer says")
)

// checkPages is CheckPages that tells found of each problem and goes on while that returns nil.
func (f *File) checkPages(ctx context.Context, report func(bytes int), found func(error) error) error {
	if err := f.checkHeader(found); err != nil {
		return err
	}
	pages, complete, err := f.pages(found)
	if err != nil {
		return err
	}
	digests, err := f.checkDigests(pages, complete, report, found)
	if err != nil {
		return err
	}
	c := pageChecker{f: f, report: report}
	at := uint64(headerSize)
	for i, p := range pages {
		if err := ctx.Err(); err != nil {
			return err
		}
		var digest []byte
		if digests != nil {
			digest = digests[i*digestSize:][:digestSize]
		}
		err := c.check(p, digest)
		if err == nil && complete && p.entry.offset != at {
			err = f.pageError(p, fmt.Errorf("%w: the one before ends at %d", errGap, at))
		}
		if err != nil {
			if err := found(err); err != nil {
				return err
			}
		}
		at = p.entry.end()
	}
	if !complete {
		return nil
	}
	end, err := f.digestsEnd(at)
	if err == nil && end != f.limit {
		err = corrupt.AtOffset(f.name, int64(end), fmt.Errorf("%w: pages end at %d, the footer starts at %d", errGap, end, f.limit))
	}
	if err != nil {
		return found(err)
	}
	return nil
}

func (f *File) checkHeader(found func(error) error) error {
	var head [headerSize]byte
	if _, err := f.src.ReadAt(head[:], 0); err != nil {
		return found(f.readError(0, err))
	}
	le := binary.LittleEndian
	if string(head[:8]) != magic || le.Uint16(head[8:]) != formatVersion || Kind(le.Uint16(head[10:])) != f.footer.info.Kind || le.Uint32(head[12:]) != 0 {
		return found(corrupt.AtOffset(f.name, 0, errHeader))
	}
	return nil
}

// checkDigests reads the digests of all pages. They are nil when they cannot be compared with pages:
// because they are damaged, or the list of pages is not complete.
func (f *File) checkDigests(pages []pageRef, complete bool, report func(int), found func(error) error) ([]byte, error) {
	c, err := f.column(columnDigests)
	if err != nil {
		return nil, found(err)
	}
	if c.rowSize != digestSize || (complete && c.rows != uint64(len(pages))) {
		return nil, found(corrupt.AtOffset(f.name, int64(f.limit), fmt.Errorf("%w: %d digests of %d bytes, want %d of %d", errFooterColumn, c.rows, c.rowSize, len(pages), digestSize)))
	}
	var all []byte
	for i := range c.pages {
		e := c.fixedEntry(i)
		raw, err := f.readStored(e, int(i))
		if err == nil && codec.PageHeader+len(raw) != int(e.size) {
			err = corrupt.AtPage(f.name, int(i), int64(e.offset), errPageShape)
		}
		if err != nil {
			if err := found(err); err != nil {
				return nil, err
			}
			complete = false
			continue
		}
		report(int(e.size))
		all = append(all, raw...)
	}
	if !complete {
		return nil, nil
	}
	if rootOf(all) != f.footer.root {
		return nil, found(corrupt.AtOffset(f.name, int64(f.limit), errRootDigest))
	}
	return all, nil
}

// digestsEnd is where the digests end, which start at at.
func (f *File) digestsEnd(at uint64) (uint64, error) {
	c, err := f.column(columnDigests)
	if err != nil {
		return at, err
	}
	if c.pages == 0 {
		return at, nil
	}
	if c.base != at {
		return at, corrupt.AtOffset(f.name, int64(at), fmt.Errorf("%w: %s", errGap, columnDigests))
	}
	return c.fixedEnd(), nil
}

// pageChecker reads pages past the cache and compares them with their checksums and digests.
type pageChecker struct {
	f      *File
	report func(int)
	stored []byte // of the page read last; DecodePage may have changed what lies behind it
}

// read reads the stored bytes of a page.
func (c *pageChecker) read(p pageRef) error {
	f, e := c.f, p.entry
	if e.offset < headerSize || e.end() > f.limit {
		return f.pageError(p, errPageTable)
	}
	c.stored = slices.Grow(c.stored[:0], int(e.size)+codec.Slack)[:e.size]
	if _, err := f.src.ReadAt(c.stored, int64(e.offset)); err != nil {
		return f.readError(int64(e.offset), err)
	}
	return nil
}

// check reads a page and compares it. Without a digest only its checksum counts.
func (c *pageChecker) check(p pageRef, digest []byte) error {
	if err := c.read(p); err != nil {
		return err
	}
	sum := blake3.Sum256(c.stored)
	if _, err := codec.DecodePage(c.stored); err != nil {
		return c.f.pageError(p, err)
	}
	if digest != nil && string(sum[:digestSize]) != string(digest) {
		return c.f.pageError(p, errPageDigest)
	}
	c.report(int(p.entry.size))
	return nil
}

// pageError locates damage of a page.
func (f *File) pageError(p pageRef, err error) error {
	return corrupt.AtPage(f.name, int(p.number), int64(p.entry.offset), fmt.Errorf("%s: %w", p, err))
}

// pageRef is a page with where it belongs.
type pageRef struct {
	entry  tableEntry
	column columnID
	number uint32
	table  bool // a page of the column's page table
}

func (p pageRef) String() string {
	if p.table {
		return p.column.String() + " page table"
	}
	return p.column.String()
}

// pages lists all pages but those of the digests, in file order. complete is false when the damage of a
// page table, of which found was told, hides some.
func (f *File) pages(found func(error) error) (list []pageRef, complete bool, err error) {
	complete = true
	for i := range f.footer.columns {
		c := &f.footer.columns[i]
		if c.id == columnDigests {
			continue
		}
		from, ok, stored := len(list), true, uint64(0)
		list, ok, err = f.columnPages(list, c, found)
		if err != nil {
			return nil, false, err
		}
		complete = complete && ok
		for _, p := range list[from:] {
			stored += uint64(p.entry.size)
		}
		if ok && stored != c.storedBytes {
			if err := found(corrupt.AtOffset(f.name, int64(f.limit), fmt.Errorf("%w: %s has %d, want %d", errColumnSize, c.id, stored, c.storedBytes))); err != nil {
				return nil, false, err
			}
		}
		for n, e := range c.root {
			list = append(list, pageRef{e, c.id, uint32(n), true})
		}
	}
	slices.SortStableFunc(list, func(a, b pageRef) int { return cmp.Compare(a.entry.offset, b.entry.offset) })
	return list, complete, nil
}

// columnPages lists the pages of one column without its page table.
func (f *File) columnPages(list []pageRef, c *column, found func(error) error) (_ []pageRef, complete bool, err error) {
	if c.rowSize > 0 {
		for n := range c.pages {
			list = append(list, pageRef{c.fixedEntry(n), c.id, n, false})
		}
		return list, true, nil
	}
	complete = true
	uncached, at := f.uncached(), uint64(headerSize)
	for t := range c.root {
		table, err := uncached.tablePage(c, uint32(t), nil, new(tableMemo))
		for k := 0; k < len(table); k += tableEntrySize {
			e := decodeTableEntry(table[k:])
			if e.offset < at || e.end() > f.limit { // read no byte twice
				err = f.tableError(c, uint32(t))
				continue
			}
			list = append(list, pageRef{e, c.id, uint32(t*tablePageRows + k/tableEntrySize), false})
			at = e.end()
		}
		if err != nil {
			if err := found(err); err != nil {
				return nil, false, err
			}
			complete = false
		}
	}
	return list, complete, nil
}
