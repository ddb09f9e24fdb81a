package segments

import (
	"fmt"

	"github.com/ethereum/go-ethereum/common"
	"github.com/leani-go/leani/internal/corrupt"
)

// Index reads an index file. It proposes positions: distinct values can share a term, so whoever
// uses a position compares what lies there. Positions count from the first log, transaction or block
// that the index covers. Safe for concurrent use.
type Index struct {
	*File
	terms, postings, transactions, blocks *column
}

// NewIndex views an open file as an index file.
func NewIndex(f *File) (*Index, error) {
	if f.footer.info.Kind != KindIndex {
		return nil, f.errKind(KindIndex)
	}
	x := &Index{File: f}
	for _, c := range []struct {
		to *(*column)
		id columnID
	}{{&x.terms, columnTerms}, {&x.postings, columnPostings}, {&x.transactions, columnTxLocator}, {&x.blocks, columnBlockLocator}} {
		var err error
		if *c.to, err = f.expect(c.id, anyRows, 0); err != nil {
			return nil, err
		}
	}
	// Every log, transaction and block is listed, and a position takes a bit and more: what walks all
	// lists may rely on the number of each.
	if i := &f.footer.info; max(x.postings.rows, i.Logs, i.Transactions, i.Blocks()) > 8*f.limit {
		return nil, corrupt.AtOffset(f.name, int64(f.limit), fmt.Errorf("%w: more positions than bits", errFooterRows))
	}
	return x, nil
}

// uncached is the same index read past the cache.
func (x *Index) uncached() *Index {
	y := *x
	y.File = x.File.uncached()
	return &y
}

// List is the posting list of a term.
type List struct {
	// Count is the number of positions; 0 means that no log has the term.
	Count uint64
	p     positions
}

// Find looks up a term, which AddressTerm or TopicTerm made.
func (x *Index) Find(term uint32, access *Access) (List, error) {
	p, err := x.lookup(x.terms, term, x.footer.info.Logs, access)
	return List{p.count, p}, err
}

// Transactions proposes positions of the transaction with a hash.
func (x *Index) Transactions(hash *common.Hash, access *Access) ([]uint32, error) {
	p, err := x.lookup(x.transactions, hashTerm(hash[:]), x.footer.info.Transactions, access)
	return p.inline, err
}

// Blocks proposes positions of the block with a hash.
func (x *Index) Blocks(hash *common.Hash, access *Access) ([]uint32, error) {
	p, err := x.lookup(x.blocks, hashTerm(hash[:]), x.footer.info.Blocks(), access)
	return p.inline, err
}
