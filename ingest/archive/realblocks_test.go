package archive

import (
	"cmp"
	"slices"
	"testing"

	"github.com/leani-go/leani/chain"
	"github.com/leani-go/leani/ingest/verify"
	"github.com/leani-go/leani/internal/chainfixture"
)

// TestRealBlocks: every real Mainnet block that is whole, of all forks and transaction types, goes through an archive
// and comes back byte for byte.
func TestRealBlocks(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: left out with -short")
	}
	var frames []*chain.Frame
	for _, b := range chainfixture.RealBlocks(t) {
		if b.ChainID != chain.MainnetChainID || !b.HasReceipts || !b.HasBody || !b.Complete {
			continue
		}
		block := b.Block
		var v verify.Verifier
		if err := v.Block(&block, verify.Expected{Number: b.Number, Hash: b.Hash}); err != nil {
			t.Fatal(err)
		}
		block.Senders = nil
		frames = append(frames, wholeFrame(t, &block))
	}
	slices.SortFunc(frames, func(a, b *chain.Frame) int { return cmp.Compare(a.Number, b.Number) })
	frames = slices.CompactFunc(frames, func(a, b *chain.Frame) bool { return a.Number == b.Number })
	if len(frames) < 20 {
		t.Fatalf("only %d blocks", len(frames))
	}
	manifest := writeArchive(t, frames, 0)
	var ranges []chain.Range
	for _, f := range frames {
		ranges = append(ranges, chain.Range{From: f.Number, To: f.Number + 1})
	}
	blocks, err := fillFrom(t, manifest, frames, ranges...)
	if err != nil || len(blocks) != len(frames) {
		t.Errorf("%d of %d blocks, %v", len(blocks), len(frames), err)
	}
	a, err := Open(manifest)
	if err != nil {
		t.Fatal(err)
	}
	r, err := a.Verify(t.Context(), Budget{}, nil)
	if err != nil || len(r.Problems) > 0 || r.Proved != uint64(len(frames)) {
		t.Errorf("%+v, %v", r, err)
	}
	t.Logf("%d blocks", len(frames))
}
