package segments

import "github.com/leani-go/leani/codec"

// column is the footer's entry of one column.
type column struct {
	id    columnID
	rows  uint64
	pages uint32

	// A fixed column has rows of rowSize bytes, rowsPerPage in every page but the last, and its
	// pages lie one behind the other from base on.
	rowSize     uint32 // 0 for a variable column
	rowsPerPage uint32
	base        uint64

	// A variable column has a page table, itself in pages; root is the table of those.
	root []tableEntry

	storedBytes uint64 // pages of the column, without tables
}

// compressible tells whether pages of the column may be compressed. Queries read the others at random.
func (c *column) compressible() bool {
	switch c.id {
	case columnHeaders, columnBodies, columnTransactions, columnReceipts, columnFrames, columnProfile:
		return true
	default:
		return false
	}
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
	return c.fixedEntry(c.pages - 1).end()
}

// plausible checks the relations between the numbers of a column in a file whose pages end at limit,
// so that readers can compute with them.
func (c *column) plausible(limit uint64) bool {
	if c.rowSize == 0 {
		return c.plausibleRoot(limit)
	}
	if len(c.root) != 0 || c.rowsPerPage == 0 || c.rows > maximumFileSize ||
		uint64(c.rowSize)*uint64(c.rowsPerPage) > codec.MaximumPage-codec.PageHeader {
		return false
	}
	return uint64(c.pages) == (c.rows+uint64(c.rowsPerPage)-1)/uint64(c.rowsPerPage) &&
		(c.pages == 0 || (c.base >= headerSize && c.base <= limit && c.fixedEnd() <= limit))
}

// plausibleRoot is plausible for a variable column.
func (c *column) plausibleRoot(limit uint64) bool {
	if c.rowsPerPage != 0 || c.base != 0 || uint64(len(c.root)) != (uint64(c.pages)+tablePageRows-1)/tablePageRows {
		return false
	}
	at := uint64(headerSize)
	for i, e := range c.root {
		entries := min(int(c.pages)-i*tablePageRows, tablePageRows)
		if e.offset < at || e.end() > limit || int(e.size) != codec.PageHeader+entries*tableEntrySize {
			return false
		}
		at = e.end()
	}
	return true
}
