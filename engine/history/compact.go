package history

import (
	"bufio"
	"context"
	"errors"
	"fmt"

	"github.com/ethereum/go-ethereum/common"
	"github.com/leani-go/leani/chain"
	"github.com/leani-go/leani/engine"
	"github.com/leani-go/leani/segments"
)

// The tiers of index files. A file of tier l covers tierFactor times what one of tier l-1 does, in
// windows aligned by block number, so that a term over the whole chain costs tens of look-ups.
const (
	tierFactor = 8
	topTier    = 3
	// crowd is the number of files that are merged before their window is complete, so that many
	// short runs do not slow queries down for long.
	crowd = 8
	// settledCrowd is the same for index files over complete windows of data files, which will not be
	// packed any more. A term of a query is looked up in each file: fewer pay at once, and a log's
	// entries are written half a time more often for it in each tier.
	settledCrowd = 4
)

// tierBlocks is the number of blocks of a window of tier l.
func (s *Store) tierBlocks(l uint8) uint64 {
	n := s.opts.TargetBlocks
	for range l {
		n *= tierFactor
	}
	return n
}

// CompactStats say what Compact did.
type CompactStats struct {
	IndexMerges int
	Repacks     int
	BytesRead   int64
	// Problems are the damaged files that were met. They are left as they are, with what would have
	// been merged with them.
	Problems []error
}

// Compact does all the merging that is due: it packs neighbouring small data files into full ones, and
// merges index files into higher tiers. It returns at the first error and may be called at any time;
// what it replaced stays readable for the snapshots that hold it.
func (s *Store) Compact(ctx context.Context) (CompactStats, error) {
	s.compacting.Lock()
	defer s.compacting.Unlock()
	var st CompactStats
	for {
		more, err := s.compactOnce(ctx, &st)
		if errors.Is(err, engine.ErrStaleEdit) { // somebody replaced a file meanwhile: plan again
			continue
		}
		if err != nil || !more {
			return st, err
		}
	}
}

// compactOnce does the first piece of work that is due.
func (s *Store) compactOnce(ctx context.Context, st *CompactStats) (more bool, err error) {
	if err := ctx.Err(); err != nil {
		return false, err
	}
	snap := s.engine.Acquire()
	defer snap.Release()
	group, err := s.planRepack(s.sound(snap.Rows(engine.KindData)), snap.Rows(engine.KindIndex), st)
	if err != nil {
		return false, err
	}
	work, count := s.repack, &st.Repacks
	if group == nil {
		var level uint8
		group, level = s.planMerge(s.sound(snap.Rows(engine.KindIndex)))
		work, count = func(ctx context.Context, _ *engine.Snapshot, group []*engine.FileRow) error {
			return s.merge(ctx, group, level)
		}, &st.IndexMerges
	}
	if group == nil {
		return false, nil
	}
	for _, r := range group {
		st.BytesRead += r.Size
	}
	err = work(ctx, snap, group)
	if err == nil {
		*count++
	}
	var full *engine.SpaceError
	switch {
	case s.setAside(group, err):
		st.Problems = append(st.Problems, err)
		err = nil
	case errors.As(err, &full) && full.Budget == engine.BudgetTemporary:
		// It will not fit a minute later either: work of other sizes goes on.
		s.opts.Logger.Warn("files are not merged: budgets.temporary_disk_bytes is too small for it", "cause", err)
		for _, r := range group {
			s.damaged[r] = struct{}{}
		}
		err = nil
	}
	return true, err
}

// planRepack finds neighbouring data files to pack: of a window that they fill, or that they crowd, the
// first that one file can hold.
func (s *Store) planRepack(rows, indexes []*engine.FileRow, st *CompactStats) (group []*engine.FileRow, err error) {
	size := s.opts.TargetBlocks
	group = findGroup(rows, size, func(window []*engine.FileRow) []*engine.FileRow {
		full := fills(window, size)
		if !full && !crowded(window) {
			return nil
		}
		for n := 0; len(window) > 0 && err == nil; window = window[n:] {
			if n, err = s.fitting(window, st); err != nil {
				break
			}
			if part := window[:n]; n > 1 && (full || crowded(part)) && !cutsIndex(part, indexes) {
				return part
			}
		}
		return nil
	})
	return group, err
}

