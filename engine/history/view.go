package history

import (
	"fmt"

	"github.com/ethereum/go-ethereum/common"
	"github.com/leani-go/leani/chain"
	"github.com/leani-go/leani/engine"
	"github.com/leani-go/leani/internal/corrupt"
	"github.com/leani-go/leani/segments"
)

// View is a consistent snapshot of the history. It belongs to one goroutine; Close releases it. What
// it hands out is immutable memory that stays valid after Close.
type View struct {
	store    *Store
	snapshot *engine.Snapshot
	head     *headAt
	access   segments.Access
	plan     logPlan
}

// View opens a snapshot.
func (s *Store) View() (*View, error) {
	v := &View{store: s, snapshot: s.engine.Acquire()}
	if err := v.findHead(); err != nil {
		v.Close()
		return nil, err
	}
	return v, nil
}

// Close releases the snapshot. A second call does nothing.
func (v *View) Close() { v.snapshot.Release() }

// Access says how many pages the view has read so far.
func (v *View) Access() segments.Access { return v.access }

func (v *View) findHead() error {
	generation := v.snapshot.Generation()
	if h := v.store.head.Load(); h != nil && h.generation == generation {
		v.head = h
		return nil
	}
	h := &headAt{generation: generation}
	if rows := v.snapshot.Rows(engine.KindData); len(rows) > 0 {
		last := rows[len(rows)-1]
		var b chain.Block
		if err := v.load(last, last.To-1, chain.PartHeader, &b); err != nil {
			return fmt.Errorf("read head: %w", err)
		}
		h.ref, h.known = b.BlockRef, true
	}
	v.head = h
	v.store.head.Store(h)
	return nil
}

// Head is the highest retained block; false when nothing is retained.
func (v *View) Head() (chain.BlockRef, bool) { return v.head.ref, v.head.known }

// Finalized is the newest block that the node itself verified as finalized. Raw history from archives
// proves none.
func (v *View) Finalized() (chain.BlockRef, bool) { return chain.BlockRef{}, false }

// Coverage lists the maximal runs of retained blocks in order. The slice is the caller's.
func (v *View) Coverage() []chain.Range {
	runs := v.snapshot.Coverage(engine.FieldReceipts)
	out := make([]chain.Range, len(runs))
	for i := range runs {
		out[i] = runs[i].Range
	}
	return out
}

// dataOf finds the data file that holds block n.
func (v *View) dataOf(n uint64) (*engine.FileRow, error) {
	row, ok := v.snapshot.DataFile(n)
	if !ok {
		return nil, &chain.NotRetainedError{Range: chain.Range{From: n, To: n + 1}}
	}
	return row, nil
}

// positioned is a data file among those of an index, with the positions where its rows start.
type positioned struct {
	row          *engine.FileRow
	logs         uint64
	transactions uint64
}

// filesOf lists the data files under an index file.
func (v *View) filesOf(index *engine.FileRow) ([]positioned, error) {
	rows := v.snapshot.DataFiles(index.Range())
	out := make([]positioned, 0, len(rows))
	var logs, transactions uint64
	for _, r := range rows {
		out = append(out, positioned{r, logs, transactions})
		logs += r.Logs
		transactions += r.Transactions
	}
	if logs != index.Logs || transactions != index.Transactions {
		return nil, corruptRow(index, fmt.Errorf("it covers %d logs and %d transactions, its data files hold %d and %d", index.Logs, index.Transactions, logs, transactions))
	}
	return out, nil
}

func corruptRow(row *engine.FileRow, err error) error { return corrupt.New(row.String(), err) }

// NumberByHash finds the retained block with a hash.
func (v *View) NumberByHash(hash common.Hash) (uint64, bool, error) {
	parts := v.indexParts()
	for i := len(parts) - 1; i >= 0; i-- { // clients ask for new blocks more often
		x, err := v.store.index(parts[i].Row)
		if err != nil {
			return 0, false, err
		}
		positions, err := x.Blocks(&hash, &v.access)
		if err != nil {
			return 0, false, err
		}
		for _, p := range positions {
			n := parts[i].Row.From + uint64(p)
			row, err := v.dataOf(n)
			if err != nil {
				return 0, false, err
			}
			d, err := v.store.data(row)
			if err != nil {
				return 0, false, err
			}
			b, err := d.Block(n, &v.access)
			if err != nil {
				return 0, false, err
			}
			if b.Ref.Hash == hash {
				return n, true, nil
			}
		}
	}
	return 0, false, nil
}

// LocateTransaction finds a transaction of a retained block.
func (v *View) LocateTransaction(hash common.Hash) (number uint64, index uint32, ok bool, err error) {
	parts := v.indexParts()
	for i := len(parts) - 1; i >= 0; i-- {
		x, err := v.store.index(parts[i].Row)
		if err != nil {
			return 0, 0, false, err
		}
		positions, err := x.Transactions(&hash, &v.access)
		if err != nil {
			return 0, 0, false, err
		}
		if len(positions) == 0 {
			continue
		}
		files, err := v.filesOf(parts[i].Row)
		if err != nil {
			return 0, 0, false, err
		}
		for _, p := range positions {
			n, index, ok, err := v.transactionAt(files, p, &hash)
			if ok || err != nil {
				return n, index, ok, err
			}
		}
	}
	return 0, 0, false, nil
}

// transactionAt compares the transaction at a position of an index with the hash.
func (v *View) transactionAt(files []positioned, p uint32, hash *common.Hash) (number uint64, index uint32, ok bool, err error) {
	at := 0
	for at+1 < len(files) && files[at+1].transactions <= uint64(p) {
		at++
	}
	d, err := v.store.data(files[at].row)
	if err != nil {
		return 0, 0, false, err
	}
	local := uint32(uint64(p) - files[at].transactions)
	h, err := d.TransactionHash(local, &v.access)
	if err != nil || *h != *hash {
		return 0, 0, false, err
	}
	b, err := d.TransactionBlock(local, &v.access)
	if err != nil {
		return 0, 0, false, err
	}
	return b.Ref.Number, local - b.FirstTransaction, true, nil
}

// indexParts lists all index files by block.
func (v *View) indexParts() []engine.IndexPart {
	rows := v.snapshot.Rows(engine.KindData)
	if len(rows) == 0 {
		return nil
	}
	return v.snapshot.IndexFiles(chain.Range{From: rows[0].From, To: rows[len(rows)-1].To})
}
