package segments

import (
	"context"

	"github.com/ethereum/go-ethereum/common"
	"github.com/leani-go/leani/chain"
)

// ContentSum is a checksum over everything that an index lists, in no particular order: it can be
// computed from an index and, independently, from the data files under it.
type ContentSum struct {
	Terms        uint64 // over pairs of a log term and a position, each once
	Transactions uint64 // over pairs of a transaction hash prefix and a position
	Blocks       uint64 // over pairs of a block hash prefix and a position

	// logs, transactions and blocks seen so far: the positions of the next data file
	logs, transactions, blocks uint64
}

// pair spreads a term and a position over 64 bits, so that sums of different sets differ.
func pair(term uint32, position uint64) uint64 {
	return mix(uint64(term)<<32^position^0x9e3779b97f4a7c15, 0xbf58476d1ce4e5b9^position<<17)
}

// Sum reads a whole index.
func (x *Index) Sum(ctx context.Context) (ContentSum, error) {
	info := x.footer.info
	sum := ContentSum{logs: info.Logs, transactions: info.Transactions, blocks: info.Blocks()}
	sums := [3]*uint64{&sum.Terms, &sum.Transactions, &sum.Blocks}
	for i, table := range x.tables() {
		err := walkTerms(ctx, []indexTable{table}, func(term uint32, at []*tableIterator) error {
			return at[0].each(func(positions []uint32) {
				for _, p := range positions {
					*sums[i] += pair(term, uint64(p))
				}
			})
		})
		if err != nil {
			return ContentSum{}, err
		}
	}
	return sum, nil
}

// AddTo adds what an index must list for this data file, which lies behind those added before.
func (d *Data) AddTo(ctx context.Context, sum *ContentSum) error {
	c := d.Cursor(nil)
	defer c.Close()
	var terms [1 + chain.MaximumTopics]uint32
	for row := range d.footer.info.Logs {
		if row%4096 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		_, l, err := c.raw(uint32(row))
		if err != nil {
			return err
		}
		n := 0
		add := func(term uint32) {
			for _, t := range terms[:n] {
				if t == term { // two values of one log that share a term are listed once
					return
				}
			}
			terms[n] = term
			n++
			sum.Terms += pair(term, sum.logs+row)
		}
		add(AddressTerm(l.Address))
		for k := range int(l.NumTopics) {
			add(TopicTerm(k, l.Topics[k]))
		}
	}
	info := d.footer.info
	rows := rowMemo{column: d.blocks}
	for i := range info.Blocks() {
		b, err := d.blockRow(uint32(i), &rows, nil)
		if err != nil {
			return err
		}
		sum.Blocks += pair(hashTerm(b.Ref.Hash[:]), sum.blocks+i)
		at := sum.transactions + uint64(b.FirstTransaction)
		if err := d.transactionHashes(b.FirstTransaction, b.Transactions, nil, func(h *common.Hash) {
			sum.Transactions += pair(hashTerm(h[:]), at)
			at++
		}); err != nil {
			return err
		}
	}
	sum.logs += info.Logs
	sum.transactions += info.Transactions
	sum.blocks += info.Blocks()
	return nil
}