// fitting counts the data files that fit into one together with the first: its size and the memory to
// build it are bounded as they are for a Writer, which cut the files where they passed a bound.
func (s *Store) fitting(rows []*engine.FileRow, st *CompactStats) (n int, err error) {
	var bytes, memory int64
	for ; n < len(rows); n++ {
		d, err := s.data(rows[n])
		if s.setAside(rows[n:n+1], err) {
			st.Problems = append(st.Problems, err)
			return max(n, 1), nil
		}
		if err != nil {
			return 0, err
		}
		bytes += rows[n].Size
		memory += d.BuilderMemory()
		if n > 0 && (bytes > s.opts.SegmentBytes || memory > s.opts.BuilderMemory) {
			break
		}
	}
	return n, nil
}

// cutsIndex tells whether an index file ends within a group of data files. Its own index files a repack
// replaces, and one that covers the whole group stays; but a merge of crowded files may have one that
// reaches in from outside. Such a group waits until that one is merged into a tier that covers it.
func cutsIndex(group, indexes []*engine.FileRow) bool {
	whole := chain.Range{From: group[0].From, To: group[len(group)-1].To}
	for _, x := range indexes {
		own := x.Level == 0 && whole.Covers(x.Range())
		if !own && !x.Range().Covers(whole) && !x.Range().Intersect(whole).Empty() {
			return true
		}
	}
	return false
}

// planMerge finds index files of one tier that fill a window of the next, or that crowd it.
func (s *Store) planMerge(rows []*engine.FileRow) (group []*engine.FileRow, level uint8) {
	for l := uint8(0); l <= topTier; l++ {
		var tier []*engine.FileRow
		for _, r := range rows {
			if r.Level == l {
				tier = append(tier, r)
			}
		}
		if l < topTier {
			size := s.tierBlocks(l + 1)
			if g := findGroup(tier, size, whole(func(g []*engine.FileRow) bool { return fills(g, size) })); g != nil {
				return g, l + 1
			}
		}
		size := s.tierBlocks(min(l+1, topTier))
		if g := findGroup(tier, size, whole(crowded)); g != nil {
			return g, l
		}
		if g := findGroup(tier, size, s.settled); g != nil {
			return g, l
		}
	}
	return nil, 0
}

// settled picks the index files of a group that lie over complete windows of data files, when they are
// settledCrowd or more.
func (s *Store) settled(group []*engine.FileRow) []*engine.FileRow {
	for len(group) > 0 && group[0].From%s.opts.TargetBlocks != 0 {
		group = group[1:]
	}
	for len(group) > 0 && group[len(group)-1].To%s.opts.TargetBlocks != 0 {
		group = group[:len(group)-1]
	}
	if len(group) < settledCrowd || !even(group) {
		return nil
	}
	return group
}

// whole picks all of a group that is due.
func whole(due func([]*engine.FileRow) bool) func([]*engine.FileRow) []*engine.FileRow {
	return func(group []*engine.FileRow) []*engine.FileRow {
		if due(group) {
			return group
		}
		return nil
	}
}

// findGroup cuts rows into groups of neighbours within one aligned window of size blocks, and returns
// what pick takes of the first group of two or more of which it takes something.
func findGroup(rows []*engine.FileRow, size uint64, pick func([]*engine.FileRow) []*engine.FileRow) []*engine.FileRow {
	for from := 0; from < len(rows); {
		to := from + 1
		for to < len(rows) && rows[to].From == rows[to-1].To && rows[to].From/size == rows[from].From/size {
			to++
		}
		if to-from > 1 {
			if group := pick(rows[from:to]); group != nil {
				return group
			}
		}
		from = to
	}
	return nil
}

