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

// fill reads the blocks of a range that are not stored yet from the era source, and merges index files
// meanwhile.
func (n *storedNode) fill(ctx context.Context, blocks chain.Range, observe func(progress.Count)) error {
	missing := n.history.Missing(blocks)
	if len(missing) == 0 {
		return nil
	}
	folder, err := eraFolder(n.settings)
	if err != nil {
		return err
	}
	source, err := openSource(folder, n.settings.Chain.FilePrefix())
	if err != nil {
		return err
	}
	budgets := n.settings.Budgets
	wake := make(chan struct{}, 1)
	background, stop := context.WithCancel(ctx)
	maintenance := lowpriority.Go(func() error { return n.history.Maintain(background, history.MaintainOptions{Wake: wake}) })
	_, err = ingest.Fill(ctx, ingest.Options{
		Source: source,
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
		ActiveChunks:      max(budgets.HistoryPipeline.MaximumActiveChunks, budgets.MapperConcurrency+1),
		MaximumBlockBytes: int64(min(n.settings.RawHistory.MaximumFrameLogicalBytes, math.MaxInt64)),
		MemoryBytes:       min(n.memory.pipeline, int64(budgets.HistoryPipeline.MaximumMappedBytes)),
		Progress:          func(r ingest.Result) { observe(progress.Count{Blocks: r.Blocks, Bytes: r.Bytes}) },
	})
	stop()
	err = explainHole(source, err)
	if maintenanceErr := <-maintenance; maintenanceErr != nil {
		err = errors.Join(err, fmt.Errorf("merge index files: %w", maintenanceErr))
	}
	if err == nil {
		_, err = n.history.Compact(ctx)
	}
	return n.failure(err)
}

// expectedParent is the hash that block number-1 must have for what is stored beside it.
func (n *storedNode) expectedParent(number uint64) (common.Hash, bool) {
	snap := n.engine.Acquire()
	defer snap.Release()
	if row, ok := snap.DataFile(number); ok && row.From == number {
		return row.ParentHash, true
	}
	if number == 0 {
		return common.Hash{}, false
	}
	if row, ok := snap.DataFile(number - 1); ok && row.To == number {
		return row.LastHash, true
	}
	return common.Hash{}, false
}
