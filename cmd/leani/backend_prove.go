package main

import (
	"context"
	"sync/atomic"

	"github.com/ethereum/go-ethereum/common"

	"github.com/leani-go/leani/chain"
	"github.com/leani-go/leani/engine"
	"github.com/leani-go/leani/engine/history"
	"github.com/leani-go/leani/ingest/verify"
	"github.com/leani-go/leani/internal/progress"
)

// prove proves the stored blocks of a range, or all of them, and recovers their senders.
func (n *storedNode) prove(ctx context.Context, blocks chain.Range, observe func(progress.Count)) (provedReport, error) {
	var done atomic.Uint64
	proved, err := n.history.Verify(ctx, history.VerifyOptions{
		NewProver:      func() history.Prover { return new(rootProver) },
		NewFrameProver: func() history.FrameProver { return new(verify.Verifier) },
		Blocks:         blocks,
		Senders:        true,
		OnBlocks:       func(more int) { observe(progress.Count{Blocks: done.Add(uint64(more))}) },
	})
	if err != nil {
		return provedReport{}, err
	}
	r := provedReport{
		Blocks: proved.Blocks, Transactions: proved.Transactions, Logs: proved.Logs, Digest: common.Hash(proved.Digest).Hex(),
		Missing: []blockSpan{},
	}
	if !blocks.Empty() {
		r.Missing = spansOf(n.history.Missing(blocks))
	}
	for _, p := range proved.Problems {
		r.Problems = append(r.Problems, p.Error())
	}
	return r, nil
}

// scrub reads the files again and again at low priority, and logs what is damaged.
func (n *storedNode) scrub(ctx context.Context) error {
	return n.history.Scrub(ctx, history.ScrubOptions{OnFinding: func(row *engine.FileRow, err error) {
		n.log.Error("a stored file is damaged: prune its blocks and fill them again, see docs/troubleshooting.md",
			"component", "scrub", "file", row.String(), "fromBlock", row.From, "toBlock", row.To-1, "cause", err, "findings", n.history.ScrubStatus().Findings)
	}})
}
