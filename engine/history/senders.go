package history

import (
	"bufio"
	"context"
	"fmt"

	"github.com/ethereum/go-ethereum/common"
	"github.com/leani-go/leani/chain"
	"github.com/leani-go/leani/engine"
	"github.com/leani-go/leani/segments"
)

// FillSenders writes the senders of data files that have none, newest first, until none is left. Senders
// cost ten times the rest of a backfill, so a fill leaves them out and this comes later, in the
// background. onFile is told after each file; it may be nil.
func (s *Store) FillSenders(ctx context.Context, onFile func(chain.Range)) error {
	for {
		more, err := s.fillSendersOnce(ctx, onFile)
		if err != nil || !more {
			return err
		}
	}
}

func (s *Store) fillSendersOnce(ctx context.Context, onFile func(chain.Range)) (more bool, err error) {
	// Repacking would pull the data file away under the senders.
	s.compacting.Lock()
	defer s.compacting.Unlock()
	snap := s.engine.Acquire()
	defer snap.Release()
	rows := s.sound(snap.Rows(engine.KindData))
	for i := len(rows) - 1; i >= 0; i-- {
		row := rows[i]
		if _, ok := snap.SendersFile(row); ok {
			continue
		}
		if err := s.fillSendersOf(ctx, row); err != nil {
			if s.setAside([]*engine.FileRow{row}, err) {
				return true, nil
			}
			return false, err
		}
		if onFile != nil {
			onFile(row.Range())
		}
		return true, nil
	}
	return false, nil
}

func (s *Store) fillSendersOf(ctx context.Context, row *engine.FileRow) error {
	d, err := s.dataApart(row)
	if err != nil {
		return err
	}
	senders := make([]common.Address, 0, row.Transactions)
	var b chain.Block
	for n := row.From; n < row.To; n++ {
		if err := d.Load(n, chain.PartTransactions, &b, nil); err != nil {
			return err
		}
		of, err := s.recoverSenders(ctx, b.Transactions, 1)
		if err != nil {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			return corruptRow(row, fmt.Errorf("block %d: %w", n, err))
		}
		senders = append(senders, of...)
	}
	add, err := s.writeSenders(d.Info(), senders)
	if err != nil {
		return err
	}
	defer func() { _ = add.File.Abort() }() // does nothing after the commit
	return s.commit(ctx, engine.Edit{Add: []engine.NewRow{add}})
}

// writeSenders writes a senders file that is not committed yet.
func (s *Store) writeSenders(data segments.Info, senders []common.Address) (engine.NewRow, error) {
	f, err := s.engine.NewFile(engine.KindSenders)
	if err != nil {
		return engine.NewRow{}, err
	}
	out := bufio.NewWriterSize(f, writeBuffer)
	info, digest, err := segments.WriteSenders(out, data, senders)
	if err == nil {
		err = out.Flush()
	}
	if err != nil {
		_ = f.Abort()
		return engine.NewRow{}, err
	}
	return engine.NewRow{File: f, Row: rowOf(info, digest, 0)}, nil
}
