package segments

import (
	"fmt"
	"slices"

	"github.com/leani-go/leani/chain"
)

// LoadTransaction fills dst like Load, but of the material of single transactions only that of the one at
// index: the entries of all others are there and empty, receipts excepted, whose types, outcomes and gas
// are complete. Logs has its full length, so that log indexes are right.
func (d *Data) LoadTransaction(n uint64, index uint32, parts chain.Parts, dst *chain.Block, access *Access) error {
	row, err := d.Block(n, access)
	if err != nil {
		return err
	}
	if index >= row.Transactions {
		return d.rowError(d.transactions, uint64(row.FirstTransaction)+uint64(index))
	}
	dst.Reset()
	dst.BlockRef = row.Ref
	i, position := uint32(n-d.footer.info.From), row.FirstTransaction+index
	if err := d.loadFixed(i, parts, dst, access); err != nil {
		return err
	}
	if parts&chain.PartTransactions != 0 {
		dst.Transactions = emptied(dst.Transactions, row.Transactions)
		if dst.Transactions[index], err = d.TransactionAt(position, access); err != nil {
			return err
		}
	}
	if parts&chain.PartTransactionHashes != 0 {
		dst.TransactionHashes = emptied(dst.TransactionHashes, row.Transactions)
		h, err := d.TransactionHash(position, access)
		if err != nil {
			return err
		}
		dst.TransactionHashes[index] = *h
	}
	if parts&chain.PartReceipts != 0 {
		return d.loadReceipt(i, index, &row, dst, access)
	}
	return nil
}

// emptied is list with n zero entries.
func emptied[T any](list []T, n uint32) []T {
	list = slices.Grow(list[:0], int(n))[:n]
	clear(list)
	return list
}

// loadReceipt fills the scalars of all receipts and the logs of one.
func (d *Data) loadReceipt(i, index uint32, row *BlockRow, dst *chain.Block, access *Access) error {
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
	from, to, err := d.transactionRows(row.FirstTransaction+index, access)
	if err != nil {
		return err
	}
	if from < row.FirstLog || to < from || to > row.FirstLog+row.Logs {
		return d.rowError(d.logs, uint64(from))
	}
	c := d.Cursor(access)
	defer c.Close()
	dst.Logs = emptied(dst.Logs, row.Logs)
	for k := range dst.Receipts {
		switch {
		case uint32(k) == index:
			dst.Receipts[k].LogsEnd = to - row.FirstLog
		case uint32(k)+1 == index:
			dst.Receipts[k].LogsEnd = from - row.FirstLog
		case uint32(k) > index:
			dst.Receipts[k].LogsEnd = row.Logs
		}
	}
	for log := from; log < to; log++ {
		_, l, err := c.raw(log)
		if err != nil {
			return err
		}
		own := &dst.Logs[log-row.FirstLog]
		own.Address, own.NumTopics = l.Address, l.NumTopics
		for k := range int(l.NumTopics) {
			topic := *l.Topics[k]
			own.Topics[k] = &topic
		}
		if own.Data, err = c.appendData(nil); err != nil {
			return err
		}
	}
	return nil
}

// transactionRows finds the logs of the transaction at a position: an empty run where they would stand if
// it has none.
func (d *Data) transactionRows(position uint32, access *Access) (from, to uint32, err error) {
	var (
		memo tableMemo
		page logPage
		run  pageRun
	)
	load := func(number uint32) error {
		if run, err = d.page(d.logs, number, access, &memo); err != nil {
			return err
		}
		if err := page.parse(run.raw, run.from, run.to); err != nil {
			return d.damaged(&run, err)
		}
		return nil
	}
	number, err := d.findPage(d.logs, position, transactionKey, access, &memo)
	if err != nil {
		return 0, 0, err
	}
	if err := load(number); err != nil {
		return 0, 0, err
	}
	for page.first == position && number > 0 { // its first logs may end the page before
		number--
		if err := load(number); err != nil {
			return 0, 0, err
		}
	}
	from = run.to
	for i := range page.rows {
		if page.transactionOf(i) >= position {
			from = run.from + uint32(i)
			break
		}
	}
	for to = from; ; {
		for ; to < run.to; to++ {
			if page.transactionOf(int(to-run.from)) != position {
				return from, to, nil
			}
		}
		if number++; number >= d.logs.pages {
			return from, to, nil
		}
		if err := load(number); err != nil {
			return 0, 0, err
		}
		if page.first > position {
			return from, to, nil
		}
	}
}
