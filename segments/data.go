package segments

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/ethereum/go-ethereum/common"
	"github.com/leani-go/leani/chain"
)

// Data reads a data file. Safe for concurrent use.
type Data struct {
	*File
	blocks, headers, bodies, transactions, receipts, logs, shapes, shortWords, words *column

	topics uint64 // words of both columns: the bound of topic codes
}

// NewData views an open file as a data file.
func NewData(f *File) (*Data, error) {
	if f.footer.info.Kind != KindData {
		return nil, f.errKind(KindData)
	}
	d := &Data{File: f}
	for _, c := range []struct {
		to      **column
		id      columnID
		rows    uint64
		rowSize uint32
	}{
		{&d.blocks, columnBlocks, f.footer.info.Blocks() + 1, blockRowSize},
		{&d.headers, columnHeaders, f.footer.info.Blocks(), 0},
		{&d.bodies, columnBodies, f.footer.info.Blocks(), 0},
		{&d.transactions, columnTransactions, f.footer.info.Transactions, 0},
		{&d.receipts, columnReceipts, f.footer.info.Blocks(), 0},
		{&d.logs, columnLogs, f.footer.info.Logs, 0},
		{&d.shapes, columnShapes, anyRows, shapeSize},
		{&d.shortWords, columnShortWords, anyRows, shortWordSize},
		{&d.words, columnWords, anyRows, common.HashLength},
	} {
		var err error
		if *c.to, err = f.expect(c.id, c.rows, c.rowSize); err != nil {
			return nil, err
		}
	}
	d.topics = d.shortWords.rows + d.words.rows
	return d, nil
}

// BuilderMemory is roughly what a DataBuilder holds that has the blocks of the file, in bytes: log pages,
// dictionaries, and some numbers for each log. Compare DataBuilder.Memory.
func (d *Data) BuilderMemory() int64 {
	const perLog = 16
	stored := d.logs.storedBytes + d.shapes.storedBytes + d.shortWords.storedBytes + d.words.storedBytes
	return int64(stored + perLog*d.footer.info.Logs)
}

// BlockRow is what a data file knows of a block without reading its header.
type BlockRow struct {
	Ref              chain.BlockRef // without the parent hash
	FirstTransaction uint32         // position in the file; transactions of the block follow
	FirstLog         uint32         // position in the file
	Transactions     uint32
	Logs             uint32
}

var errBlockRows = errors.New("block rows are not in order")

// Block reads the row of block n, which must lie in the file.
func (d *Data) Block(n uint64, access *Access) (BlockRow, error) {
	info := &d.footer.info
	if n < info.From || n >= info.To {
		return BlockRow{}, d.rowError(d.blocks, n-info.From)
	}
	rows := rowMemo{column: d.blocks}
	return d.blockRow(uint32(n-info.From), &rows, access)
}

// blockRow reads the row of block i of the file.
func (d *Data) blockRow(i uint32, rows *rowMemo, access *Access) (BlockRow, error) {
	le := binary.LittleEndian
	b, err := rows.row(d.File, uint64(i), access)
	if err != nil {
		return BlockRow{}, err
	}
	r := BlockRow{
		Ref:              chain.BlockRef{Number: d.footer.info.From + uint64(i), Hash: common.Hash(b[:32]), Timestamp: le.Uint64(b[32:])},
		FirstTransaction: le.Uint32(b[40:]), FirstLog: le.Uint32(b[44:]),
	}
	next, err := rows.row(d.File, uint64(i)+1, access)
	if err != nil {
		return BlockRow{}, err
	}
	endTransaction, endLog := le.Uint32(next[40:]), le.Uint32(next[44:])
	if endTransaction < r.FirstTransaction || uint64(endTransaction) > d.footer.info.Transactions || endTransaction-r.FirstTransaction > maximumBlockRows ||
		endLog < r.FirstLog || uint64(endLog) > d.footer.info.Logs || endLog-r.FirstLog > maximumBlockRows {
		return BlockRow{}, d.rowDamaged(d.blocks, uint64(i), fmt.Errorf("%w: block %d", errBlockRows, r.Ref.Number))
	}
	r.Transactions, r.Logs = endTransaction-r.FirstTransaction, endLog-r.FirstLog
	return r, nil
}

