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
	recent, err := n.makeWay(ctx, blocks)
	if err != nil {
		return err
	}
	missing := n.history.Missing(blocks)
	var first func() error
	if !recent.Empty() {
		below := chain.Range{From: blocks.From, To: max(recent.From, blocks.From)}
		missing = append(n.history.Missing(below), chain.Range{From: below.To, To: blocks.To})
		first = func() error { return n.dropRecent(ctx) }
	}
	if len(missing) == 0 {
		return nil
	}
	wake := make(chan struct{}, 1)
	background, stop := context.WithCancel(ctx)
	maintenance := lowpriority.Go(func() error { return n.history.Maintain(background, history.MaintainOptions{Wake: wake}) })
	n.failures, n.kept = nil, 0
	done, err := n.fillFrom(ctx, missing, first, wake, observe)
	if n.wantsPartial(ctx, err) {
		after := func(more progress.Count) {
			observe(progress.Count{Blocks: done.Blocks + more.Blocks, Bytes: done.Bytes + more.Bytes})
		}
		err = n.keepPartial(ctx, blocks, after)
		// Blocks that are whole were left alone because others in the range are not.
		if rest := n.unknown(blocks); err == nil && len(rest) > 0 {
			kept := n.kept
			_, err = n.fillFrom(ctx, rest, first, wake, func(c progress.Count) {
				after(progress.Count{Blocks: kept + c.Blocks, Bytes: c.Bytes})
			})
		}
	}
	stop()
	if maintenanceErr := <-maintenance; maintenanceErr != nil {
		err = errors.Join(err, fmt.Errorf("merge index files: %w", maintenanceErr))
	}
	if err == nil {
		_, err = n.history.Compact(ctx)
	}
	return n.failure(err)
}

// fillFrom reads whole blocks of ranges that are not stored from the history sources. first, if set, is called
// before the first block is added; wake is told of commits.
func (n *storedNode) fillFrom(ctx context.Context, ranges []chain.Range, first func() error, wake chan<- struct{}, observe func(progress.Count)) (progress.Count, error) {
	budgets := n.settings.Budgets
	list := candidates(n.settings, n.log.With("component", "sources"))
	outcome, err := ingest.FillFrom(ctx, list, ingest.Options{
		Ranges: ranges,
		Sink: func(ctx context.Context, committed func(chain.Range)) ingest.Sink {
			writer := n.history.NewWriter(ctx, func(r chain.Range) {
				committed(r)
				select {
				case wake <- struct{}{}:
				default: // it is awake
				}
			})
			return &anchoredSink{Sink: writer, network: n.network, first: first}
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
	for _, f := range outcome.Failures {
		n.failures = append(n.failures, sourceFailure{f.Source, f.File, f.Block, f.Err.Error()})
	}
	return progress.Count{Blocks: outcome.Blocks, Bytes: outcome.Bytes}, err
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
