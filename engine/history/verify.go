package history

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"slices"
	"sync"

	"github.com/ethereum/go-ethereum/common"
	"github.com/leani-go/leani/chain"
	"github.com/leani-go/leani/engine"
	"github.com/leani-go/leani/internal/corrupt"
	"github.com/leani-go/leani/segments"
	"github.com/zeebo/xxh3"
)

// Prover proves a block against its own header. It is used by one goroutine.
type Prover interface {
	// Prove recomputes hash and roots of the block, which has the given number and, unless zero, the
	// given parent, and compares them with the header. It may overwrite BlockRef and
	// TransactionHashes of the block with what it computed.
	Prove(b *chain.Block, number uint64, parent common.Hash) error
}

// VerifyOptions configure Verify.
type VerifyOptions struct {
	// NewProver makes a prover for each worker; nil leaves roots unproved and checks the rest.
	NewProver func() Prover
	// NewFrameProver makes a prover of partial material for each file; nil leaves what its frames say was
	// checked unproved.
	NewFrameProver func() FrameProver
	// Blocks limits the verification to a range: to the files that hold blocks of it, the blocks in it, and
	// the index files that lie in it. An empty range stands for everything.
	Blocks chain.Range
	// Senders recovers stored senders again and compares.
	Senders bool
	// Workers is the number of goroutines; 0 stands for one each processor.
	Workers int
	// OnBlocks is told, from any worker, how many more blocks were verified; it may be nil.
	OnBlocks func(blocks int)
}

// VerifyReport is the outcome of Verify.
type VerifyReport struct {
	Blocks, Transactions, Logs uint64
	DataFiles, IndexFiles      int
	// Frames are those of partial material, FramesFiles their files. They count nowhere else.
	Frames      uint64
	FramesFiles int
	// Digest is over the content of all blocks, senders excepted. It does not depend on how they are
	// cut into files, merged or compressed: equal digests mean equal history.
	Digest [32]byte
	// Problems are all that was found, damaged files first. An empty list means that every byte is
	// as written, every block agrees with its header, and every index lists exactly the logs and
	// hashes that are there. Senders are checked as bytes, and recovered again with VerifyOptions.Senders.
	Problems []error
}

// Verify reads and proves everything that is retained. The error is about the verification itself
// (cancelled, store closed); what is wrong with the history is in the report.
func (s *Store) Verify(ctx context.Context, opts VerifyOptions) (VerifyReport, error) {
	snap := s.engine.Acquire()
	defer snap.Release()
	if opts.Workers <= 0 {
		opts.Workers = runtime.GOMAXPROCS(0)
	}
	if opts.OnBlocks == nil {
		opts.OnBlocks = func(int) {}
	}
	v := verification{store: s, snap: snap, opts: opts}
	if opts.Blocks.Empty() {
		v.opts.Blocks = chain.Range{To: math.MaxUint64}
	}
	data := touching(snap.Rows(engine.KindData), v.opts.Blocks)
	var index []*engine.FileRow
	for _, x := range snap.Rows(engine.KindIndex) {
		if v.opts.Blocks.Covers(x.Range()) {
			index = append(index, x)
		}
	}
	v.each(ctx, data, v.dataFile)
	v.each(ctx, index, v.indexFile)
	v.each(ctx, touching(snap.Rows(engine.KindSenders), v.opts.Blocks), v.sendersFile)
	frames := touching(snap.Rows(engine.KindFrames), v.opts.Blocks)
	v.each(ctx, frames, v.framesFile)
	view := s.viewOf(snap)
	if err := v.hotBlocks(ctx, view); err != nil && ctx.Err() == nil {
		v.problem(err)
	}
	if err := ctx.Err(); err != nil {
		return VerifyReport{}, err
	}
	r := VerifyReport{
		DataFiles: len(data), IndexFiles: len(index), Problems: v.problems,
		Blocks: v.blocks, Transactions: v.transactions, Logs: v.logs,
		FramesFiles: len(frames),
	}
	for _, row := range frames {
		r.Frames += row.Blocks()
	}
	for _, b := range view.hot.blocks {
		r.Blocks++
		r.Transactions += uint64(b.Transactions)
		r.Logs += uint64(b.Logs)
	}
	r.Digest = v.digest.bytes()
	return r, nil
}