// blockOf finds the block of a transaction, given by its position in the file, at block i of the file
// or behind it. It looks near i first.
func (d *Data) blockOf(position uint32, i uint64, rows *rowMemo, access *Access) (BlockRow, error) {
	blocks := d.footer.info.Blocks()
	// ends tells whether a block ends behind the position.
	ends := func(i uint64) (bool, error) {
		b, err := rows.row(d.File, i+1, access)
		if err != nil {
			return false, err
		}
		return binary.LittleEndian.Uint32(b[40:]) > position, nil
	}
	// Most blocks have transactions: the block is the next one. Else double the step.
	lo, hi := i, i
	for step := uint64(1); hi < blocks; step *= 2 {
		behind, err := ends(hi)
		if err != nil {
			return BlockRow{}, err
		}
		if behind {
			break
		}
		lo, hi = hi+1, min(hi+step, blocks)
	}
	for lo < hi {
		mid := lo + (hi-lo)/2
		behind, err := ends(mid)
		if err != nil {
			return BlockRow{}, err
		}
		if behind {
			hi = mid
		} else {
			lo = mid + 1
		}
	}
	if lo >= blocks {
		return BlockRow{}, d.rowError(d.transactions, uint64(position))
	}
	b, err := d.blockRow(uint32(lo), rows, access)
	if err == nil && position-b.FirstTransaction >= b.Transactions {
		err = d.rowDamaged(d.blocks, lo, fmt.Errorf("%w: transaction %d is not in block %d", errBlockRows, position, b.Ref.Number))
	}
	return b, err
}

// TransactionBlock finds the block that holds the transaction at a position of the file.
func (d *Data) TransactionBlock(position uint32, access *Access) (BlockRow, error) {
	page, _, err := d.transactionPage(position, access, new(tableMemo))
	if err != nil {
		return BlockRow{}, err
	}
	rows := rowMemo{column: d.blocks}
	return d.blockOf(position, uint64(page.block), &rows, access)
}

// TransactionHash reads the hash at a position of the file. The result aliases the page and stays
// valid.
func (d *Data) TransactionHash(position uint32, access *Access) (*common.Hash, error) {
	page, _, err := d.transactionPage(position, access, new(tableMemo))
	if err != nil {
		return nil, err
	}
	return page.hash(position), nil
}

// transactionPage reads the last log page that holds a transaction.
func (d *Data) transactionPage(position uint32, access *Access, memo *tableMemo) (page logPage, run pageRun, err error) {
	if uint64(position) >= d.footer.info.Transactions {
		return page, run, d.rowError(d.transactions, uint64(position))
	}
	number, err := d.findPage(d.logs, position, transactionKey, access, memo)
	if err != nil {
		return page, run, err
	}
	if run, err = d.page(d.logs, number, access, memo); err != nil {
		return page, run, err
	}
	if err := page.parse(run.raw, run.from, run.to); err != nil {
		return page, run, d.damaged(&run, err)
	}
	if position-page.first >= page.transactions {
		return page, run, d.damaged(&run, errLogPage)
	}
	return page, run, nil
}

// transactionHashes yields the hashes of n transactions from a position on.
func (d *Data) transactionHashes(position, n uint32, access *Access, yield func(*common.Hash)) error {
	if n == 0 {
		return nil
	}
	var memo tableMemo
	page, run, err := d.transactionPage(position, access, &memo)
	if err != nil {
		return err
	}
	for end := uint64(position) + uint64(n); ; {
		for ; uint64(position) < end && position-page.first < page.transactions; position++ {
			yield(page.hash(position))
		}
		if uint64(position) == end {
			return nil
		}
		if run, err = d.pageAfter(d.logs, &run, access, &memo); err != nil {
			return err
		}
		if err := page.parse(run.raw, run.from, run.to); err != nil {
			return d.damaged(&run, err)
		}
		if position < page.first || position > page.first+page.transactions {
			return d.damaged(&run, errLogPage)
		}
	}
}

// TransactionAt reads the envelope at a position of the file.
func (d *Data) TransactionAt(position uint32, access *Access) (tx []byte, err error) {
	err = d.blob(d.transactions, position, access, func(b []byte) error {
		tx = b
		return nil
	})
	return tx, err
}
