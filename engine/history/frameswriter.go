package history

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"sort"

	"github.com/ethereum/go-ethereum/common"
	"github.com/zeebo/xxh3"

	"github.com/leani-go/leani/chain"
	"github.com/leani-go/leani/engine"
	"github.com/leani-go/leani/segments"
)

// Errors of FramesWriter.Add, about a frame that cannot be kept.
var (
	// ErrOtherChain is returned for a frame of another chain than the store's.
	ErrOtherChain = errors.New("frame is of another chain")
	// ErrContradiction is returned for a frame that is of another block, or has another parent, than what is
	// retained says.
	ErrContradiction = errors.New("frame contradicts what is retained")
)

// maximumReady bounds the files that one commit of frames adds.
const maximumReady = 64

// FramesWriter adds frames of partial material to the store. Each parent-linked run of frames of one profile
// becomes a file, which is read back and compared; files are committed together.
//
// One goroutine.
type FramesWriter struct {
	store    *Store
	ctx      context.Context
	onCommit func(blocks uint64)

	view    *View // what is retained, since the last commit; nil when it is to be asked
	covered []chain.Range
	run     *framesRun
	ready   []engine.NewRow
	last    chain.BlockRef
	// described is the profile of the last frame in bytes, and id its number.
	described []byte
	id        uint16
	scratch   []byte
	hasher    xxh3.Hasher
	err       error
}

// framesRun is a frames file being built.
type framesRun struct {
	builder *segments.FramesBuilder
	file    *engine.PendingFile
	out     *bufio.Writer
	id      uint16
	digests []xxh3.Uint128
}

// NewFramesWriter makes a writer. onCommit is called after each commit with the number of frames that became
// durable; it may be nil. The writer stops with the context's error.
func (s *Store) NewFramesWriter(ctx context.Context, onCommit func(blocks uint64)) *FramesWriter {
	if onCommit == nil {
		onCommit = func(uint64) {}
	}
	return &FramesWriter{store: s, ctx: ctx, onCommit: onCommit}
}

// AddFrames keeps frames of partial material, in the order given, and returns when they are durable. On an error
// some of them may be kept.
func (s *Store) AddFrames(ctx context.Context, frames ...*chain.Frame) error {
	w := s.NewFramesWriter(ctx, nil)
	for _, f := range frames {
		if err := w.Add(f); err != nil {
			return errors.Join(err, w.Close(true))
		}
	}
	return w.Close(false)
}

// Add keeps a frame, unless one of the same profile is kept of the block already. What the frame says it holds
// and what was checked of it is taken as it is: whoever calls has proved it. It must be of the store's chain,
// and neither it nor its parent may contradict blocks that are retained or frames of its profile beside it.
// Nothing of the frame is kept when Add returns. It is durable once Cut or Close has returned nil, or earlier.
//
// After ErrOtherChain, ErrContradiction or segments.ErrMalformedBlock the writer can go on; any other error ends
// it and is returned by every later call but Close.
func (w *FramesWriter) Add(f *chain.Frame) error {
	if w.err != nil {
		return w.err
	}
	err := w.add(f)
	if err == nil {
		return nil
	}
	err = fmt.Errorf("keep frame of block %s: %w", f.BlockRef, err)
	for _, refused := range []error{ErrOtherChain, ErrContradiction, segments.ErrMalformedBlock} {
		if errors.Is(err, refused) {
			return err
		}
	}
	w.err = err
	return err
}

func (w *FramesWriter) add(f *chain.Frame) error {
	if err := w.ctx.Err(); err != nil {
		return err
	}
	if f.ChainID != w.store.engine.ChainID() {
		return fmt.Errorf("%w: got %d want %d", ErrOtherChain, f.ChainID, w.store.engine.ChainID())
	}
	if err := f.CheckShape(); err != nil {
		return fmt.Errorf("%w: %w", segments.ErrMalformedBlock, err)
	}
	if w.last.Hash != (common.Hash{}) && f.Number == w.last.Number+1 && f.ParentHash != w.last.Hash {
		return fmt.Errorf("%w: parent got %x want %x", ErrContradiction, f.ParentHash, w.last.Hash)
	}
	profile := f.Profile()
	if err := w.profile(&profile); err != nil {
		return err
	}
	if w.run != nil && w.ends(f) {
		if err := w.finish(); err != nil {
			return err
		}
	}
	kept, err := w.compare(f)
	if kept || err != nil {
		return err
	}
	if w.run == nil {
		if err := w.begin(&profile); err != nil {
			return err
		}
	}
	raw, err := w.run.builder.Add(f)
	if err != nil {
		if w.run.builder.Blocks() == 0 {
			err = errors.Join(err, w.abort())
		}
		return err
	}
	w.run.digests = append(w.run.digests, frameDigest(&w.hasher, f.BlockRef, raw))
	w.last = f.BlockRef
	return nil
}

