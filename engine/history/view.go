package history

import (
	"errors"
	"slices"
	"sort"

	"github.com/ethereum/go-ethereum/common"
	"github.com/leani-go/leani/chain"
	"github.com/leani-go/leani/engine"
	"github.com/leani-go/leani/internal/corrupt"
	"github.com/leani-go/leani/segments"
)

// View is a consistent snapshot of the history. It belongs to one goroutine; Close releases it. Blocks
// that it loads are memory of their own and stay valid after Close; logs are valid while they are yielded.
type View struct {
	store    *Store
	snapshot *engine.Snapshot
	layout   *layout
	hot      *hotSet
	access   segments.Access
	plan     logPlan
}

// View opens a snapshot.
func (s *Store) View() (*View, error) {
	return s.viewOf(s.engine.Acquire()), nil
}

// viewOf is a view of a snapshot, which it takes over: closing the view releases it.
func (s *Store) viewOf(snap *engine.Snapshot) *View {
	v := &View{store: s, snapshot: snap}
	if v.layout = s.layout.Load(); v.layout == nil || v.layout.generation != v.snapshot.FilesGeneration() {
		v.layout = newLayout(v.snapshot)
		s.layout.Store(v.layout)
	}
	v.hot = s.hotSetOf(v.snapshot)
	return v
}

// Close releases the snapshot. A second call does nothing.
func (v *View) Close() { v.snapshot.Release() }

// Access says how many pages the view has read so far.
func (v *View) Access() segments.Access { return v.access }

// Head is the number of the highest retained block; false when nothing is retained.
func (v *View) Head() (number uint64, ok bool) {
	if !v.hot.span.Empty() {
		return v.hot.span.To - 1, true
	}
	n := len(v.layout.data)
	if n == 0 {
		return 0, false
	}
	return v.layout.data[n-1].row.To - 1, true
}

// HeadHash is the hash of the head, zero when there is none.
func (v *View) HeadHash() (hash common.Hash) {
	if n := len(v.hot.blocks); n > 0 {
		return v.hot.blocks[n-1].Hash
	}
	if n := len(v.layout.data); n > 0 {
		hash = v.layout.data[n-1].row.LastHash
	}
	return hash
}

// Finalized is the newest block that the live source marked as finalized. Raw history from archives proves
// none.
func (v *View) Finalized() (chain.BlockRef, bool) { return v.snapshot.Mark(engine.FinalityFinalized) }

// Attested is the newest block that the live source marked as attested, or finalized.
func (v *View) Attested() (chain.BlockRef, bool) { return v.snapshot.Mark(engine.FinalityAttested) }

// Recent is the run of blocks that are not in files yet, empty when there are none.
func (v *View) Recent() chain.Range { return v.hot.span }

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

// filesOf lists the data files under an index file. Positions of the index count from the first of them.
func (v *View) filesOf(index *engine.FileRow) ([]positioned, error) {
	files := v.layout.files(index.Range())
	if n := len(files); n > 0 {
		first, last := files[0], files[n-1]
		logs, transactions := last.logs+last.row.Logs-first.logs, last.transactions+last.row.Transactions-first.transactions
		if logs == index.Logs && transactions == index.Transactions {
			return files, nil
		}
	}
	return nil, corruptRow(index, errors.New("its data files do not hold the logs and transactions that it covers"))
}

func corruptRow(row *engine.FileRow, err error) error { return corrupt.New(row.String(), err) }

// NumberByHash finds the retained block with a hash.
func (v *View) NumberByHash(hash common.Hash) (uint64, bool, error) {
	if n, ok := v.hot.numberOf(&hash); ok {
		return n, true, nil
	}
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
			if b, err := v.blockRow(n); err != nil || b.Ref.Hash == hash {
				return n, err == nil, err
			}
		}
	}
	for _, r := range v.layout.unindexed { // an index that does not reach a block says nothing about it
		for n := r.From; n < r.To; n++ {
			if b, err := v.blockRow(n); err != nil || b.Ref.Hash == hash {
				return n, err == nil, err
			}
		}
	}
	return 0, false, nil
}

func (v *View) blockRow(n uint64) (segments.BlockRow, error) {
	row, err := v.dataOf(n)
	if err != nil {
		return segments.BlockRow{}, err
	}
	d, err := v.store.data(row)
	if err != nil {
		return segments.BlockRow{}, err
	}
	return d.Block(n, &v.access)
}

// LocateTransaction finds a transaction of a retained block.
func (v *View) LocateTransaction(hash common.Hash) (number uint64, index uint32, ok bool, err error) {
	for i := len(v.hot.blocks) - 1; i >= 0; i-- {
		e := v.hot.blocks[i]
		if e.Transactions == 0 {
			continue
		}
		h, err := v.hotHashes(e)
		if err != nil {
			return 0, 0, false, err
		}
		if at, ok := h.Find(&hash); ok {
			return e.Number, at, true, nil
		}
	}
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
	var b chain.Block
	for _, r := range v.layout.unindexed {
		for n := r.From; n < r.To; n++ {
			row, err := v.dataOf(n)
			if err != nil {
				return 0, 0, false, err
			}
			if err := v.load(row, n, chain.PartTransactionHashes, &b); err != nil {
				return 0, 0, false, err
			}
			if i := slices.Index(b.TransactionHashes, hash); i >= 0 {
				return n, uint32(i), true, nil
			}
		}
	}
	return 0, 0, false, nil
}

// transactionAt compares the transaction at a position of an index with the hash.
func (v *View) transactionAt(files []positioned, p uint32, hash *common.Hash) (number uint64, index uint32, ok bool, err error) {
	position := files[0].transactions + uint64(p)
	at := sort.Search(len(files)-1, func(i int) bool { return files[i+1].transactions > position })
	d, err := v.store.data(files[at].row)
	if err != nil {
		return 0, 0, false, err
	}
	local := uint32(position - files[at].transactions)
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
	if n := len(v.layout.data); n > 0 {
		return v.snapshot.IndexFiles(chain.Range{From: v.layout.data[0].row.From, To: v.layout.data[n-1].row.To})
	}
	return nil
}
