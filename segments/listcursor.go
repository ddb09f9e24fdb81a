package segments

import (
	"github.com/leani-go/leani/codec"
	"github.com/leani-go/leani/internal/invariants"
)

// ListCursor walks a posting list in blocks. One goroutine.
type ListCursor struct {
	x      *Index
	access *Access
	list   List

	table   tableMemo
	page    postingPage // of long lists
	started bool        // page is one of the list's
	block   int         // of the values in the page
	values  []uint32
	buf     *[postingBlock]uint32 // of long lists
	done    bool

	target uint32 // of the last Seek; kept only where invariants are checked
}

// Open makes a cursor that stands before the first position.
func (x *Index) Open(list List, access *Access) *ListCursor {
	return &ListCursor{x: x, access: access, list: list, done: list.Count == 0}
}

// reset starts again with another list of the same index. The page is kept: the next list often begins
// where one ends.
func (c *ListCursor) reset(list List) {
	c.list, c.started, c.block, c.values, c.done, c.target = list, false, 0, nil, list.Count == 0, 0
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
	if c.page.run.number == c.list.p.list.page {
		return int(c.list.p.list.block)
	}
	return 0
}

// endBlock is one past the last such block.
func (c *ListCursor) endBlock() (int, error) {
	if c.page.run.number != c.lastPage() {
		return c.page.blocks, nil
	}
	end := int(c.list.p.list.end)
	if end > c.page.blocks || end <= c.firstBlock() {
		return 0, c.x.damaged(&c.page.run, errPostingPage)
	}
	return end, nil
}

// Seek moves to the first block that holds a position at or above target, drops the smaller
// positions, and tells whether any is left. Targets never go back.
func (c *ListCursor) Seek(target uint32) (bool, error) {
	if invariants.Enabled {
		if target < c.target {
			invariants.Checkf(false, "a list goes back from %d to %d", c.target, target)
		}
		c.target = target
	}
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
		end, err := c.endBlock()
		if err != nil {
			return false, err
		}
		// The block: the last of the page whose base is at most target, then on from there.
		for b := c.page.findBlock(max(c.block, c.firstBlock()), end, target); b < end; b++ {
			n, err := c.page.decode(b, c.x.footer.info.Logs, c.buf)
			if err != nil {
				return false, c.x.damaged(&c.page.run, err)
			}
			c.block = b
			if v := c.buf[:n]; v[n-1] >= target {
				c.values = v[lowerBound(v, target):]
				return true, nil
			}
		}
		if c.page.run.number == c.lastPage() {
			c.done, c.values = true, nil
			return false, nil
		}
		if err := c.load(c.page.run.number + 1); err != nil {
			return false, err
		}
	}
}

// probeBelow is the number of positions asked of one block up to which probing its list is cheaper than
// decoding it.
const probeBelow = 24

// Mark sets mark[i] where the list has positions[i], which ascend and do not go back behind what Seek or
// Mark was asked before; more is false when the list has nothing behind them.
func (c *ListCursor) Mark(positions []uint32, mark []bool) (more bool, err error) {
	for i := 0; i < len(positions); {
		n := 0
		if !c.decoded(positions[i]) && !c.done && c.list.p.inline == nil {
			if n, err = c.probe(positions[i:], mark[i:]); err != nil {
				return false, err
			}
		}
		if n == 0 {
			if more, err := c.Seek(positions[i]); err != nil || !more {
				return false, err
			}
			n = c.merge(positions[i:], mark[i:])
		}
		i += n
	}
	return true, nil
}

// decoded tells whether the current values reach to a position.
func (c *ListCursor) decoded(position uint32) bool {
	n := len(c.values)
	return n > 0 && c.values[n-1] >= position
}

// merge marks the positions up to the last of the current values and counts them.
func (c *ListCursor) merge(positions []uint32, mark []bool) int {
	v, k := c.values, 0
	last := v[len(v)-1]
	for i, p := range positions {
		if p > last {
			return i
		}
		for v[k] < p {
			k++
		}
		if v[k] == p {
			mark[i] = true
		}
	}
	return len(positions)
}

// probe marks the first positions, as far as they fall into one block of a long list, and counts them;
// 0 means that they are so many that the block is better decoded.
func (c *ListCursor) probe(positions []uint32, mark []bool) (int, error) {
	if invariants.Enabled {
		if positions[0] < c.target {
			invariants.Checkf(false, "a list goes back from %d to %d", c.target, positions[0])
		}
		c.target = positions[0]
	}
	if err := c.seekPage(positions[0]); err != nil {
		return 0, err
	}
	end, err := c.endBlock()
	if err != nil {
		return 0, err
	}
	number := c.page.findBlock(max(c.block, c.firstBlock()), end, positions[0])
	next := ^uint32(0) // no position is as large
	if number+1 < end {
		next = c.page.base(number + 1)
	} else if c.page.run.number != c.lastPage() {
		next = c.page.run.to
	}
	n := 0
	for n < len(positions) && positions[n] < next {
		if n++; n > probeBelow {
			return 0, nil
		}
	}
	b, err := c.page.block(number)
	if err != nil {
		return 0, c.x.damaged(&c.page.run, err)
	}
	var p codec.EliasFanoProbe
	if err := p.Reset(b.list, b.n, b.shift, b.unary); err != nil {
		return 0, c.x.damaged(&c.page.run, err)
	}
	for i, position := range positions[:n] {
		if position >= b.base && p.Has(position-b.base) {
			mark[i] = true
		}
	}
	c.block, c.values = number, nil
	return n, nil
}

// seekPage loads the last page of the list whose first base is at most target, or the first page.
func (c *ListCursor) seekPage(target uint32) error {
	first, last := c.list.p.list.page, c.lastPage()
	if c.started {
		if c.page.run.number == last || target < c.page.run.to {
			return nil // most seeks stay on the page
		}
		first = c.page.run.number + 1
	}
	// The first page may begin with another list: pages behind it have bases in order.
	if first < last {
		next, err := c.x.entry(c.x.postings, first+1, c.access, &c.table)
		if err != nil {
			return err
		}
		if next.firstRow <= target {
			if first, err = c.x.findPageIn(c.x.postings, first+1, last+1, target, rowKey, c.access, &c.table); err != nil {
				return err
			}
		}
	}
	return c.load(first)
}

// load reads a page of the list.
func (c *ListCursor) load(number uint32) error {
	if c.page.blocks == 0 || c.page.run.number != number {
		run, err := c.x.page(c.x.postings, number, c.access, &c.table)
		if err != nil {
			return err
		}
		if err := c.page.parse(run); err != nil {
			return c.x.damaged(&run, err)
		}
	}
	if c.buf == nil {
		c.buf = new([postingBlock]uint32)
	}
	c.started, c.block = true, 0
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