// profile finds the number of a profile.
func (w *FramesWriter) profile(p *chain.Profile) (err error) {
	if w.scratch, err = segments.AppendProfile(w.scratch[:0], p); err != nil {
		return fmt.Errorf("%w: %w", segments.ErrMalformedBlock, err)
	}
	if w.id != 0 && string(w.scratch) == string(w.described) {
		return nil
	}
	id, err := w.store.engine.ProfileID(groupsOf(p), w.scratch)
	if err != nil {
		return err
	}
	w.id, w.described = id, append(w.described[:0], w.scratch...)
	return nil
}

// ends tells whether the open run ends before f.
func (w *FramesWriter) ends(f *chain.Frame) bool {
	return w.id != w.run.id || f.Number != w.last.Number+1 || f.Number%w.store.opts.TargetBlocks == 0 ||
		w.run.builder.Written() > w.store.opts.SegmentBytes
}

// compare holds a frame against the blocks that are retained, and the frames of its profile; kept tells that one
// of the block is among those.
func (w *FramesWriter) compare(f *chain.Frame) (kept bool, err error) {
	if w.touchesReady(f) {
		if err := w.commit(); err != nil {
			return false, err
		}
	}
	if w.view == nil {
		if w.view, err = w.store.View(); err != nil {
			return false, err
		}
		w.covered = w.view.Coverage()
	}
	if err := w.compareBlocks(f); err != nil {
		return false, err
	}
	rows := w.view.snapshot.Frames(w.id)
	first := sort.Search(len(rows), func(i int) bool { return rows[i].To >= f.Number })
	for _, row := range rows[first:min(first+3, len(rows))] { // before it, with it, behind it
		switch {
		case row.To == f.Number && row.LastHash != f.ParentHash:
			return false, fmt.Errorf("%w: parent got %x, the frame before has %x", ErrContradiction, f.ParentHash, row.LastHash)
		case row.From == f.Number+1 && row.ParentHash != f.Hash:
			return false, fmt.Errorf("%w: got %x, the frame behind follows %x", ErrContradiction, f.Hash, row.ParentHash)
		case row.Range().Contains(f.Number):
			file, err := w.store.frames(w.view.snapshot, row)
			if err != nil {
				return false, err
			}
			ref, err := file.Ref(f.Number, &w.view.access)
			if err == nil && ref.Hash != f.Hash {
				err = fmt.Errorf("%w: got %x, a frame is kept of %x", ErrContradiction, f.Hash, ref.Hash)
			}
			return true, err
		}
	}
	return false, nil
}

// compareBlocks compares a frame with the retained blocks of its number and beside it.
func (w *FramesWriter) compareBlocks(f *chain.Frame) error {
	var b chain.Block
	for n := f.Number - min(f.Number, 1); n <= f.Number+1; n++ {
		if !slices.ContainsFunc(w.covered, func(r chain.Range) bool { return r.Contains(n) }) {
			continue
		}
		if err := w.view.LoadBlock(w.ctx, n, chain.PartHeader, &b); err != nil {
			return err
		}
		got, want := f.Hash, b.Hash
		switch {
		case n < f.Number:
			got = f.ParentHash
		case n > f.Number:
			want = b.ParentHash
		}
		if got != want {
			return fmt.Errorf("%w: got %x want %x by retained block %d", ErrContradiction, got, want, n)
		}
	}
	return nil
}

// touchesReady tells whether a file of the profile that waits for its commit holds the block of a frame or the
// one behind it, or one before it that is not its parent.
func (w *FramesWriter) touchesReady(f *chain.Frame) bool {
	return slices.ContainsFunc(w.ready, func(r engine.NewRow) bool {
		return r.Row.Profile == w.id && r.Row.From <= f.Number+1 &&
			(f.Number < r.Row.To || f.Number == r.Row.To && f.ParentHash != r.Row.LastHash)
	})
}

