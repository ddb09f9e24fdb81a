package history

import (
	"bufio"
	"context"
	"errors"
	"fmt"

	"github.com/zeebo/xxh3"

	"github.com/leani-go/leani/chain"
	"github.com/leani-go/leani/engine"
	"github.com/leani-go/leani/segments"
)

// SealRecent moves final blocks of the hot tier into files, as far as that is due, and tells how many. A file
// holds a full run of blocks, unless the hot tier is above its soft bound.
func (s *Store) SealRecent(ctx context.Context) (blocks uint64, err error) {
	return s.sealRecent(ctx, s.sealable)
}

// SealFinal moves all final blocks of the hot tier into files, due or not, and tells how many.
func (s *Store) SealFinal(ctx context.Context) (blocks uint64, err error) {
	return s.sealRecent(ctx, s.final)
}

func (s *Store) sealRecent(ctx context.Context, until func(*engine.Snapshot) uint64) (blocks uint64, err error) {
	s.compacting.Lock()
	defer s.compacting.Unlock()
	for {
		n, err := s.sealRecentOnce(ctx, until)
		blocks += n
		if err != nil || n == 0 {
			return blocks, err
		}
	}
}

// final gives the end of the final blocks.
func (s *Store) final(snap *engine.Snapshot) uint64 {
	hot := snap.HotRange()
	if finalized, ok := snap.Mark(engine.FinalityFinalized); ok {
		return max(hot.From, min(hot.To, finalized.Number+1))
	}
	if d := s.opts.Recent.Depth; d > 0 && hot.Len() > d {
		return hot.To - d
	}
	return hot.From
}

// sealable gives the end of the blocks that are due to be sealed.
func (s *Store) sealable(snap *engine.Snapshot) uint64 {
	hot, end := snap.HotRange(), s.final(snap)
	o := s.opts.Recent
	if snap.HotBytes() <= o.HardBytes {
		if hot.Len() <= o.MinimumBlocks {
			return hot.From
		}
		end = min(end, hot.To-o.MinimumBlocks)
	}
	if snap.HotBytes() <= o.SoftBytes {
		end -= end % s.opts.TargetBlocks
	}
	return max(hot.From, end)
}

// sealRecentOnce seals the blocks of one file.
func (s *Store) sealRecentOnce(ctx context.Context, until func(*engine.Snapshot) uint64) (blocks uint64, err error) {
	v, err := s.View()
	if err != nil {
		return 0, err
	}
	defer v.Close()
	r := chain.Range{From: v.hot.span.From, To: until(v.snapshot)}
	if r.Empty() {
		return 0, nil
	}
	f, err := s.engine.NewFile(engine.KindData)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, f.Abort()) }() // does nothing after the commit
	run := &run{file: f, out: bufio.NewWriterSize(f, writeBuffer)}
	run.builder = segments.NewDataBuilder(run.out, segments.DataOptions{Compression: s.opts.Compression})
	var hasher xxh3.Hasher
	var b chain.Block
	for n := r.From; n < r.To; n++ {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		if n > r.From && (n%s.opts.TargetBlocks == 0 || run.builder.Memory() > s.opts.BuilderMemory || run.builder.Written() > s.opts.SegmentBytes) {
			r.To = n
			break
		}
		e, _ := v.hot.at(n)
		if err := v.loadHot(e, chain.PartsAll, &b); err != nil {
			return 0, err
		}
		if err := run.builder.Add(&b); err != nil {
			return 0, err
		}
		run.digests = append(run.digests, blockDigest(&hasher, &b))
	}
	edit, _, err := s.finish(run)
	if err != nil {
		return 0, err
	}
	defer func() {
		for _, a := range edit.Add {
			err = errors.Join(err, a.File.Abort())
		}
	}()
	edit.Hot.EvictTo = r.To
	if err := s.commit(ctx, edit); err != nil {
		return 0, fmt.Errorf("seal blocks %v: %w", r, err)
	}
	return r.Len(), nil
}
