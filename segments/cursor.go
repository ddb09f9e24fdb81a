package segments

import (
	"encoding/binary"
	"sync"

	"github.com/ethereum/go-ethereum/common"
	"github.com/leani-go/leani/chain"
	"github.com/leani-go/leani/codec"
)

// Cursor reads logs of one data file by position. Rows read in order cost least: the cursor keeps the
// last page of logs, the last block and the last transaction hash page. One goroutine; Close returns
// it for reuse.
type Cursor struct {
	d      *Data
	access *Access

	page    logPage
	run     pageRun
	hasPage bool

	shapes     pageMemo
	shortWords pageMemo
	words      pageMemo

	// The current row.
	row        int // in the page
	log        chain.Log
	dataLength int
	expanded   [chain.MaximumTopics]common.Hash // topics that are stored short

	block    BlockRow
	hasBlock bool
	found    chain.FoundLog
	data     []byte
}

// pageMemo keeps the pages of a fixed column that a cursor has read, so that the cache is asked once
// for each.
type pageMemo struct {
	column *column
	pages  [][]byte
}

func (m *pageMemo) reset(c *column) {
	m.column = c
	if n := int(c.pages); n <= cap(m.pages) {
		m.pages = m.pages[:n]
		clear(m.pages)
	} else {
		m.pages = make([][]byte, n)
	}
}

func (m *pageMemo) rowOf(f *File, row uint32, access *Access) ([]byte, error) {
	c := m.column
	if uint64(row) >= c.rows {
		return nil, f.rowError(c, uint64(row))
	}
	i := row / c.rowsPerPage
	p := m.pages[i]
	if p == nil {
		var err error
		if p, err = f.fixedPage(c, i, access); err != nil {
			return nil, err
		}
		m.pages[i] = p
	}
	at := row % c.rowsPerPage * c.rowSize
	return p[at : at+c.rowSize], nil
}

var cursors = sync.Pool{New: func() any { return new(Cursor) }}

// Cursor makes a cursor. access may be nil.
func (d *Data) Cursor(access *Access) *Cursor {
	c := cursors.Get().(*Cursor)
	c.d, c.access = d, access
	c.hasPage, c.hasBlock = false, false
	c.shapes.reset(d.shapes)
	c.shortWords.reset(d.shortWords)
	c.words.reset(d.words)
	return c
}

// Close returns the cursor. What it yielded is not valid afterwards.
func (c *Cursor) Close() {
	c.d, c.access = nil, nil
	clear(c.shapes.pages)
	clear(c.shortWords.pages)
	clear(c.words.pages)
	c.page, c.run = logPage{}, pageRun{}
	cursors.Put(c)
}

// seek makes row the current one.
func (c *Cursor) seek(row uint32) error {
	if !c.hasPage || row < c.run.from || row >= c.run.to {
		run, err := c.d.find(c.d.logs, row, c.access)
		if err != nil {
			return err
		}
		if err := c.page.parse(run.raw, run.from, run.to); err != nil {
			return c.d.damaged(run, err)
		}
		c.run, c.hasPage = run, true
	}
	c.row = int(row - c.run.from)
	return nil
}

// head makes row the current one and reads its address, first topic, topic count and data length.
func (c *Cursor) head(row uint32) error {
	if err := c.seek(row); err != nil {
		return err
	}
	s, err := c.shapes.rowOf(c.d.File, c.page.shape(c.row), c.access)
	if err != nil {
		return err
	}
	c.log.Address = (*common.Address)(s)
	c.log.NumTopics = s[28]
	c.dataLength = int(binary.LittleEndian.Uint32(s[24:]))
	if c.log.NumTopics > chain.MaximumTopics {
		return c.d.damaged(c.run, errLogPage)
	}
	if c.log.NumTopics > 0 {
		c.log.Topics[0], err = c.word(binary.LittleEndian.Uint32(s[20:]), 0)
	}
	return err
}

// word reads topic k by its code.
func (c *Cursor) word(code uint32, k int) (*common.Hash, error) {
	if short := uint32(c.d.shortWords.rows); code >= short {
		b, err := c.words.rowOf(c.d.File, code-short, c.access)
		if err != nil {
			return nil, err
		}
		return (*common.Hash)(b), nil
	}
	b, err := c.shortWords.rowOf(c.d.File, code, c.access)
	if err != nil {
		return nil, err
	}
	copy(c.expanded[k][common.HashLength-shortWordSize:], b)
	return &c.expanded[k], nil
}

// rest reads the topics beyond the first.
func (c *Cursor) rest() error {
	first, n := c.page.extraTopics(c.row)
	if n != max(int(c.log.NumTopics), 1)-1 {
		return c.d.damaged(c.run, errLogPage)
	}
	for k := range n {
		var err error
		if c.log.Topics[k+1], err = c.word(uint32(c.page.topics.At(first+k)), k+1); err != nil {
			return err
		}
	}
	return nil
}

