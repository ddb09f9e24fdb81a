package segments

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/ethereum/go-ethereum/common"
	"github.com/leani-go/leani/chain"
	"github.com/leani-go/leani/internal/corrupt"
)

// Data reads a data file. Safe for concurrent use.
type Data struct {
	*File
	blocks, headers, bodies, transactions, receipts, logs, shapes, shortWords, words *column
}

// NewData views an open file as a data file.
func NewData(f *File) (*Data, error) {
	if f.footer.info.Kind != KindData {
		return nil, fmt.Errorf("segment file %s is of kind %s, not %s", f.name, f.footer.info.Kind, KindData)
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
	return d, nil
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
		return BlockRow{}, d.rowError(d.blocks, n)
	}
	return d.blockRow(uint32(n-info.From), access)
}

func (d *Data) blockRow(i uint32, access *Access) (BlockRow, error) {
	le := binary.LittleEndian
	b, err := d.fixedRow(d.blocks, uint64(i), access)
	if err != nil {
		return BlockRow{}, err
	}
	next, err := d.fixedRow(d.blocks, uint64(i)+1, access)
	if err != nil {
		return BlockRow{}, err
	}
	r := BlockRow{
		Ref:              chain.BlockRef{Number: d.footer.info.From + uint64(i), Hash: common.Hash(b[:32]), Timestamp: le.Uint64(b[32:])},
		FirstTransaction: le.Uint32(b[40:]), FirstLog: le.Uint32(b[44:]),
	}
	lastTransaction, lastLog := le.Uint32(next[40:]), le.Uint32(next[44:])
	if lastTransaction < r.FirstTransaction || uint64(lastTransaction) > d.footer.info.Transactions ||
		lastLog < r.FirstLog || uint64(lastLog) > d.footer.info.Logs {
		return BlockRow{}, corrupt.New(d.name, fmt.Errorf("%w: block %d", errBlockRows, r.Ref.Number))
	}
	r.Transactions, r.Logs = lastTransaction-r.FirstTransaction, lastLog-r.FirstLog
	return r, nil
}

// TransactionBlock finds the block that holds the transaction at a position of the file.
func (d *Data) TransactionBlock(position uint32, access *Access) (BlockRow, error) {
	lo, hi := uint32(0), uint32(d.footer.info.Blocks())
	for lo < hi {
		mid := lo + (hi-lo)/2
		b, err := d.fixedRow(d.blocks, uint64(mid)+1, access)
		if err != nil {
			return BlockRow{}, err
		}
		if binary.LittleEndian.Uint32(b[40:]) > position {
			hi = mid
		} else {
			lo = mid + 1
		}
	}
	return d.blockRow(lo, access)
}

// TransactionHash reads the hash at a position of the file. The result aliases the page and stays
// valid.
func (d *Data) TransactionHash(position uint32, access *Access) (h *common.Hash, err error) {
	err = d.transactionHashes(position, 1, access, func(found *common.Hash) { h = found })
	return h, err
}

// transactionHashes yields the hashes of n transactions from a position on.
func (d *Data) transactionHashes(position, n uint32, access *Access, yield func(*common.Hash)) error {
	if uint64(position)+uint64(n) > d.footer.info.Transactions {
		return d.rowError(d.transactions, uint64(position)+uint64(n))
	}
	if n == 0 {
		return nil
	}
	number, err := d.findPage(d.logs, position, transactionKey, access)
	if err != nil {
		return err
	}
	var page logPage
	for end := position + n; ; number++ {
		run, err := d.pageAt(d.logs, number, access)
		if err != nil {
			return err
		}
		if err := page.parse(run.raw, run.from, run.to); err != nil {
			return d.damaged(run, err)
		}
		if page.first > position || uint64(page.first)+uint64(page.transactions) > d.footer.info.Transactions {
			return d.damaged(run, errLogPage)
		}
		for ; position < end && position < page.first+page.transactions; position++ {
			yield(page.hash(position))
		}
		if position == end {
			return nil
		}
	}
}

// TransactionAt reads the envelope at a position of the file.
func (d *Data) TransactionAt(position uint32, access *Access) (tx []byte, err error) {
	err = d.File.blobs(d.transactions, position, position+1, access, func(b []byte) { tx = b })
	return tx, err
}

// Load fills the wanted parts of block n into dst, whose slices it reuses. What it fills aliases
// pages and memory of its own and stays valid after the file is closed. Senders are not part of a
// data file. Header, number, hash, parent hash and timestamp are always set with PartHeader; without
// it the parent hash is not.
func (d *Data) Load(n uint64, parts chain.Parts, dst *chain.Block, access *Access) error {
	row, err := d.Block(n, access)
	if err != nil {
		return err
	}
	dst.Reset()
	dst.BlockRef = row.Ref
	i := uint32(n - d.footer.info.From)
	if parts&chain.PartHeader != 0 {
		if err := d.File.blobs(d.headers, i, i+1, access, func(b []byte) { dst.Header = b }); err != nil {
			return err
		}
		if dst.ParentHash, err = headerParent(dst.Header); err != nil {
			return corrupt.New(d.name, fmt.Errorf("header of block %d: %w", n, err))
		}
	}
	if parts&(chain.PartOmmers|chain.PartWithdrawals) != 0 {
		var body []byte
		if err := d.File.blobs(d.bodies, i, i+1, access, func(b []byte) { body = b }); err != nil {
			return err
		}
		if dst.Ommers, dst.Withdrawals, err = splitBody(body); err != nil {
			return corrupt.New(d.name, fmt.Errorf("body of block %d: %w", n, err))
		}
	}
	last := row.FirstTransaction + row.Transactions
	if parts&chain.PartTransactions != 0 {
		err := d.File.blobs(d.transactions, row.FirstTransaction, last, access, func(b []byte) { dst.Transactions = append(dst.Transactions, b) })
		if err != nil {
			return err
		}
	}
	if parts&chain.PartTransactionHashes != 0 {
		err := d.transactionHashes(row.FirstTransaction, row.Transactions, access, func(h *common.Hash) {
			dst.TransactionHashes = append(dst.TransactionHashes, *h)
		})
		if err != nil {
			return err
		}
	}
	if parts&chain.PartReceipts != 0 {
		return d.loadReceipts(i, row, dst, access)
	}
	return nil
}

