package segments

import (
	"encoding/binary"
	"errors"
	"fmt"
	"sync"

	"github.com/ethereum/go-ethereum/common"
	"github.com/leani-go/leani/chain"
	"github.com/leani-go/leani/codec"
	"github.com/leani-go/leani/internal/invariants"
)

// Cursor reads logs of one data file by position. Rows read in order cost least: the cursor keeps the
// last page of logs, of the block rows and of the page table, and every dictionary page it has read. One
// goroutine; Close returns it for reuse.
type Cursor struct {
	d      *Data
	access *Access

	page  logPage
	run   pageRun // of page; empty before the first row
	table tableMemo

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
	blocks   rowMemo
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
	if n := int(c.pages); n > cap(m.pages) {
		m.pages = make([][]byte, n)
	} else {
		m.pages = m.pages[:n] // release left all of them empty
	}
}

func (m *pageMemo) release() { clear(m.pages) }

// row reads a row that is in the column.
func (m *pageMemo) row(f *File, row uint32, access *Access) ([]byte, error) {
	c := m.column
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

// keptData is how much room for data a cursor keeps for its next use.
const keptData = 64 << 10

var cursors = sync.Pool{New: func() any { return new(Cursor) }}

// Cursor makes a cursor. access may be nil.
func (d *Data) Cursor(access *Access) *Cursor {
	c := cursors.Get().(*Cursor)
	c.d, c.access, c.hasBlock = d, access, false
	c.shapes.reset(d.shapes)
	c.shortWords.reset(d.shortWords)
	c.words.reset(d.words)
	c.blocks = rowMemo{column: d.blocks}
	return c
}

// Close returns the cursor. What it yielded is not valid afterwards.
func (c *Cursor) Close() {
	invariants.Checkf(c.d != nil, "cursor closed twice")
	invariants.Mangle(c.data)
	c.shapes.release()
	c.shortWords.release()
	c.words.release()
	c.d, c.access, c.page, c.run, c.table, c.blocks = nil, nil, logPage{}, pageRun{}, tableMemo{}, rowMemo{}
	c.log, c.found = chain.Log{}, chain.FoundLog{}
	if cap(c.data) > keptData {
		c.data = nil
	}
	cursors.Put(c)
}

// seek makes row the current one.
func (c *Cursor) seek(row uint32) error {
	if row < c.run.from || row >= c.run.to {
		if err := c.load(row); err != nil {
			return err
		}
	}
	c.row = int(row - c.run.from)
	return nil
}

// load reads the page of a row.
func (c *Cursor) load(row uint32) error {
	end := c.run.end
	forward := row >= c.run.to
	c.run.from, c.run.to = 0, 0 // what follows may fail
	run, err := c.d.find(c.d.logs, row, c.access, &c.table)
	if err != nil {
		return err
	}
	if forward && run.offset < end {
		return c.d.tableError(c.d.logs, run.number/tablePageRows)
	}
	if err := c.page.parse(run.raw, run.from, run.to); err != nil {
		return c.d.damaged(&run, err)
	}
	c.run = run
	return nil
}

var (
	errShape = errors.New("shape does not describe a log")
	errCode  = errors.New("code is not in the dictionary")
)

// head makes row the current one and reads its address, first topic, topic count and data length.
func (c *Cursor) head(row uint32) error {
	if err := c.seek(row); err != nil {
		return err
	}
	code := c.page.shape(c.row)
	if code >= c.d.shapes.rows {
		return c.d.damaged(&c.run, fmt.Errorf("%w: shape %d of %d", errCode, code, c.d.shapes.rows))
	}
	s, err := c.shapes.row(c.d.File, uint32(code), c.access)
	if err != nil {
		return err
	}
	c.log.Address = (*common.Address)(s)
	c.log.NumTopics = s[28]
	c.dataLength = int(binary.LittleEndian.Uint32(s[24:]))
	first := binary.LittleEndian.Uint32(s[20:])
	if c.log.NumTopics > chain.MaximumTopics || c.dataLength > maximumLogData || s[29]|s[30]|s[31] != 0 ||
		(c.log.NumTopics > 0 && uint64(first) >= c.d.topics) {
		return c.d.rowDamaged(c.d.shapes, code, errShape)
	}
	if c.log.NumTopics > 0 {
		c.log.Topics[0], err = c.word(first, 0)
	}
	return err
}

// rest reads the topics beyond the first.
func (c *Cursor) rest() error {
	first, n := c.page.extraTopics(c.row)
	if n != max(int(c.log.NumTopics), 1)-1 {
		return c.d.damaged(&c.run, errLogPage)
	}
	for k := range n {
		code := c.page.topics.At(first + k)
		if code >= c.d.topics {
			return c.d.damaged(&c.run, fmt.Errorf("%w: topic %d of %d", errCode, code, c.d.topics))
		}
		var err error
		if c.log.Topics[k+1], err = c.word(uint32(code), k+1); err != nil {
			return err
		}
	}
	return nil
}

// word reads the word of a code, which is in the dictionary, as topic k.
func (c *Cursor) word(code uint32, k int) (*common.Hash, error) {
	short := c.d.shortWords.rows
	if uint64(code) >= short {
		b, err := c.words.row(c.d.File, uint32(uint64(code)-short), c.access)
		if err != nil {
			return nil, err
		}
		return (*common.Hash)(b), nil
	}
	b, err := c.shortWords.row(c.d.File, code, c.access)
	if err != nil {
		return nil, err
	}
	*(*common.Address)(c.expanded[k][common.HashLength-shortWordSize:]) = common.Address(b)
	return &c.expanded[k], nil
}

// appendData appends the data of the current row.
func (c *Cursor) appendData(dst []byte) ([]byte, error) {
	t, err := c.page.trimmed(c.row)
	if err == nil {
		// A word of 32 bytes takes six bits at least: a larger claim is damage.
		if c.dataLength > 2*codec.WordSize*(len(t)+1) {
			err = codec.ErrWords
		} else {
			dst, err = codec.DecodeWords(dst, t, c.dataLength)
		}
	}
	if err != nil {
		err = c.d.damaged(&c.run, err)
	}
	return dst, err
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
		return nil, c.d.damaged(&c.run, errLogPage)
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
	i := uint64(c.page.block)
	if c.hasBlock && tx >= c.block.FirstTransaction {
		i = max(i, c.block.Ref.Number-c.d.footer.info.From+1)
	}
	b, err := c.d.blockOf(tx, i, &c.blocks, c.access)
	if err != nil {
		return err
	}
	ref := b.Ref // FoundLog promises a new pointer for a new block
	c.block, c.hasBlock, c.found.Block = b, true, &ref
	return nil
}
