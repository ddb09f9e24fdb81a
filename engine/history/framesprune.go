package history

import (
	"bufio"
	"context"
	"errors"
	"fmt"

	"github.com/leani-go/leani/chain"
	"github.com/leani-go/leani/engine"
	"github.com/leani-go/leani/segments"
	"github.com/zeebo/xxh3"
)

// AllProfiles stands for every kind of partial material in PruneFrames.
const AllProfiles = 0

// PruneFrames removes exactly the frames of a range, of one profile or of all; complete blocks stay. Files that
// reach out of the range are written again without it. All of it is one commit. Files inside the range are not
// read, so that damaged ones can be dropped. PruneOptions.Head means nothing here: frames are no tip.
func (s *Store) PruneFrames(ctx context.Context, profile uint16, r chain.Range, opts PruneOptions) (PruneReport, error) {
	s.compacting.Lock()
	defer s.compacting.Unlock()
	return s.pruneFrames(ctx, r, opts, func(row *engine.FileRow) bool { return profile == AllProfiles || row.Profile == profile })
}

func (s *Store) pruneFrames(ctx context.Context, r chain.Range, opts PruneOptions, of func(*engine.FileRow) bool) (PruneReport, error) {
	v, err := s.View()
	if err != nil {
		return PruneReport{}, err
	}
	defer v.Close()
	p := pruning{store: s, view: v, gone: r, opts: opts}
	defer p.abort()
	for _, row := range v.snapshot.Rows(engine.KindFrames) {
		part := row.Range().Intersect(r)
		if part.Empty() || !of(row) {
			continue
		}
		if n := len(p.report.Pruned); n > 0 && p.report.Pruned[n-1].To == part.From {
			p.report.Pruned[n-1].To = part.To
		} else {
			p.report.Pruned = append(p.report.Pruned, part)
		}
		p.report.Blocks += part.Len()
		p.remove(row, part)
		for _, rest := range row.Range().Without(r) {
			if p.opts.DryRun {
				continue
			}
			if err := p.keepFrames(ctx, row, rest); err != nil {
				return PruneReport{}, fmt.Errorf("prune frames of %s: %w", inclusive(r), err)
			}
		}
	}
	if len(p.edit.Remove) == 0 || opts.DryRun {
		return p.report, nil
	}
	if err := s.engine.Commit(ctx, p.edit); err != nil {
		return PruneReport{}, fmt.Errorf("prune frames of %s: %w", inclusive(r), err)
	}
	s.forget(p.edit.Remove)
	return p.report, nil
}

// keepFrames writes the frames of a file that stay.
func (p *pruning) keepFrames(ctx context.Context, row *engine.FileRow, rest chain.Range) error {
	f, err := p.store.openApart(row)
	if err != nil {
		return err
	}
	from, err := framesOf(p.view.snapshot, row, f)
	if err != nil {
		return err
	}
	file, err := p.store.engine.NewFile(engine.KindFrames)
	if err != nil {
		return err
	}
	r := &framesRun{file: file, out: bufio.NewWriterSize(file, writeBuffer), id: row.Profile}
	info, digest, err := p.copyFrames(ctx, r, from, rest)
	if err == nil {
		err = r.readBack(info, digest)
	}
	if err != nil {
		return errors.Join(err, file.Abort())
	}
	p.add(engine.NewRow{File: file, Row: rowOf(info, digest, 0)})
	return nil
}

func (p *pruning) copyFrames(ctx context.Context, r *framesRun, from *segments.Frames, blocks chain.Range) (info segments.Info, digest [32]byte, err error) {
	r.builder, err = segments.NewFramesBuilder(r.out, segments.FramesOptions{
		ID: r.id, Profile: *from.Profile(), Compression: p.store.opts.Compression,
	})
	var hasher xxh3.Hasher
	var f chain.Frame
	for n := blocks.From; n < blocks.To && err == nil; n++ {
		if err = ctx.Err(); err != nil {
			break
		}
		if err = from.Load(n, &f, nil); err != nil {
			break
		}
		var raw []byte
		if raw, err = r.builder.Add(&f); err == nil {
			r.digests = append(r.digests, frameDigest(&hasher, f.BlockRef, raw))
		}
	}
	if err == nil {
		if info, digest, err = r.builder.Finish(); err == nil {
			err = r.out.Flush()
		}
	}
	return info, digest, err
}

// pruneFramesTo removes the oldest frames files, whole, until all segment files together take at most maximum
// bytes, or none is left: partial material answers for nothing that a client of the node may ask. The caller
// holds compacting.
func (s *Store) pruneFramesTo(ctx context.Context, maximum int64, opts PruneOptions) (PruneReport, error) {
	used := s.Bytes()
	snap := s.engine.Acquire()
	defer snap.Release()
	gone := make(map[*engine.FileRow]bool)
	left := append([]*engine.FileRow(nil), snap.Rows(engine.KindFrames)...)
	var whole chain.Range
	for used > maximum && len(left) > 0 {
		oldest := 0
		for i, r := range left {
			if r.From < left[oldest].From {
				oldest = i
			}
		}
		used -= left[oldest].Size
		gone[left[oldest]] = true
		whole.To = max(whole.To, left[oldest].To)
		left = append(left[:oldest], left[oldest+1:]...)
	}
	if len(gone) == 0 {
		return PruneReport{}, nil
	}
	return s.pruneFrames(ctx, whole, opts, func(r *engine.FileRow) bool { return gone[r] })
}
