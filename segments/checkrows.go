package segments

import (
	"context"
	"errors"
	"fmt"

	"github.com/ethereum/go-ethereum/common"
	"github.com/leani-go/leani/chain"
	"github.com/leani-go/leani/internal/corrupt"
	"github.com/leani-go/leani/internal/keccak"
)

// CheckRows reads every row of every column and checks what a file can prove alone: that all rows can
// be read and agree with each other and with the footer, that the headers of a data file hash to what
// its block rows say and name one another, and that an index lists every log, and each transaction and
// block once. It does not compare digests, which is for CheckPages, nor blocks with their roots or an
// index with its data, which takes more than one file. It does not use the cache.
//
// It returns the first damage found.
func (f *File) CheckRows(ctx context.Context) error { return f.checkRows(ctx, first) }

func (f *File) checkRows(ctx context.Context, found func(error) error) error {
	switch f.footer.info.Kind {
	case KindData:
		return f.checkDataRows(ctx, found)
	case KindIndex:
		return f.checkIndexRows(ctx, found)
	case KindFrames:
		return f.checkFramesRows(ctx, found)
	default:
		return f.checkSendersRows(found)
	}
}

// checkCacheBytes is for the pages of a data file that neighbouring blocks share.
const checkCacheBytes = 4 << 20

var (
	errClosingRow  = errors.New("rows that close the blocks differ from the footer")
	errHeaderHash  = errors.New("header does not hash to the block hash")
	errNotChild    = errors.New("header does not name the block before it")
	errEdgeHash    = errors.New("block hash differs from the footer")
	errLogPages    = errors.New("log pages do not hold every transaction in order")
	errPageBlock   = errors.New("log page names another block than that of its first transaction")
	errUnlisted    = errors.New("index does not list every position")
	errListedTwice = errors.New("locator lists a position twice")
	errCount       = errors.New("number of rows differs from the footer")
)

func (f *File) checkDataRows(ctx context.Context, found func(error) error) error {
	apart := *f
	apart.cache = NewCache(checkCacheBytes)
	d, err := NewData(&apart)
	if err != nil {
		return found(err)
	}
	for _, check := range []func(context.Context, func(error) error) error{d.checkEnds, d.checkLogPages, d.checkBlocks} {
		if err := check(ctx, found); err != nil {
			return err
		}
	}
	return nil
}

// checkEnds checks the first block row, and the row that closes the last block.
func (d *Data) checkEnds(_ context.Context, found func(error) error) error {
	rows := rowMemo{column: d.blocks}
	row, err := rows.row(d.File, 0, nil)
	if err == nil && string(row[40:]) != string(make([]byte, 8)) {
		err = d.rowDamaged(d.blocks, 0, errClosingRow)
	}
	if err != nil {
		return found(err)
	}
	last := d.footer.info.Blocks()
	row, err = rows.row(d.File, last, nil)
	if err == nil && string(row) != string(closingRow(&d.footer.info)) {
		err = d.rowDamaged(d.blocks, last, errClosingRow)
	}
	if err != nil {
		return found(err)
	}
	return nil
}

// checkLogPages walks the log pages: together they hold every transaction and every log in order.
func (d *Data) checkLogPages(ctx context.Context, found func(error) error) error {
	var table tableMemo
	rows := rowMemo{column: d.blocks}
	next, row := uint64(0), uint32(0) // transactions and logs passed
	for i := range d.logs.pages {
		if err := ctx.Err(); err != nil {
			return err
		}
		run, err := d.page(d.logs, i, nil, &table)
		if err != nil {
			return found(err) // what follows cannot be judged
		}
		var page logPage
		if err = page.parse(run.raw, run.from, run.to); err == nil {
			err = page.checkLengths()
		}
		if err == nil {
			err = d.checkLogPage(&page, &run, next, row, &table, &rows)
		}
		if err != nil {
			if !corrupt.Is(err) {
				err = d.damaged(&run, err)
			}
			return found(err)
		}
		next, row = uint64(page.first)+uint64(page.transactions), run.to
	}
	if next != d.footer.info.Transactions || uint64(row) != d.footer.info.Logs {
		return found(corrupt.AtOffset(d.name, int64(d.limit), fmt.Errorf("%w: they end at transaction %d of %d", errLogPages, next, d.footer.info.Transactions)))
	}
	return nil
}