func (w *FramesWriter) begin(p *chain.Profile) error {
	file, err := w.store.engine.NewFile(engine.KindFrames)
	if err != nil {
		return err
	}
	r := &framesRun{file: file, out: bufio.NewWriterSize(file, writeBuffer), id: w.id}
	r.builder, err = segments.NewFramesBuilder(r.out, segments.FramesOptions{ID: w.id, Profile: *p, Compression: w.store.opts.Compression})
	if err != nil {
		return errors.Join(err, file.Abort())
	}
	w.run = r
	return nil
}

// finish ends the open run: its file waits for the next commit.
func (w *FramesWriter) finish() error {
	r := w.run
	if r == nil {
		return nil
	}
	w.run = nil
	info, digest, err := r.builder.Finish()
	if err == nil {
		err = r.out.Flush()
	}
	if err == nil {
		err = r.readBack(info, digest)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("finish frames file: %w", err), r.file.Abort())
	}
	w.ready = append(w.ready, engine.NewRow{File: r.file, Row: rowOf(info, digest, 0)})
	if len(w.ready) >= maximumReady {
		return w.commit()
	}
	return nil
}

// readBack compares a finished file with what was added.
func (r *framesRun) readBack(info segments.Info, digest [32]byte) error {
	f, err := reopen(r.file, digest)
	if err != nil {
		return err
	}
	v, err := segments.NewFrames(f)
	if err != nil {
		return err
	}
	var hasher xxh3.Hasher
	for i, want := range r.digests {
		n := info.From + uint64(i)
		ref, err := v.Ref(n, nil)
		if err != nil {
			return err
		}
		err = v.Raw(n, nil, func(raw []byte) error {
			if frameDigest(&hasher, ref, raw) != want {
				return fmt.Errorf("frame of block %d: %w", n, errReadBack)
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// frameDigest is a digest over a frame as it is stored. It compares what was added with what is read back.
func frameDigest(h *xxh3.Hasher, ref chain.BlockRef, raw []byte) xxh3.Uint128 {
	h.Reset()
	var numbers [16]byte
	binary.LittleEndian.PutUint64(numbers[:], ref.Number)
	binary.LittleEndian.PutUint64(numbers[8:], ref.Timestamp)
	_, _ = h.Write(numbers[:])
	_, _ = h.Write(ref.Hash[:])
	_, _ = h.Write(ref.ParentHash[:])
	_, _ = h.Write(raw)
	return h.Sum128()
}

// commit commits the files that wait.
func (w *FramesWriter) commit() error {
	w.forgetView()
	if len(w.ready) == 0 {
		return nil
	}
	blocks := uint64(0)
	for i := range w.ready {
		blocks += w.ready[i].Row.Blocks()
	}
	if err := w.store.commit(w.ctx, engine.Edit{Add: w.ready}); err != nil {
		return fmt.Errorf("%d frames: %w", blocks, err)
	}
	w.ready = w.ready[:0]
	w.onCommit(blocks)
	return nil
}

func (w *FramesWriter) forgetView() {
	if w.view != nil {
		w.view.Close()
		w.view = nil
	}
}

// Pending is the number of frames that no commit has made durable.
func (w *FramesWriter) Pending() int {
	n := 0
	if w.run != nil {
		n = w.run.builder.Blocks()
	}
	for i := range w.ready {
		n += int(w.ready[i].Row.Blocks())
	}
	return n
}

// Cut makes everything that was added durable.
func (w *FramesWriter) Cut() error {
	if w.err == nil {
		if w.err = w.finish(); w.err == nil {
			w.err = w.commit()
		}
	}
	return w.err
}

// Close makes what was added durable, or gives up with discard set what no commit has taken. It must be called
// once, also after an error, which it returns again unless discard is set.
func (w *FramesWriter) Close(discard bool) error {
	var err error
	if !discard {
		err = w.Cut()
	}
	w.forgetView()
	err = errors.Join(err, w.abort())
	for _, r := range w.ready {
		err = errors.Join(err, r.File.Abort())
	}
	w.ready = nil
	return err
}

// abort gives up the open run.
func (w *FramesWriter) abort() error {
	if w.run == nil {
		return nil
	}
	r := w.run
	w.run = nil
	return r.file.Abort()
}