// fills tells whether a group covers its window.
func fills(group []*engine.FileRow, size uint64) bool {
	first, last := group[0], group[len(group)-1]
	return first.From%size == 0 && last.To-first.From >= size
}

// crowded tells whether a group is worth merging early: it has many files, and none of them is so large
// that it would be rewritten again and again.
func crowded(group []*engine.FileRow) bool { return len(group) >= crowd && even(group) }

// even tells whether no file of a group covers more than half of its blocks.
func even(group []*engine.FileRow) bool {
	var total, largest uint64
	for _, r := range group {
		total += r.Blocks()
		largest = max(largest, r.Blocks())
	}
	return largest*2 <= total
}

// merge replaces index files by one.
func (s *Store) merge(ctx context.Context, group []*engine.FileRow, level uint8) error {
	inputs := make([]*segments.Index, len(group))
	for i, r := range group {
		var err error
		if inputs[i], err = s.index(r); err != nil {
			return err
		}
	}
	f, err := s.engine.NewFile(engine.KindIndex)
	if err != nil {
		return err
	}
	defer func() { _ = f.Abort() }() // does nothing after the commit
	out := bufio.NewWriterSize(f, writeBuffer)
	info, digest, err := segments.MergeIndexes(ctx, out, inputs)
	if err == nil {
		err = out.Flush()
	}
	if err != nil {
		return fmt.Errorf("merge %d index files over blocks [%d, %d): %w", len(group), group[0].From, group[len(group)-1].To, err)
	}
	return s.commit(ctx, engine.Edit{Add: []engine.NewRow{{File: f, Row: rowOf(info, digest, level)}}, Remove: group})
}

// repack replaces data files, their own index files and their senders by one of each.
func (s *Store) repack(ctx context.Context, snap *engine.Snapshot, group []*engine.FileRow) error {
	f, err := s.engine.NewFile(engine.KindData)
	if err != nil {
		return err
	}
	defer func() { _ = f.Abort() }()
	r := s.newRun(f)
	for _, row := range group {
		d, err := s.dataApart(row)
		if err != nil {
			return err
		}
		if err := r.copy(ctx, d, row.Range()); err != nil {
			return err
		}
	}
	edit, info, err := s.finish(r)
	if err != nil {
		return err
	}
	defer func() {
		for _, n := range edit.Add {
			_ = n.File.Abort()
		}
	}()
	edit.Remove = append(edit.Remove, group...)
	own := 0
	for _, x := range snap.Rows(engine.KindIndex) {
		if x.From >= info.From && x.To <= info.To && x.Level == 0 {
			edit.Remove = append(edit.Remove, x)
			own++
		}
	}
	if own == 0 { // a higher tier covers them already
		index := edit.Add[1].File
		edit.Add = edit.Add[:1]
		if err := index.Abort(); err != nil {
			return err
		}
	}
	if err := s.repackSenders(snap, group, info, &edit); err != nil {
		return err
	}
	return s.commit(ctx, edit)
}

// repackSenders joins the senders of a group when all its files have them.
func (s *Store) repackSenders(snap *engine.Snapshot, group []*engine.FileRow, info segments.Info, edit *engine.Edit) error {
	var senders []common.Address
	complete := true
	for _, row := range group {
		file, ok := snap.SendersFile(row)
		if !ok {
			complete = false
			continue
		}
		edit.Remove = append(edit.Remove, file)
		sf, err := s.sendersFile(file)
		if err != nil {
			return err
		}
		if senders, err = sf.Append(senders, 0, uint32(row.Transactions), nil); err != nil {
			return err
		}
	}
	if !complete {
		return nil
	}
	row, err := s.writeSenders(info, senders)
	if err != nil {
		return err
	}
	edit.Add = append(edit.Add, row)
	return nil
}