// checkLogPage checks a page against the number of transactions and logs of those before it.
func (d *Data) checkLogPage(p *logPage, run *pageRun, transactions uint64, row uint32, table *tableMemo, rows *rowMemo) error {
	e, err := d.entry(d.logs, run.number, nil, table)
	if err != nil {
		return err
	}
	// A transaction whose logs cross pages is in each of them.
	crosses := transactions > 0 && uint64(p.first) == transactions-1 && p.rows > 0
	if uint64(p.first) != transactions && !crosses || p.first != e.firstTx || run.from != row {
		return errLogPages
	}
	b, err := d.blockOf(p.first, 0, rows, nil)
	if err == nil && b.Ref.Number-d.footer.info.From != uint64(p.block) {
		err = errPageBlock
	}
	return err
}

// checkBlocks loads every block.
func (d *Data) checkBlocks(ctx context.Context, found func(error) error) error {
	info := &d.footer.info
	var b chain.Block
	hasher := new(keccak.Hasher)
	parent, known := info.FirstParent, true
	for n := info.From; n < info.To; n++ {
		if err := ctx.Err(); err != nil {
			return err
		}
		err := d.Load(n, chain.PartsAll, &b, nil)
		if err == nil {
			err = d.checkBlock(&b, hasher, parent, known)
		}
		if err != nil {
			if err := found(err); err != nil {
				return err
			}
			known = false
			continue
		}
		parent, known = b.Hash, true
	}
	return nil
}

// checkBlock checks the hashes of a block. parent is the hash of the one before where that is known.
func (d *Data) checkBlock(b *chain.Block, hasher *keccak.Hasher, parent common.Hash, known bool) error {
	info := &d.footer.info
	var hash common.Hash
	hasher.Sum(&hash, b.Header)
	var cause error
	switch {
	case hash != b.Hash:
		cause = errHeaderHash
	case known && b.ParentHash != parent:
		cause = errNotChild
	case b.Number == info.From && b.Hash != info.FirstHash, b.Number+1 == info.To && b.Hash != info.LastHash:
		cause = errEdgeHash
	default:
		return nil
	}
	return d.rowDamaged(d.blocks, b.Number-info.From, fmt.Errorf("block %d: %w", b.Number, cause))
}

func (f *File) checkIndexRows(ctx context.Context, found func(error) error) error {
	x, err := NewIndex(f.uncached())
	if err != nil {
		return found(err)
	}
	for _, t := range x.tables() {
		if err := x.checkTable(ctx, t, t.column.id != columnTerms, found); err != nil {
			return err
		}
	}
	return nil
}

// checkTable walks a hash table with all its lists: every position must be listed, by a locator once.
func (x *Index) checkTable(ctx context.Context, t indexTable, once bool, found func(error) error) error {
	listed := newPositionSet(t.bound)
	it := newTableIterator(t)
	terms, clean := uint64(0), true
	note := func(err error) error {
		clean = false
		return found(err)
	}
	for {
		if terms%1024 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		ok, err := it.advance()
		if err != nil {
			if err := note(err); err != nil {
				return err
			}
			it.skipPage()
			continue
		}
		if !ok {
			break
		}
		terms++
		twice := false
		err = it.each(func(positions []uint32) { twice = listed.add(positions) || twice })
		if err == nil && once && twice {
			err = x.damaged(&it.run, errListedTwice)
		}
		if err != nil {
			if err := note(err); err != nil {
				return err
			}
		}
	}
	if !clean {
		return nil // what is missing lies in what is damaged
	}
	var err error
	switch {
	case terms != t.column.rows:
		err = fmt.Errorf("%w: %d terms of %d", errCount, terms, t.column.rows)
	case t.column.id == columnTerms && it.long != x.postings.rows:
		err = fmt.Errorf("%w: %d postings of %d", errCount, it.long, x.postings.rows)
	case listed.count != t.bound:
		err = fmt.Errorf("%w: %d of %d", errUnlisted, listed.count, t.bound)
	default:
		return nil
	}
	return found(corrupt.AtOffset(x.name, int64(x.limit), fmt.Errorf("%s: %w", t.column.id, err)))
}

// positionSet counts distinct positions.
type positionSet struct {
	words []uint64
	count uint64
}

func newPositionSet(bound uint64) *positionSet {
	return &positionSet{words: make([]uint64, bound/64+1)}
}

// add tells whether one of the positions was there before. They are below the bound.
func (s *positionSet) add(positions []uint32) (twice bool) {
	for _, p := range positions {
		bit := uint64(1) << (p & 63)
		if s.words[p>>6]&bit != 0 {
			twice = true
			continue
		}
		s.words[p>>6] |= bit
		s.count++
	}
	return twice
}

func (f *File) checkSendersRows(found func(error) error) error {
	s, err := NewSenders(f.uncached())
	if err == nil {
		err = s.fixedRows(s.senders, 0, s.senders.rows, nil, func([]byte) {})
	}
	if err != nil {
		return found(err)
	}
	return nil
}
