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

// rootProver proves stored blocks with the checks that blocks from a source pass.
type rootProver struct{ verifier verify.Verifier }

func (p *rootProver) Prove(b *chain.Block, number uint64, parent common.Hash) error {
	return p.verifier.Block(b, verify.Expected{Number: number, ParentHash: parent})
}

// verify checks the catalog against the files, and proves every block and every index.
func (n *storedNode) verify(ctx context.Context, observe func(progress.Count)) (verifyReport, error) {
	var r verifyReport
	checked, err := n.engine.Check(ctx, engine.CheckOptions{})
	if err != nil {
		return r, err
	}
	for _, p := range checked.Problems {
		r.Problems = append(r.Problems, p.String())
	}
	r.Files, r.Bytes = uint64(checked.Files), uint64(checked.Bytes)
	var blocks atomic.Uint64
	proved, err := n.history.Verify(ctx, history.VerifyOptions{
		NewProver:      func() history.Prover { return new(rootProver) },
		NewFrameProver: func() history.FrameProver { return new(verify.Verifier) },
		OnBlocks:       func(more int) { observe(progress.Count{Blocks: blocks.Add(uint64(more))}) },
	})
	if err != nil {
		return r, err
	}
	r.Blocks, r.Frames, r.Digest = proved.Blocks, proved.Frames, common.Hash(proved.Digest).Hex()
	for _, p := range proved.Problems {
		r.Problems = append(r.Problems, p.Error())
	}
	return r, nil
}
