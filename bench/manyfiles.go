package bench

import (
	"bufio"
	"context"
	"errors"
	"fmt"

	"github.com/leani-go/leani/chain"
	"github.com/leani-go/leani/engine"
	"github.com/leani-go/leani/segments"
)

// manyFilesEdit is the number of blocks that are committed together, to save time while the store is
// made: a store with as many files that was filled over years looks the same.
const manyFilesEdit = 250

// WriteManyFiles writes the corpus to a new store with a data file and an index file for every block,
// and merges the index files. The store has to be opened with TargetBlocks 1, so that the data files
// stay as they are.
func (c *Corpus) WriteManyFiles(ctx context.Context, s *Store) error {
	var edit engine.Edit
	commit := func() error {
		if len(edit.Add) == 0 {
			return nil
		}
		err := s.Engine.Commit(ctx, edit)
		edit.Add = nil
		return err
	}
	err := c.Each(ctx, func(b *chain.Block) error {
		rows, err := writeBlockFiles(s.Engine, b)
		edit.Add = append(edit.Add, rows...)
		if err == nil && len(edit.Add) >= 2*manyFilesEdit {
			err = commit()
		}
		return err
	})
	if err == nil {
		err = commit()
	}
	for _, row := range edit.Add {
		err = errors.Join(err, row.File.Abort())
	}
	if err != nil {
		return fmt.Errorf("write a file for each block: %w", err)
	}
	_, err = s.History.Compact(ctx)
	return err
}

// writeBlockFiles writes the data file and the index file of one block. The caller commits or aborts
// what it returns, also with an error.
func writeBlockFiles(e *engine.Engine, b *chain.Block) (rows []engine.NewRow, err error) {
	var builder *segments.DataBuilder
	for _, kind := range []engine.Kind{engine.KindData, engine.KindIndex} {
		f, err := e.NewFile(kind)
		if err != nil {
			return rows, err
		}
		rows = append(rows, engine.NewRow{File: f})
		out := bufio.NewWriter(f)
		var info segments.Info
		var digest [32]byte
		if kind == engine.KindData {
			builder = segments.NewDataBuilder(out, segments.DataOptions{})
			if err := builder.Add(b); err != nil {
				return rows, err
			}
			info, digest, err = builder.Finish()
		} else {
			info, digest, err = builder.WriteIndex(out)
		}
		if err == nil {
			err = out.Flush()
		}
		if err != nil {
			return rows, err
		}
		rows[len(rows)-1].Row = engine.FileRow{
			Kind: kind, Profile: info.Profile, From: info.From, To: info.To, Transactions: info.Transactions, Logs: info.Logs,
			Digest: digest, FirstHash: info.FirstHash, LastHash: info.LastHash, ParentHash: info.FirstParent,
		}
	}
	return rows, nil
}
