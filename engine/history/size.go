package history

import (
	"context"
	"fmt"

	"github.com/leani-go/leani/engine"
	"github.com/leani-go/leani/internal/corrupt"
	"github.com/leani-go/leani/segments"
)

// LogicalBytes is the size of the data files before compression. The first call reads the page tables of
// all files; what it found is kept, so that later calls look at new files alone. The sizes of files of which
// the tables are damaged count as they are on disk.
func (s *Store) LogicalBytes(ctx context.Context) (int64, error) {
	snap := s.engine.Acquire()
	defer snap.Release()
	s.logical.Lock()
	defer s.logical.Unlock()
	next := make(map[[32]byte]int64, len(s.logical.bytes))
	var sum int64
	for _, row := range snap.Rows(engine.KindData) {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		size, ok := s.logical.bytes[row.Digest]
		if !ok {
			var err error
			if size, err = s.logicalOf(row); err != nil {
				return 0, err
			}
		}
		next[row.Digest] = size
		sum += size
	}
	s.logical.bytes = next
	return sum, nil
}

func (s *Store) logicalOf(row *engine.FileRow) (int64, error) {
	f, err := s.openApart(row)
	if err == nil {
		var size int64
		if size, err = f.LogicalBytes(); err == nil {
			return size, nil
		}
	}
	if corrupt.Is(err) {
		return row.Size, nil
	}
	return 0, err
}

// admit refuses an edit that would take the history past Options.MaximumBytes or MaximumLogicalBytes. Two
// edits at the same time can pass a budget by the smaller one of them.
func (s *Store) admit(ctx context.Context, edit engine.Edit) error {
	grows := edit.Growth()
	if grows <= 0 {
		return nil
	}
	if used := s.Bytes(); s.opts.MaximumBytes > 0 && used+grows > s.opts.MaximumBytes {
		return fmt.Errorf("%w: %d bytes are used, this takes %d more, the maximum is %d", ErrBudget, used, grows, s.opts.MaximumBytes)
	}
	if s.opts.MaximumLogicalBytes <= 0 || len(edit.Remove) > 0 { // what is only rewritten grows nothing
		return nil
	}
	logical := int64(0)
	for _, f := range edit.Add {
		if f.Row.Kind != engine.KindData {
			continue
		}
		file, err := segments.Open(f.File.Path(), 0, f.File, segments.NewCache(readBackCache))
		if err != nil {
			return err
		}
		size, err := file.LogicalBytes()
		if err != nil {
			return err
		}
		logical += size
	}
	if logical == 0 {
		return nil
	}
	used, err := s.LogicalBytes(ctx)
	if err != nil {
		return err
	}
	if used+logical > s.opts.MaximumLogicalBytes {
		return fmt.Errorf("%w: before compression %d bytes are used, this takes %d more, the maximum is %d", ErrBudget, used, logical, s.opts.MaximumLogicalBytes)
	}
	return nil
}
