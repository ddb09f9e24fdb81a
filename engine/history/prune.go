package history

import (
	"bufio"
	"context"
	"errors"
	"fmt"

	"github.com/ethereum/go-ethereum/common"
	"github.com/leani-go/leani/chain"
	"github.com/leani-go/leani/engine"
	"github.com/leani-go/leani/internal/corrupt"
	"github.com/leani-go/leani/segments"
	"github.com/zeebo/xxh3"
)

// PruneOptions configure Prune and PruneTo.
type PruneOptions struct {
	// DryRun changes nothing and reports what would go.
	DryRun bool
	// Head allows blocks to go that include the highest retained one, so that the tip moves back. It is
	// for files that are to be filled again.
	Head bool
	// OnFile is told after each file that was written for blocks that stay; it may be nil.
	OnFile func()
}

// PruneReport says what Prune did.
type PruneReport struct {
	// Pruned are the runs of blocks that went, in order.
	Pruned []chain.Range
	Blocks uint64
	// FilesRemoved and BytesRemoved count files that went, those that were rewritten among them.
	FilesRemoved int
	BytesRemoved int64
	// Rewritten counts files that also hold blocks which stay. Of these blocks FilesWritten files of
	// BytesWritten were made; in a dry run both are 0.
	Rewritten    int
	FilesWritten int
	BytesWritten int64
}

// ErrPruneHead is returned by Prune for a range with the highest retained block. The tip that clients see
// would move back, and blocks that they know of would look as if they never were.
var ErrPruneHead = errors.New("the range holds the highest retained block")

// ErrPruneRecent is returned by Prune for a range with recent blocks, which are in no file yet: they go once they
// are sealed.
var ErrPruneRecent = errors.New("the range holds recent blocks")

// Prune removes exactly the blocks of a range from the history, with their senders and their entries in
// indexes; what is not retained of it does not matter. Data files that reach out of the range are written
// again without it, index files are cut. All of it is one commit: after a crash all blocks of the range are
// there or none. Views that are open keep what they see, and their files on the disk.
//
// Files inside the range are not read, so that damaged ones can be dropped; a damaged data file that also
// holds blocks outside must be pruned as a whole, and the error, for which corrupt.Is holds, names it. A
// damaged index file is replaced by indexes built from the data files.
//
// Whole files cost nothing but a commit: on a disk that is full, ranges that end where data and index files
// end can be pruned.
func (s *Store) Prune(ctx context.Context, r chain.Range, opts PruneOptions) (PruneReport, error) {
	s.compacting.Lock() // it would pull files away under the plan
	defer s.compacting.Unlock()
	return s.prune(ctx, r, opts)
}

// PruneTo removes the oldest data files, whole, until all segment files together take at most maximum
// bytes; before them frames files of partial material. The file with the highest block stays.
func (s *Store) PruneTo(ctx context.Context, maximum int64, opts PruneOptions) (PruneReport, error) {
	s.compacting.Lock()
	defer s.compacting.Unlock()
	sum, err := s.pruneFramesTo(ctx, maximum, opts)
	if err != nil {
		return sum, err
	}
	if opts.DryRun {
		maximum += sum.BytesRemoved
	}
	for {
		r := s.oldestBeyond(maximum)
		if r.Empty() {
			return sum, nil
		}
		part, err := s.prune(ctx, r, opts)
		sum.add(part)
		if err != nil || opts.DryRun {
			return sum, err
		}
	}
}

func (r *PruneReport) add(o PruneReport) {
	r.Pruned = append(r.Pruned, o.Pruned...)
	r.Blocks += o.Blocks
	r.FilesRemoved += o.FilesRemoved
	r.BytesRemoved += o.BytesRemoved
	r.Rewritten += o.Rewritten
	r.FilesWritten += o.FilesWritten
	r.BytesWritten += o.BytesWritten
}