func (d *Data) loadReceipts(i uint32, row BlockRow, dst *chain.Block, access *Access) error {
	dst.HasReceipts = true
	var scalars []byte
	if err := d.File.blobs(d.receipts, i, i+1, access, func(b []byte) { scalars = b }); err != nil {
		return err
	}
	var err error
	if dst.Receipts, err = appendReceipts(dst.Receipts, scalars, int(row.Transactions)); err != nil {
		return corrupt.New(d.name, fmt.Errorf("receipts of block %d: %w", row.Ref.Number, err))
	}
	if row.Logs == 0 {
		return nil
	}
	return d.loadLogs(row, dst, access)
}

// loadLogs fills Logs and the LogsEnd of the receipts.
func (d *Data) loadLogs(row BlockRow, dst *chain.Block, access *Access) error {
	c := d.Cursor(access)
	defer c.Close()
	// Values that are not stored as they are go to one allocation each for topics and data.
	var topics []common.Hash
	var data []byte
	sizes := make([]int, 0, row.Logs)
	receipt := 0
	for log := row.FirstLog; log < row.FirstLog+row.Logs; log++ {
		tx, l, err := c.raw(log)
		if err != nil {
			return err
		}
		tx -= row.FirstTransaction
		if int(tx) < receipt || int(tx) >= len(dst.Receipts) {
			return corrupt.New(d.name, fmt.Errorf("block %d: log %d belongs to transaction %d of %d", row.Ref.Number, log-row.FirstLog, tx, len(dst.Receipts)))
		}
		for ; receipt < int(tx); receipt++ {
			dst.Receipts[receipt].LogsEnd = uint32(len(dst.Logs))
		}
		for k := range int(l.NumTopics) {
			topics = append(topics, *l.Topics[k])
		}
		start := len(data)
		if data, err = c.appendData(data); err != nil {
			return err
		}
		sizes = append(sizes, len(data)-start)
		dst.Logs = append(dst.Logs, chain.Log{Address: l.Address, NumTopics: l.NumTopics})
	}
	for ; receipt < len(dst.Receipts); receipt++ {
		dst.Receipts[receipt].LogsEnd = uint32(len(dst.Logs))
	}
	// The arenas have stopped moving: point into them.
	for i := range dst.Logs {
		l := &dst.Logs[i]
		for k := range int(l.NumTopics) {
			l.Topics[k] = &topics[k]
		}
		topics = topics[l.NumTopics:]
		l.Data, data = data[:sizes[i]:sizes[i]], data[sizes[i]:]
	}
	return nil
}

var errReceiptScalars = errors.New("receipt scalars do not fit the transactions")

// appendReceipts decodes what appendReceiptScalars wrote, without LogsEnd.
func appendReceipts(dst []chain.Receipt, b []byte, n int) ([]chain.Receipt, error) {
	gas := uint64(0)
	for range n {
		v, k := binary.Uvarint(b)
		if k <= 0 {
			return dst, errReceiptScalars
		}
		b = b[k:]
		used, k := binary.Uvarint(b)
		if k <= 0 || gas+used < gas {
			return dst, errReceiptScalars
		}
		b = b[k:]
		gas += used
		r := chain.Receipt{Type: byte(v >> 2), CumulativeGasUsed: gas}
		switch outcome := v & 3; {
		case v>>2 > 0x7f:
			return dst, errReceiptScalars
		case outcome == outcomePostState:
			if len(b) < common.HashLength {
				return dst, errReceiptScalars
			}
			r.PostState, b = b[:common.HashLength:common.HashLength], b[common.HashLength:]
		case outcome <= outcomeSuccess:
			r.Status = byte(outcome)
		default:
			return dst, errReceiptScalars
		}
		dst = append(dst, r)
	}
	if len(b) != 0 {
		return dst, errReceiptScalars
	}
	return dst, nil
}

var errBody = errors.New("body does not hold what it should")

func splitBody(b []byte) (ommers, withdrawals []byte, err error) {
	size, k := binary.Uvarint(b)
	if k <= 0 || size > uint64(len(b)-k) {
		return nil, nil, errBody
	}
	ommers, b = b[k:k+int(size)], b[k+int(size):]
	switch {
	case len(b) >= 1 && b[0] == 1:
		return ommers, b[1:], nil
	case len(b) == 1 && b[0] == 0:
		return ommers, nil, nil
	default:
		return nil, nil, errBody
	}
}

var errHeader32 = errors.New("header does not start with a parent hash")

// headerParent reads the first field of a header.
func headerParent(header []byte) (h common.Hash, err error) {
	if len(header) < 1 || header[0] < 0xf8 {
		return h, errHeader32
	}
	at := 1 + int(header[0]-0xf7)
	if len(header) < at+1+common.HashLength || header[at] != 0x80+common.HashLength {
		return h, errHeader32
	}
	return common.Hash(header[at+1 : at+1+common.HashLength]), nil
}