// Digest is the digest of the report of Verify, computed without proving anything.
func (s *Store) Digest(ctx context.Context) ([32]byte, error) {
	snap := s.engine.Acquire()
	defer snap.Release()
	var digest contentDigest
	var hasher xxh3.Hasher
	var b chain.Block
	for _, row := range snap.Rows(engine.KindData) {
		d, err := s.data(row)
		if err != nil {
			return [32]byte{}, err
		}
		for n := row.From; n < row.To; n++ {
			if err := ctx.Err(); err != nil {
				return [32]byte{}, err
			}
			if err := d.Load(n, chain.PartsAll, &b, nil); err != nil {
				return [32]byte{}, err
			}
			digest.add(n, blockDigest(&hasher, &b))
		}
	}
	if err := s.viewOf(snap).eachHot(ctx, &digest, func(*hotEntry, *chain.Block) error { return nil }); err != nil {
		return [32]byte{}, err
	}
	return digest.bytes(), nil
}

// verification is one run of Verify.
type verification struct {
	store *Store
	snap  *engine.Snapshot
	opts  VerifyOptions

	mu       sync.Mutex
	problems []error
	digest   contentDigest

	blocks, transactions, logs uint64 // that were read
}

// touching are the rows that hold blocks of a range.
func touching(rows []*engine.FileRow, r chain.Range) (out []*engine.FileRow) {
	for _, row := range rows {
		if !row.Range().Intersect(r).Empty() {
			out = append(out, row)
		}
	}
	return out
}

func (v *verification) problem(err error) {
	v.mu.Lock()
	v.problems = append(v.problems, err)
	v.mu.Unlock()
}

// each calls check for every row, on the workers.
func (v *verification) each(ctx context.Context, rows []*engine.FileRow, check func(context.Context, *engine.FileRow) error) {
	next := make(chan *engine.FileRow)
	var group sync.WaitGroup
	for range min(v.opts.Workers, max(len(rows), 1)) {
		group.Go(func() {
			for row := range next {
				if err := check(ctx, row); err != nil && ctx.Err() == nil {
					v.problem(err)
				}
			}
		})
	}
	for _, row := range rows {
		if ctx.Err() != nil {
			break
		}
		next <- row
	}
	close(next)
	group.Wait()
}

var (
	errTransactionHash = errors.New("stored transaction hash differs from the transaction's")
	errBlockRow        = errors.New("block row differs from the header")
)

func (v *verification) dataFile(ctx context.Context, row *engine.FileRow) error {
	f, err := v.store.openApart(row)
	if err != nil {
		return err
	}
	if err := f.CheckPages(ctx, nil); err != nil {
		return err
	}
	d, err := segments.NewData(f)
	if err != nil {
		return err
	}
	var prover Prover
	if v.opts.NewProver != nil {
		prover = v.opts.NewProver()
	}
	var hasher xxh3.Hasher
	var b chain.Block
	var hashes []common.Hash
	part := row.Range().Intersect(v.opts.Blocks)
	parent := row.ParentHash
	if part.From > row.From {
		before, err := d.Block(part.From-1, nil)
		if err != nil {
			return err
		}
		parent = before.Ref.Hash
	}
	senders, err := v.sendersOf(row)
	if err != nil {
		return err
	}
	var digest contentDigest
	var blocks, transactions, logs uint64
	defer func() {
		v.mu.Lock()
		v.digest.join(digest)
		v.blocks, v.transactions, v.logs = v.blocks+blocks, v.transactions+transactions, v.logs+logs
		v.mu.Unlock()
	}()
	for n := part.From; n < part.To; n++ {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := d.Load(n, chain.PartsAll, &b, nil); err != nil {
			return err
		}
		digest.add(n, blockDigest(&hasher, &b))
		blocks, transactions, logs = blocks+1, transactions+uint64(len(b.Transactions)), logs+uint64(len(b.Logs))
		if senders != nil {
			if err := v.compareSenders(ctx, d, senders, &b); err != nil {
				return err
			}
		}
		ref := b.BlockRef
		hashes = append(hashes[:0], b.TransactionHashes...)
		if prover != nil {
			if err := prover.Prove(&b, n, parent); err != nil {
				return corruptRow(row, err)
			}
			if b.BlockRef != ref {
				return corruptRow(row, fmt.Errorf("block %d: %w: got %v want %v", n, errBlockRow, ref, b.BlockRef))
			}
			if !slices.Equal(hashes, b.TransactionHashes) {
				return corruptRow(row, fmt.Errorf("block %d: %w", n, errTransactionHash))
			}
		} else if ref.ParentHash != parent {
			return corruptRow(row, fmt.Errorf("block %d: parent hash: got %x want %x", n, ref.ParentHash, parent))
		}
		parent = ref.Hash
		v.opts.OnBlocks(1)
	}
	if part.To == row.To && parent != row.LastHash {
		return corruptRow(row, fmt.Errorf("last block hash: got %x want %x", parent, row.LastHash))
	}
	return nil
}