// oldestBeyond is the range of the oldest data files whose removal brings the store below maximum bytes,
// by estimate: an index file over many data files shrinks with the logs and transactions that go. Nothing
// is empty.
func (s *Store) oldestBeyond(maximum int64) (r chain.Range) {
	used := s.Bytes()
	snap := s.engine.Acquire()
	defer snap.Release()
	data := snap.Rows(engine.KindData)
	var indexBytes int64
	var entries uint64
	for _, x := range snap.Rows(engine.KindIndex) {
		indexBytes += x.Size
		entries += x.Logs + x.Transactions
	}
	for i := 0; i < len(data)-1 && used > maximum; i++ {
		d := data[i]
		used -= d.Size
		if file, ok := snap.SendersFile(d); ok {
			used -= file.Size
		}
		if entries > 0 {
			used -= int64(float64(indexBytes) * float64(d.Logs+d.Transactions) / float64(entries))
		}
		if i == 0 {
			r.From = d.From
		}
		r.To = d.To
	}
	return r
}

// inclusive names the blocks of a range that is not empty as the command line does, the last one included.
func inclusive(r chain.Range) string {
	if r.Len() == 1 {
		return fmt.Sprintf("block %d", r.From)
	}
	return fmt.Sprintf("blocks %d to %d", r.From, r.To-1)
}

// prune does the work of Prune. The caller holds compacting.
func (s *Store) prune(ctx context.Context, r chain.Range, opts PruneOptions) (report PruneReport, err error) {
	v, err := s.View()
	if err != nil {
		return report, err
	}
	defer v.Close()
	if head, ok := v.Head(); ok && !opts.Head && r.Contains(head) {
		return report, fmt.Errorf("prune %s: %w, %d", inclusive(r), ErrPruneHead, head)
	}
	if recent := v.hot.span; !recent.Intersect(r).Empty() {
		return report, fmt.Errorf("prune %s: %w, %s", inclusive(r), ErrPruneRecent, inclusive(recent))
	}
	p := pruning{store: s, view: v, gone: r, opts: opts}
	defer p.abort()
	if err := p.plan(ctx); err != nil {
		return PruneReport{}, fmt.Errorf("prune %s: %w", inclusive(r), err)
	}
	if len(p.edit.Remove) == 0 || opts.DryRun {
		return p.report, nil
	}
	// Past the budget, so that a store above it can be pruned: what stays is never more than it was, give or
	// take a page.
	if err := s.engine.Commit(ctx, p.edit); err != nil {
		return PruneReport{}, fmt.Errorf("prune %s: %w", inclusive(r), err)
	}
	s.forget(p.edit.Remove)
	return p.report, nil
}

// forget drops what the store keeps for files that went. The caller holds compacting.
func (s *Store) forget(rows []*engine.FileRow) {
	s.open.Lock()
	defer s.open.Unlock()
	for _, r := range rows {
		delete(s.open.byRow, r)
		delete(s.damaged, r)
	}
}

// pruning is one run of Prune.
type pruning struct {
	store  *Store
	view   *View
	gone   chain.Range
	opts   PruneOptions
	edit   engine.Edit
	report PruneReport
}

// abort gives up the files of an edit that was not committed.
func (p *pruning) abort() {
	for _, n := range p.edit.Add {
		_ = n.File.Abort()
	}
}

// plan writes the files of what stays, and fills in edit and report.
func (p *pruning) plan(ctx context.Context) error {
	for _, row := range p.view.snapshot.Rows(engine.KindData) {
		part := row.Range().Intersect(p.gone)
		if part.Empty() {
			continue
		}
		if n := len(p.report.Pruned); n > 0 && p.report.Pruned[n-1].To == part.From {
			p.report.Pruned[n-1].To = part.To
		} else {
			p.report.Pruned = append(p.report.Pruned, part)
		}
		p.report.Blocks += part.Len()
		p.remove(row, part)
		senders, ok := p.view.snapshot.SendersFile(row)
		if ok {
			p.remove(senders, part)
		}
		for _, rest := range row.Range().Without(p.gone) {
			if p.opts.DryRun {
				continue
			}
			if err := p.keepData(ctx, row, senders, rest); err != nil {
				return err
			}
		}
	}
	for _, x := range p.view.snapshot.Rows(engine.KindIndex) {
		part := x.Range().Intersect(p.gone)
		if part.Empty() {
			continue
		}
		p.remove(x, part)
		if p.opts.DryRun {
			continue
		}
		for _, rest := range x.Range().Without(p.gone) {
			if err := p.keepIndex(ctx, x, rest); err != nil {
				return err
			}
		}
	}
	return nil
}

