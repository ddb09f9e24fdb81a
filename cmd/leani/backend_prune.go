package main

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/leani-go/leani/engine/history"
)

// prune removes blocks.
func (n *storedNode) prune(ctx context.Context, req pruneRequest) (pruneReport, error) {
	var (
		done    history.PruneReport
		err     error
		opts    = history.PruneOptions{DryRun: req.dryRun, Head: req.head}
		maximum = uint64(n.settings.RawHistory.MaximumPhysicalBytes)
		report  = pruneReport{DryRun: req.dryRun}
	)
	switch {
	case req.partial:
		done, err = n.history.PruneFrames(ctx, history.AllProfiles, req.span.half(), opts)
	case req.toBudget:
		report.MaximumStored = maximum
		done, err = n.history.PruneTo(ctx, int64(min(maximum, math.MaxInt64)), opts)
	default:
		done, err = n.history.Prune(ctx, req.span.half(), opts)
	}
	if errors.Is(err, history.ErrPruneHead) {
		return report, fmt.Errorf("%w: leave it out, or give --head to let the tip move back", err)
	}
	for _, r := range done.Pruned {
		report.Pruned = append(report.Pruned, blockSpan{r.From, r.To - 1})
	}
	report.Blocks = done.Blocks
	report.FilesRemoved, report.BytesRemoved = uint64(done.FilesRemoved), uint64(done.BytesRemoved)
	report.FilesRewrite = uint64(done.Rewritten)
	report.FilesWritten, report.BytesWritten = uint64(done.FilesWritten), uint64(done.BytesWritten)
	report.StoredBytes = uint64(n.history.Bytes())
	return report, n.failure(err)
}