// sendersOf opens the stored senders of a data file when they are to be compared; nil when there are none. A
// file that does not open is reported by sendersFile.
func (v *verification) sendersOf(data *engine.FileRow) (*segments.Senders, error) {
	row, ok := v.snap.SendersFile(data)
	if !ok || !v.opts.Senders {
		return nil, nil
	}
	f, err := v.store.openApart(row)
	if err == nil {
		var s *segments.Senders
		if s, err = segments.NewSenders(f); err == nil {
			return s, nil
		}
	}
	if corrupt.Is(err) {
		err = nil
	}
	return nil, err
}

var errSender = errors.New("stored sender differs from the recovered one")

// compareSenders recovers the senders of a block and compares them with those stored.
func (v *verification) compareSenders(ctx context.Context, d *segments.Data, s *segments.Senders, b *chain.Block) error {
	at, err := d.Block(b.Number, nil)
	if err != nil {
		return err
	}
	stored, err := s.Append(nil, at.FirstTransaction, at.Transactions, nil)
	if err != nil {
		return err
	}
	want, err := v.store.recoverSenders(ctx, b.Transactions, 1)
	if err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return corrupt.New(d.Name(), fmt.Errorf("block %d: %w", b.Number, err))
	}
	for i := range want {
		if stored[i] != want[i] {
			return corrupt.New(s.Name(), fmt.Errorf("transaction %d of block %d: %w: got %s want %s", i, b.Number, errSender, stored[i], want[i]))
		}
	}
	return nil
}

var errIndexContent = errors.New("index does not list exactly what the data files hold")

// indexFile compares the whole content of an index with the data files under it.
func (v *verification) indexFile(ctx context.Context, row *engine.FileRow) error {
	f, err := v.store.openApart(row)
	if err != nil {
		return err
	}
	if err := f.CheckPages(ctx, nil); err != nil {
		return err
	}
	x, err := segments.NewIndex(f)
	if err != nil {
		return err
	}
	got, err := x.Sum(ctx)
	if err != nil {
		return err
	}
	var want segments.ContentSum
	for _, r := range v.snap.DataFiles(row.Range()) {
		df, err := v.store.openApart(r)
		if err != nil {
			return err
		}
		d, err := segments.NewData(df)
		if err != nil {
			return err
		}
		if err := d.AddTo(ctx, &want); err != nil {
			return err
		}
	}
	if got != want {
		return corruptRow(row, fmt.Errorf("%w: sums got %+v want %+v", errIndexContent, got, want))
	}
	return nil
}

func (v *verification) sendersFile(ctx context.Context, row *engine.FileRow) error {
	f, err := v.store.openApart(row)
	if err != nil {
		return err
	}
	if err := f.CheckPages(ctx, nil); err != nil {
		return err
	}
	if _, err = segments.NewSenders(f); err != nil {
		return err
	}
	if data, ok := v.snap.DataFile(row.From); !ok || data.FirstHash != row.FirstHash || data.LastHash != row.LastHash {
		return corrupt.New(row.String(), errors.New("senders file belongs to other blocks"))
	}
	return nil
}
