package segments

import (
	"fmt"

	"github.com/ethereum/go-ethereum/common"
)

// Index reads an index file. It proposes positions: distinct values can share a term, so whoever
// uses a position compares what lies there. Positions count from the first log, transaction or block
// that the index covers. Safe for concurrent use.
type Index struct {
	*File
	terms, postings, transactions, blocks *column
}

// NewIndex views an open file as an index file.
func NewIndex(f *File) (*Index, error) {
	if f.footer.info.Kind != KindIndex {
		return nil, fmt.Errorf("segment file %s is of kind %s, not %s", f.name, f.footer.info.Kind, KindIndex)
	}
	x := &Index{File: f}
	for _, c := range []struct {
		to *(*column)
		id columnID
	}{{&x.terms, columnTerms}, {&x.postings, columnPostings}, {&x.transactions, columnTxLocator}, {&x.blocks, columnBlockLocator}} {
		var err error
		if *c.to, err = f.expect(c.id, anyRows, 0); err != nil {
			return nil, err
		}
	}
	return x, nil
}

// List is the posting list of a term.
type List struct {
	// Count is the number of positions; 0 means that no log has the term.
	Count uint64
	p     positions
}

// Find looks up a term.
func (x *Index) Find(term uint32, access *Access) (List, error) {
	p, err := x.lookup(x.terms, term, x.footer.info.Logs, nil, access)
	return List{p.count, p}, err
}

// Transactions proposes positions of the transaction with a hash.
func (x *Index) Transactions(hash *common.Hash, access *Access) ([]uint32, error) {
	p, err := x.lookup(x.transactions, hashTerm(hash[:]), x.footer.info.Transactions, nil, access)
	return p.inline, err
}

// Blocks proposes positions of the block with a hash.
func (x *Index) Blocks(hash *common.Hash, access *Access) ([]uint32, error) {
	p, err := x.lookup(x.blocks, hashTerm(hash[:]), x.footer.info.Blocks(), nil, access)
	return p.inline, err
}

// ListCursor walks a posting list in blocks. One goroutine.
type ListCursor struct {
	x      *Index
	access *Access
	list   List

	page    postingPage
	number  uint32 // of page
	hasPage bool
	next    uint32 // base of the list's block that the next page starts with
	block   int    // of the values in the page
	values  []uint32
	buf     [postingBlock]uint32
	done    bool
}

// Open makes a cursor that stands before the first position.
func (x *Index) Open(list List, access *Access) *ListCursor {
	c := &ListCursor{x: x, access: access, list: list}
	if list.Count == 0 {
		c.done = true
	}
	return c
}

// Count is the length of the list.
func (c *ListCursor) Count() uint64 { return c.list.Count }

// Values are the positions of the current block that were not passed; empty before the first Seek
// and behind the end. Valid until the next Seek.
func (c *ListCursor) Values() []uint32 { return c.values }

// Skip drops the first n values of the current block.
func (c *ListCursor) Skip(n int) { c.values = c.values[n:] }

// lastPage is the last page of a long list.
func (c *ListCursor) lastPage() uint32 { return c.list.p.list.page + c.list.p.list.pages }

// firstBlock is the first block of the current page that belongs to the list.
func (c *ListCursor) firstBlock() int {
	if c.number == c.list.p.list.page {
		return int(c.list.p.list.block)
	}
	return 0
}

// endBlock is one past the last such block.
func (c *ListCursor) endBlock() (int, error) {
	if c.number != c.lastPage() {
		return c.page.blocks, nil
	}
	end := int(c.list.p.list.end)
	if end > c.page.blocks || end <= c.firstBlock() {
		return 0, c.x.damaged(c.page.run, errPostingPage)
	}
	return end, nil
}

// Seek moves to the first block that holds a position at or above target, drops the smaller
// positions, and tells whether any is left. Targets never go back.
func (c *ListCursor) Seek(target uint32) (bool, error) {
	if c.done {
		return false, nil
	}
	if n := len(c.values); n > 0 && c.values[n-1] >= target {
		c.values = c.values[lowerBound(c.values, target):]
		return true, nil
	}
	if c.list.p.inline != nil {
		if c.values == nil {
			c.values = c.list.p.inline
		}
		c.values = c.values[lowerBound(c.values, target):]
		c.done = len(c.values) == 0
		return !c.done, nil
	}
	return c.seekLong(target)
}

func (c *ListCursor) seekLong(target uint32) (bool, error) {
	if err := c.seekPage(target); err != nil {
		return false, err
	}
	for {
		// The block: the last of the page whose base is at most target, then on from there.
		end, err := c.endBlock()
		if err != nil {
			return false, err
		}
		b := max(c.block, c.firstBlock())
		for b+1 < end && c.page.base(b+1) <= target {
			b++
		}
		for ; b < end; b++ {
			n, err := c.page.decode(b, &c.buf)
			if err != nil {
				return false, c.x.damaged(c.page.run, err)
			}
			c.block = b
			if v := c.buf[:n]; v[n-1] >= target {
				c.values = v[lowerBound(v, target):]
				if uint64(v[n-1]) >= c.x.footer.info.Logs {
					return false, c.x.damaged(c.page.run, errPostingPage)
				}
				return true, nil
			}
		}
		if c.number == c.lastPage() {
			c.done, c.values = true, nil
			return false, nil
		}
		if err := c.loadPage(c.number + 1); err != nil {
			return false, err
		}
	}
}

// seekPage loads the last page of the list whose first base is at most target, or the first page.
func (c *ListCursor) seekPage(target uint32) error {
	first, last := c.list.p.list.page, c.lastPage()
	if c.hasPage && (c.number == last || target < c.next) {
		return nil // most seeks stay on the page
	}
	lo, hi := first, last+1
	if c.hasPage {
		lo = c.number + 1
	}
	for lo+1 < hi {
		mid := lo + (hi-lo)/2
		e, err := c.x.entry(c.x.postings, mid, c.access)
		if err != nil {
			return err
		}
		if e.firstRow <= target {
			lo = mid
		} else {
			hi = mid
		}
	}
	return c.loadPage(lo)
}

func (c *ListCursor) loadPage(number uint32) error {
	e, err := c.x.entry(c.x.postings, number, c.access)
	if err != nil {
		return err
	}
	raw, err := c.x.readPage(e, int(number), c.access)
	if err != nil {
		return err
	}
	run := pageRun{raw: raw, number: number, offset: e.offset}
	if err := c.page.parse(run); err != nil {
		return c.x.damaged(run, err)
	}
	c.number, c.hasPage, c.block = number, true, 0
	if number < c.lastPage() {
		if e, err = c.x.entry(c.x.postings, number+1, c.access); err != nil {
			return err
		}
		c.next = e.firstRow
	}
	return nil
}

func lowerBound(v []uint32, target uint32) int {
	lo, hi := 0, len(v)
	for lo < hi {
		mid := int(uint(lo+hi) >> 1)
		if v[mid] < target {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return lo
}
