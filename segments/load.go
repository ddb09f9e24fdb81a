package segments

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/ethereum/go-ethereum/common"
	"github.com/leani-go/leani/chain"
	"github.com/leani-go/leani/codec"
)

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
	if err := d.loadFixed(i, parts, dst, access); err != nil {
		return err
	}
	if parts&chain.PartTransactions != 0 {
		err := d.blobs(d.transactions, row.FirstTransaction, row.FirstTransaction+row.Transactions, access, func(b []byte) error {
			dst.Transactions = append(dst.Transactions, b)
			return nil
		})
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
		return d.loadReceipts(i, &row, dst, access)
	}
	return nil
}

// loadFixed loads the parts of a block that do not depend on its transactions.
func (d *Data) loadFixed(i uint32, parts chain.Parts, dst *chain.Block, access *Access) error {
	if parts&chain.PartHeader != 0 {
		if err := d.loadHeader(i, dst, access); err != nil {
			return err
		}
	}
	if parts&(chain.PartOmmers|chain.PartWithdrawals) != 0 {
		return d.loadBody(i, dst, access)
	}
	return nil
}

func (d *Data) loadHeader(i uint32, dst *chain.Block, access *Access) error {
	return d.blob(d.headers, i, access, func(b []byte) (err error) {
		dst.Header = b
		if dst.ParentHash, err = headerParent(b); err != nil {
			err = fmt.Errorf("header of block %d: %w", dst.Number, err)
		}
		return err
	})
}

func (d *Data) loadBody(i uint32, dst *chain.Block, access *Access) error {
	return d.blob(d.bodies, i, access, func(b []byte) (err error) {
		if dst.Ommers, dst.Withdrawals, err = splitBody(b); err != nil {
			err = fmt.Errorf("body of block %d: %w", dst.Number, err)
		}
		return err
	})
}

func (d *Data) loadReceipts(i uint32, row *BlockRow, dst *chain.Block, access *Access) error {
	dst.HasReceipts = true
	err := d.blob(d.receipts, i, access, func(b []byte) (err error) {
		if dst.Receipts, err = appendReceipts(dst.Receipts, b, int(row.Transactions)); err != nil {
			err = fmt.Errorf("receipts of block %d: %w", dst.Number, err)
		}
		return err
	})
	if err != nil || row.Logs == 0 {
		return err
	}
	return d.loadLogs(row, dst, access)
}

// expectedLogs bounds how much memory loadLogs takes before it has seen that the logs are there.
const expectedLogs = 4096

// loadLogs fills Logs and the LogsEnd of the receipts.
func (d *Data) loadLogs(row *BlockRow, dst *chain.Block, access *Access) error {
	c := d.Cursor(access)
	defer c.Close()
	// Values that are not stored as they are go to one allocation each for topics and data.
	expected := min(int(row.Logs), expectedLogs)
	topics := make([]common.Hash, 0, 3*expected) // typical sizes
	data := make([]byte, 0, 2*codec.WordSize*expected)
	sizes := make([]int, 0, expected)
	receipt, page := 0, -1
	for log := row.FirstLog; log < row.FirstLog+row.Logs; log++ {
		tx, l, err := c.raw(log)
		if err != nil {
			return err
		}
		if page != int(c.run.number) { // each byte of a page belongs to one log: a page yields only so much
			if err := c.page.checkLengths(); err != nil {
				return d.damaged(&c.run, err)
			}
			page = int(c.run.number)
		}
		tx -= row.FirstTransaction
		if int(tx) < receipt || int(tx) >= len(dst.Receipts) {
			return d.damaged(&c.run, fmt.Errorf("%w: transaction of log %d of block %d", errLogPage, log-row.FirstLog, row.Ref.Number))
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
		case v>>2 > maximumType:
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

// splitBody decodes what appendBody wrote.
func splitBody(b []byte) (ommers, withdrawals []byte, err error) {
	size, k := binary.Uvarint(b)
	if k <= 0 || size > uint64(len(b)-k) {
		return nil, nil, errBody
	}
	ommers, b = b[k:k+int(size):k+int(size)], b[k+int(size):]
	switch {
	case len(b) >= 1 && b[0] == 1:
		return ommers, b[1:], nil
	case len(b) == 1 && b[0] == 0:
		return ommers, nil, nil
	default:
		return nil, nil, errBody
	}
}

var errParentHash = errors.New("header does not start with a parent hash")

// headerParent reads the first field of a header.
func headerParent(header []byte) (h common.Hash, err error) {
	if len(header) < 1 || header[0] < 0xf8 {
		return h, errParentHash
	}
	at := 1 + int(header[0]-0xf7)
	if len(header) < at+1+common.HashLength || header[at] != 0x80+common.HashLength {
		return h, errParentHash
	}
	return common.Hash(header[at+1 : at+1+common.HashLength]), nil
}
