package history

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/leani-go/leani/chain"
	"github.com/leani-go/leani/engine"
	"github.com/leani-go/leani/internal/corrupt"
	"github.com/leani-go/leani/keys"
	"github.com/leani-go/leani/segments"
	"github.com/zeebo/xxh3"
)

const (
	// writeBuffer gathers pages into writes.
	writeBuffer = 256 << 10
	// readBackCache holds the dictionaries of one data file.
	readBackCache = 8 << 20
)

// Writer adds blocks to the history. Each run of blocks becomes a data file and an index file, which
// are read back, compared with what was added, and committed together. While one run is finished and
// committed, the next is already being built: at most two are held at any time.
//
// One goroutine calls Add, Cut and Close.
type Writer struct {
	store    *Store
	ctx      context.Context
	onCommit func(chain.Range)

	run    *run
	hasher xxh3.Hasher
	last   chain.BlockRef
	err    error // the first failure; nothing is added or committed after it

	sealing chan error // result of the run being sealed; nil when there is none
}

// run is a data file being built.
type run struct {
	builder *segments.DataBuilder
	file    *engine.PendingFile
	out     *bufio.Writer
	digests []xxh3.Uint128 // by block
}

// NewWriter makes a writer. onCommit is called after each commit with the blocks that became durable,
// on another goroutine than the caller's; it may be nil. The writer stops with the context's error.
func (s *Store) NewWriter(ctx context.Context, onCommit func(chain.Range)) *Writer {
	if onCommit == nil {
		onCommit = func(chain.Range) {}
	}
	return &Writer{store: s, ctx: ctx, onCommit: onCommit}
}

// Add appends a block. It must be verified, complete, and not retained yet. A block that does not
// follow the one before it starts a new run. Nothing of the block is kept when Add returns. The block
// is durable once onCommit has named it, or Close has returned nil. An error may be that of an earlier
// run, and ends the writer: every later call but Close returns it again.
func (w *Writer) Add(b *chain.Block) error {
	if w.err == nil {
		w.err = w.add(b)
	}
	return w.err
}

func (w *Writer) add(b *chain.Block) error {
	if err := w.ctx.Err(); err != nil {
		return err
	}
	if w.run != nil && w.ends(b) {
		if err := w.cut(); err != nil {
			return err
		}
	}
	if w.run == nil {
		if err := w.begin(); err != nil {
			return err
		}
	}
	if err := w.run.builder.Add(b); err != nil {
		return err
	}
	w.run.digests = append(w.run.digests, blockDigest(&w.hasher, b))
	w.last = b.BlockRef
	return nil
}

// ends tells whether the open run ends before b: at a multiple of the target, when it is large, or
// because b does not follow.
func (w *Writer) ends(b *chain.Block) bool {
	return b.Number%w.store.opts.TargetBlocks == 0 || b.Number != w.last.Number+1 ||
		w.run.builder.Memory() > w.store.opts.BuilderMemory || w.run.builder.Written() > w.store.opts.SegmentBytes
}

// Pending is the number of blocks in the open run.
func (w *Writer) Pending() int {
	if w.run == nil {
		return 0
	}
	return w.run.builder.Blocks()
}

func (w *Writer) begin() error {
	f, err := w.store.engine.NewFile(engine.KindData)
	if err != nil {
		return err
	}
	w.run = w.store.newRun(f)
	return nil
}

// newRun begins a run that writes to f; without a file it only builds, for its index.
func (s *Store) newRun(f *engine.PendingFile) *run {
	r := &run{file: f}
	var to io.Writer = io.Discard
	if f != nil {
		to = f
	}
	r.out = bufio.NewWriterSize(to, writeBuffer)
	r.builder = segments.NewDataBuilder(r.out, segments.DataOptions{Compression: s.opts.Compression})
	return r
}

// Cut ends the open run, and starts to seal it once the run before is committed. It returns the error
// of that earlier run, as Add does.
func (w *Writer) Cut() error {
	if w.err == nil {
		w.err = w.cut()
	}
	return w.err
}

func (w *Writer) cut() error {
	if err := w.wait(); err != nil {
		return err
	}
	r := w.run
	if r == nil {
		return nil
	}
	w.run = nil
	done := make(chan error, 1)
	w.sealing = done
	// The goroutine is owned by the writer: wait receives its result.
	go func() { done <- w.store.seal(w.ctx, r, w.onCommit) }()
	return nil
}

// wait returns the result of the run being sealed, if there is one.
func (w *Writer) wait() error {
	if w.sealing == nil {
		return nil
	}
	err := <-w.sealing
	w.sealing = nil
	return err
}

// Close commits what was added and waits for it. It must be called once, also after an error, which it
// returns again; the open run is then given up. With discard set it is given up in any case, and only
// what fails from here on is returned.
func (w *Writer) Close(discard bool) error {
	var err error
	if !discard {
		err = w.Cut()
	}
	err = errors.Join(err, w.wait())
	if w.run != nil {
		err = errors.Join(err, w.run.file.Abort())
		w.run = nil
	}
	return err
}