// appendData appends the data of the current row.
func (c *Cursor) appendData(dst []byte) ([]byte, error) {
	t, err := c.page.trimmed(c.row)
	if err != nil {
		return dst, c.d.damaged(c.run, err)
	}
	// A word of 32 bytes takes at least half a byte of classes: a larger claim is damage.
	if c.dataLength > 2*codec.WordSize*(len(t)+1) {
		return dst, c.d.damaged(c.run, codec.ErrWords)
	}
	dst, err = codec.DecodeWords(dst, t, c.dataLength)
	if err != nil {
		return dst, c.d.damaged(c.run, err)
	}
	return dst, nil
}

// raw reads a log without its data, and the position of its transaction in the file. The log is valid
// until the next call.
func (c *Cursor) raw(row uint32) (transaction uint32, l *chain.Log, err error) {
	if err := c.head(row); err != nil {
		return 0, nil, err
	}
	if err := c.rest(); err != nil {
		return 0, nil, err
	}
	return c.page.transactionOf(c.row), &c.log, nil
}

// Find reads the log at a position when it matches; it returns nil when it does not. The result is
// valid until the next call.
func (c *Cursor) Find(row uint32, m *Matcher) (*chain.FoundLog, error) {
	if err := c.head(row); err != nil {
		return nil, err
	}
	if !m.head(&c.log) {
		return nil, nil
	}
	if err := c.rest(); err != nil {
		return nil, err
	}
	if !m.rest(&c.log) {
		return nil, nil
	}
	tx := c.page.transactionOf(c.row)
	if err := c.seekBlock(tx); err != nil {
		return nil, err
	}
	if row < c.block.FirstLog || row-c.block.FirstLog >= c.block.Logs {
		return nil, c.d.damaged(c.run, errLogPage)
	}
	var err error
	if c.data, err = c.appendData(c.data[:0]); err != nil {
		return nil, err
	}
	f := &c.found
	f.Log = c.log
	f.Data = c.data
	f.TransactionHash = c.page.hash(tx)
	f.TransactionIndex, f.LogIndex = tx-c.block.FirstTransaction, row-c.block.FirstLog
	return f, nil
}

// seekBlock makes the block of a transaction of the current page the current one.
func (c *Cursor) seekBlock(tx uint32) error {
	if c.hasBlock && tx-c.block.FirstTransaction < c.block.Transactions {
		return nil
	}
	i := c.page.block
	if c.hasBlock && tx > c.block.FirstTransaction {
		i = max(i, uint32(c.block.Ref.Number-c.d.footer.info.From)+1)
	}
	for ; uint64(i) < c.d.footer.info.Blocks(); i++ {
		b, err := c.d.blockRow(i, c.access)
		if err != nil {
			return err
		}
		if tx < b.FirstTransaction {
			break
		}
		if tx-b.FirstTransaction < b.Transactions {
			ref := b.Ref // FoundLog promises a new pointer for a new block
			c.block, c.hasBlock, c.found.Block = b, true, &ref
			return nil
		}
	}
	return c.d.damaged(c.run, errLogPage)
}

// Matcher decides whether a log matches a filter, fast for long lists.
type Matcher struct {
	filter    *chain.LogFilter
	addresses map[common.Address]struct{}
	topics    [chain.MaximumTopics]map[common.Hash]struct{}
	never     bool
}

// longList is the number of alternatives above which a set is faster than comparing each.
const longList = 8

// NewMatcher prepares a filter, which must not change while the matcher is used. A matcher is
// immutable and safe for concurrent use.
func NewMatcher(filter *chain.LogFilter) *Matcher {
	m := &Matcher{filter: filter, never: len(filter.Topics) > chain.MaximumTopics}
	if len(filter.Addresses) > longList {
		m.addresses = make(map[common.Address]struct{}, len(filter.Addresses))
		for _, a := range filter.Addresses {
			m.addresses[a] = struct{}{}
		}
	}
	if m.never {
		return m
	}
	for i, alternatives := range filter.Topics {
		if len(alternatives) > longList {
			m.topics[i] = make(map[common.Hash]struct{}, len(alternatives))
			for _, t := range alternatives {
				m.topics[i][t] = struct{}{}
			}
		}
	}
	return m
}

// head checks address, topic count and first topic.
func (m *Matcher) head(l *chain.Log) bool {
	if m.never || len(m.filter.Topics) > int(l.NumTopics) {
		return false
	}
	if m.addresses != nil {
		if _, ok := m.addresses[*l.Address]; !ok {
			return false
		}
	} else if len(m.filter.Addresses) > 0 && !oneOf(m.filter.Addresses, l.Address) {
		return false
	}
	return len(m.filter.Topics) == 0 || m.topic(0, l.Topics[0])
}

// rest checks the topics beyond the first, after head.
func (m *Matcher) rest(l *chain.Log) bool {
	for i := 1; i < len(m.filter.Topics); i++ {
		if !m.topic(i, l.Topics[i]) {
			return false
		}
	}
	return true
}

func (m *Matcher) topic(i int, t *common.Hash) bool {
	if m.topics[i] != nil {
		_, ok := m.topics[i][*t]
		return ok
	}
	return len(m.filter.Topics[i]) == 0 || oneOf(m.filter.Topics[i], t)
}

func oneOf[T comparable](list []T, v *T) bool {
	for i := range list {
		if list[i] == *v {
			return true
		}
	}
	return false
}