// remove takes a file out that loses the blocks of part.
func (p *pruning) remove(row *engine.FileRow, part chain.Range) {
	p.edit.Remove = append(p.edit.Remove, row)
	p.report.FilesRemoved++
	p.report.BytesRemoved += row.Size
	if part != row.Range() {
		p.report.Rewritten++
	}
}

// add takes a file in.
func (p *pruning) add(row engine.NewRow) {
	p.edit.Add = append(p.edit.Add, row)
	p.report.FilesWritten++
	p.report.BytesWritten += row.File.Size()
	if p.opts.OnFile != nil {
		p.opts.OnFile()
	}
}

// keepData writes the blocks of a data file that stay, and their senders, if there are any.
func (p *pruning) keepData(ctx context.Context, row, senders *engine.FileRow, rest chain.Range) error {
	d, err := p.store.dataApart(row)
	if err != nil {
		return err
	}
	f, err := p.store.engine.NewFile(engine.KindData)
	if err != nil {
		return err
	}
	r := p.store.newRun(f)
	if err := r.copy(ctx, d, rest); err != nil {
		return errors.Join(err, f.Abort())
	}
	kept, info, err := finishData(r)
	if err != nil {
		return errors.Join(err, f.Abort())
	}
	p.add(kept)
	if senders == nil {
		return nil
	}
	of, err := p.sendersOf(d, senders, info)
	if corrupt.Is(err) {
		p.store.opts.Logger.Warn("damaged senders are dropped; they will be recovered again", "cause", err)
		return nil
	}
	if err != nil {
		return err
	}
	add, err := p.store.writeSenders(info, of)
	if err != nil {
		return err
	}
	p.add(add)
	return nil
}

// sendersOf reads the senders of a part of a data file.
func (p *pruning) sendersOf(d *segments.Data, senders *engine.FileRow, part segments.Info) ([]common.Address, error) {
	first, err := d.Block(part.From, nil)
	if err != nil {
		return nil, err
	}
	file, err := p.store.sendersFile(senders)
	if err != nil {
		return nil, err
	}
	return file.Append(make([]common.Address, 0, part.Transactions), first.FirstTransaction, uint32(part.Transactions), nil)
}

// keepIndex writes an index over the blocks of an index file that stay.
func (p *pruning) keepIndex(ctx context.Context, x *engine.FileRow, rest chain.Range) error {
	add, err := p.sliceIndex(ctx, x, rest)
	if corrupt.Is(err) {
		p.store.opts.Logger.Warn("a damaged index file is built again from the data files", "cause", err)
		return p.rebuildIndex(ctx, x, rest)
	}
	if err != nil {
		return err
	}
	p.add(add)
	return nil
}

// sliceIndex cuts an index file.
func (p *pruning) sliceIndex(ctx context.Context, x *engine.FileRow, rest chain.Range) (engine.NewRow, error) {
	part, err := p.partOf(x, rest)
	if err != nil {
		return engine.NewRow{}, err
	}
	file, err := p.store.openApart(x)
	if err != nil {
		return engine.NewRow{}, err
	}
	index, err := segments.NewIndex(file)
	if err != nil {
		return engine.NewRow{}, err
	}
	f, err := p.store.engine.NewFile(engine.KindIndex)
	if err != nil {
		return engine.NewRow{}, err
	}
	out := bufio.NewWriterSize(f, writeBuffer)
	info, digest, err := segments.SliceIndex(ctx, out, index, part)
	if err == nil {
		err = out.Flush()
	}
	if err != nil {
		return engine.NewRow{}, errors.Join(err, f.Abort())
	}
	return engine.NewRow{File: f, Row: rowOf(info, digest, x.Level)}, nil
}

