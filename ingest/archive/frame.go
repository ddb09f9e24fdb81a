package archive

import "github.com/leani-go/leani/chain"

// WholeKinds are the kinds of material that a whole block has.
const WholeKinds = chain.Capabilities(1<<chain.CapabilityHeader | 1<<chain.CapabilityTransactions | 1<<chain.CapabilityReceipts |
	1<<chain.CapabilityLogs | 1<<chain.CapabilityWithdrawals)

// RetainedSource is the source that frames of retained history name.
const RetainedSource = "retained-history"

// WholeFrame is the frame of a final, whole block out of retained history, which it aliases. It claims no checks:
// no reader believes such claims.
func WholeFrame(b *chain.Block, chainID uint64) *chain.Frame {
	f := &chain.Frame{
		Block: *b, ChainID: chainID, Finality: chain.Finalized, Schema: Schema,
		Details: chain.DetailsExact,
		Provenance: []chain.Provenance{{
			SourceID: RetainedSource, Kind: chain.RetainedHistory, Trust: chain.TrustedDataset,
		}},
	}
	if len(b.Senders) != len(b.Transactions) {
		f.Details &^= chain.DetailSenders
	}
	for _, c := range frameMaterials {
		*f.Material(c) = chain.MissingMaterial(chain.Unsupported)
		if WholeKinds.Has(c) {
			*f.Material(c) = chain.CompleteMaterial()
		}
	}
	return f
}
