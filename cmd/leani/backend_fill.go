package main

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/ethereum/go-ethereum/common"

	"github.com/leani-go/leani/chain"
	"github.com/leani-go/leani/engine/history"
	"github.com/leani-go/leani/ingest"
	"github.com/leani-go/leani/internal/lowpriority"
	"github.com/leani-go/leani/internal/progress"
)

// missing counts the blocks of a range that are not stored yet.
func (n *storedNode) missing(blocks chain.Range) uint64 {
	var count uint64
	for _, r := range n.history.Missing(blocks) {
		count += r.Len()
	}
	return count
}

// fill reads the blocks of a range that are not stored yet from the history sources, and merges index files
// meanwhile.
func (n *storedNode) fill(ctx context.Context, blocks chain.Range, observe func(progress.Count)) error {
	if err := n.makeWay(ctx, blocks); err != nil {
		return err
	}
	missing := n.history.Missing(blocks)
	if len(missing) == 0 {
		return nil
	}
	budgets := n.settings.Budgets
	wake := make(chan struct{}, 1)
	background, stop := context.WithCancel(ctx)
	maintenance := lowpriority.Go(func() error { return n.history.Maintain(background, history.MaintainOptions{Wake: wake}) })
	list := candidates(n.settings, n.log.With("component", "sources"))
	outcome, err := ingest.FillFrom(ctx, list, ingest.Options{
		Ranges: missing,
		Sink: func(ctx context.Context, committed func(chain.Range)) ingest.Sink {
			writer := n.history.NewWriter(ctx, func(r chain.Range) {
				committed(r)
				select {
				case wake <- struct{}{}:
				default: // it is awake
				}
			})
			return &anchoredSink{Sink: writer, network: n.network}
		},
		ExpectedParent:    n.expectedParent,
		Workers:           budgets.MapperConcurrency,
		SourceConcurrency: budgets.SourceConcurrency,
		ActiveChunks:      budgets.HistoryPipeline.MaximumActiveChunks,
		MaximumBlockBytes: int64(min(n.settings.RawHistory.MaximumFrameLogicalBytes, math.MaxInt64)),
		MemoryBytes:       min(n.memory.pipeline, int64(budgets.HistoryPipeline.MaximumMappedBytes)),
		Progress:          func(r ingest.Result) { observe(progress.Count{Blocks: r.Blocks, Bytes: r.Bytes}) },
	}, func(f *ingest.Failure) {
		if len(list) > 1 { // the only one is in the error
			n.log.Warn("history source failed", "source", f.Source, "file", f.File, "block", f.Block, "error", f.Err)
		}
	})
	stop()
	n.failures, n.kept = nil, 0
	for _, f := range outcome.Failures {
		n.failures = append(n.failures, sourceFailure{f.Source, f.File, f.Block, f.Err.Error()})
	}
	if err != nil {
		err = n.keepPartial(ctx, blocks, err, func(more progress.Count) {
			observe(progress.Count{Blocks: outcome.Blocks + more.Blocks, Bytes: outcome.Bytes})
		})
	}
	if maintenanceErr := <-maintenance; maintenanceErr != nil {
		err = errors.Join(err, fmt.Errorf("merge index files: %w", maintenanceErr))
	}
	if err == nil {
		_, err = n.history.Compact(ctx)
	}
	return n.failure(err)
}

// sourceFailures are those of the last fill.
func (n *storedNode) sourceFailures() []sourceFailure { return n.failures }

// expectedParent is the hash that block number-1 must have for what is stored beside it.
func (n *storedNode) expectedParent(number uint64) (common.Hash, bool) {
	snap := n.engine.Acquire()
	defer snap.Release()
	if row, ok := snap.DataFile(number); ok && row.From == number {
		return row.ParentHash, true
	}
	if hot := snap.Hot(); len(hot) > 0 && hot[0].Number == number {
		return hot[0].ParentHash, true
	}
	if number == 0 {
		return common.Hash{}, false
	}
	if row, ok := snap.DataFile(number - 1); ok && row.To == number {
		return row.LastHash, true
	}
	return common.Hash{}, false
}