// partOf finds where a part of an index file begins and ends in it.
func (p *pruning) partOf(x *engine.FileRow, rest chain.Range) (segments.Part, error) {
	files, err := p.view.filesOf(x)
	if err != nil {
		return segments.Part{}, err
	}
	start, err := p.place(files, rest.From, files[0])
	if err != nil {
		return segments.Part{}, err
	}
	end, err := p.place(files, rest.To, files[0])
	if err != nil {
		return segments.Part{}, err
	}
	info := segments.Info{
		Kind: segments.KindIndex, Profile: x.Profile, From: rest.From, To: rest.To,
		Logs: end.logs - start.logs, Transactions: end.transactions - start.transactions,
		FirstParent: x.ParentHash, FirstHash: x.FirstHash, LastHash: x.LastHash,
	}
	if rest.From > x.From {
		if info.FirstHash, info.FirstParent, err = p.hashes(rest.From); err != nil {
			return segments.Part{}, err
		}
	}
	if rest.To < x.To {
		if info.LastHash, _, err = p.hashes(rest.To - 1); err != nil {
			return segments.Part{}, err
		}
	}
	return segments.Part{Info: info, FirstLog: start.logs, FirstTransaction: start.transactions}, nil
}

// place counts the logs and transactions of files before block n.
func (p *pruning) place(files []positioned, n uint64, first positioned) (at positioned, err error) {
	for _, f := range files {
		at = positioned{logs: f.logs - first.logs, transactions: f.transactions - first.transactions}
		if n >= f.row.To {
			at.logs += f.row.Logs
			at.transactions += f.row.Transactions
			continue
		}
		if n == f.row.From {
			return at, nil
		}
		d, err := p.store.data(f.row)
		if err != nil {
			return at, err
		}
		b, err := d.Block(n, &p.view.access)
		if err != nil {
			return at, err
		}
		at.logs += uint64(b.FirstLog)
		at.transactions += uint64(b.FirstTransaction)
		return at, nil
	}
	return at, nil
}

// hashes are those of block n and its parent.
func (p *pruning) hashes(n uint64) (hash, parent common.Hash, err error) {
	row, err := p.view.dataOf(n)
	if err != nil {
		return hash, parent, err
	}
	var b chain.Block
	if err := p.view.load(row, n, chain.PartHeader, &b); err != nil {
		return hash, parent, err
	}
	return b.Hash, b.ParentHash, nil
}

// rebuildIndex writes an index file for each data file under a part of an index file.
func (p *pruning) rebuildIndex(ctx context.Context, x *engine.FileRow, rest chain.Range) error {
	for _, row := range p.view.snapshot.DataFiles(rest) {
		part := row.Range().Intersect(rest)
		if p.indexedBesides(x, part) {
			continue
		}
		add, err := p.store.buildIndex(ctx, row, part)
		if err != nil {
			return err
		}
		p.add(add)
	}
	return nil
}

// indexedBesides tells whether an index file other than x reaches blocks.
func (p *pruning) indexedBesides(x *engine.FileRow, part chain.Range) bool {
	for _, other := range p.view.snapshot.Rows(engine.KindIndex) {
		if other != x && !other.Range().Intersect(part).Empty() {
			return true
		}
	}
	return false
}

// buildIndex writes an index file over blocks of one data file.
func (s *Store) buildIndex(ctx context.Context, row *engine.FileRow, part chain.Range) (engine.NewRow, error) {
	d, err := s.dataApart(row)
	if err != nil {
		return engine.NewRow{}, err
	}
	r := s.newRun(nil)
	if err := r.copy(ctx, d, part); err != nil {
		return engine.NewRow{}, err
	}
	if _, _, err := r.builder.Finish(); err != nil {
		return engine.NewRow{}, err
	}
	return s.writeIndex(r)
}

// copy adds blocks of a data file to a run.
func (r *run) copy(ctx context.Context, d *segments.Data, blocks chain.Range) error {
	var hasher xxh3.Hasher
	var b chain.Block
	for n := blocks.From; n < blocks.To; n++ {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := d.Load(n, chain.PartsAll, &b, nil); err != nil {
			return err
		}
		if err := r.builder.Add(&b); err != nil {
			return err
		}
		r.digests = append(r.digests, blockDigest(&hasher, &b))
	}
	return nil
}