// seal finishes, proves and commits a run.
func (s *Store) seal(ctx context.Context, r *run, onCommit func(chain.Range)) (err error) {
	defer func() {
		if abortErr := r.file.Abort(); err == nil { // does nothing after a commit
			err = abortErr
		}
	}()
	edit, info, err := s.finish(r)
	if err != nil {
		return err
	}
	defer func() {
		for _, f := range edit.Add {
			err = errors.Join(err, f.File.Abort())
		}
	}()
	if err := s.commit(ctx, edit); err != nil {
		return fmt.Errorf("blocks [%d, %d): %w", info.From, info.To, err)
	}
	onCommit(chain.Range{From: info.From, To: info.To})
	return nil
}

// ErrBudget is returned when storing more would pass Options.MaximumBytes or Options.MaximumLogicalBytes. What
// was stored stays.
var ErrBudget = errors.New("byte budget of the raw history is used up")

// commit commits an edit that stays within the budgets.
func (s *Store) commit(ctx context.Context, edit engine.Edit) error {
	if err := s.admit(ctx, edit); err != nil {
		return err
	}
	return s.engine.Commit(ctx, edit)
}

// Bytes is the size of all segment files together.
func (s *Store) Bytes() int64 {
	snap := s.engine.Acquire()
	defer snap.Release()
	var sum int64
	for _, kind := range keys.Kinds() {
		for _, r := range snap.Rows(kind) {
			sum += r.Size
		}
	}
	return sum
}

// finish writes the rest of both files of a run and compares what they hold with what was added.
func (s *Store) finish(r *run) (engine.Edit, segments.Info, error) {
	data, info, err := closeData(r)
	if err != nil {
		return engine.Edit{}, info, err
	}
	compared := make(chan error, 1)
	go func() { compared <- compare(r, data.Row.Digest) }() // beside the index, which reads the builder
	index, err := s.writeIndex(r)
	if compareErr := <-compared; compareErr != nil {
		if err == nil {
			err = index.File.Abort()
		}
		return engine.Edit{}, info, errors.Join(readBackError(info, compareErr), err)
	}
	if err != nil {
		return engine.Edit{}, info, err
	}
	return engine.Edit{Add: []engine.NewRow{data, index}}, info, nil
}

// finishData writes the rest of the data file of a run and compares what it holds with what was added.
func finishData(r *run) (engine.NewRow, segments.Info, error) {
	data, info, err := closeData(r)
	if err != nil {
		return engine.NewRow{}, info, err
	}
	if err := compare(r, data.Row.Digest); err != nil {
		return engine.NewRow{}, info, readBackError(info, err)
	}
	return data, info, nil
}

func readBackError(info segments.Info, err error) error {
	return fmt.Errorf("read back blocks [%d, %d): %w", info.From, info.To, err)
}

// closeData writes the rest of the data file of a run.
func closeData(r *run) (engine.NewRow, segments.Info, error) {
	info, digest, err := r.builder.Finish()
	if err == nil {
		err = r.out.Flush()
	}
	if err != nil {
		return engine.NewRow{}, info, fmt.Errorf("finish data file: %w", err)
	}
	return engine.NewRow{File: r.file, Row: rowOf(info, digest, 0)}, info, nil
}

// writeIndex writes the index file of a run whose data file is finished.
func (s *Store) writeIndex(r *run) (engine.NewRow, error) {
	index, err := s.engine.NewFile(engine.KindIndex)
	if err != nil {
		return engine.NewRow{}, err
	}
	out := bufio.NewWriterSize(index, writeBuffer)
	info, digest, err := r.builder.WriteIndex(out)
	if err == nil {
		err = out.Flush()
	}
	if err != nil {
		return engine.NewRow{}, errors.Join(fmt.Errorf("write index file: %w", err), index.Abort())
	}
	return engine.NewRow{File: index, Row: rowOf(info, digest, 0)}, nil
}

// rowOf makes the catalog row of a segment file.
func rowOf(i segments.Info, digest [32]byte, level uint8) engine.FileRow {
	return engine.FileRow{
		Kind: engine.Kind(i.Kind), Level: level, Profile: i.Profile, From: i.From, To: i.To,
		Transactions: i.Transactions, Logs: i.Logs, Digest: digest,
		FirstHash: i.FirstHash, LastHash: i.LastHash, ParentHash: i.FirstParent,
	}
}

var errReadBack = errors.New("a block reads back different from what was added")

// reopen opens a finished file to read it back. It does not use the store's page cache, which belongs to queries.
func reopen(file *engine.PendingFile, digest [32]byte) (*segments.File, error) {
	f, err := segments.Open(file.Path(), 0, file, segments.NewCache(readBackCache))
	if err != nil {
		return nil, err
	}
	if f.Digest() != digest {
		return nil, corrupt.New(f.Name(), errReadBack)
	}
	return f, nil
}

// compare reads a finished data file and compares every block with what was added: canonical receipts,
// blooms and roots follow from equal blocks.
func compare(r *run, digest [32]byte) error {
	f, err := reopen(r.file, digest)
	if err != nil {
		return err
	}
	d, err := segments.NewData(f)
	if err != nil {
		return err
	}
	var hasher xxh3.Hasher
	var b chain.Block
	for i, want := range r.digests {
		n := f.Info().From + uint64(i)
		if err := d.Load(n, chain.PartsAll, &b, nil); err != nil {
			return err
		}
		if blockDigest(&hasher, &b) != want {
			return corrupt.New(f.Name(), fmt.Errorf("block %d: %w", n, errReadBack))
		}
	}
	return nil
}
