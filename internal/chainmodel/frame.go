package chainmodel

import (
	"github.com/leani-go/leani/chain"
)

// Shape is what a partial frame of the model lacks.
type Shape uint8

// The shapes.
const (
	HeaderOnly Shape = iota
	NoWithdrawals
	NoOmmers
	NoReceipts
	LogsOfAddress // the header, and the logs of Model.Addresses[0] by the word of a data set

	Shapes = iota
)

// ModelChain is the chain id of frames.
const ModelChain = 1

// Partial makes the frame of a complete block that lacks what the shape says. The frame shares the block's
// memory.
func (m *Model) Partial(b *chain.Block, shape Shape) *chain.Frame {
	f := &chain.Frame{
		ChainID: ModelChain, Finality: chain.Finalized, Schema: "model.v1",
		Details: chain.DetailHeaderRLP,
		Provenance: []chain.Provenance{{
			SourceID: "model", Kind: chain.Synthetic, Trust: chain.TrustedDataset,
			Object: &chain.SourceObject{Locator: "model", Schema: "model.v1"},
		}},
	}
	f.BlockRef, f.Header = b.BlockRef, b.Header
	complete := func(c chain.Capability) { *f.Material(c) = chain.CompleteMaterial() }
	for _, c := range chain.MaterialKinds.List() {
		*f.Material(c) = chain.MissingMaterial(chain.NotAvailable)
	}
	complete(chain.CapabilityHeader)
	f.Verification.HeaderHash.Status = chain.Verified
	switch shape {
	case HeaderOnly:
		return f
	case LogsOfAddress:
		scope := &chain.FilterScope{Addresses: m.Addresses[:1]}
		*f.Material(chain.CapabilityLogs) = chain.FilteredMaterial(scope, chain.DatasetDeclared)
		transaction := uint32(0)
		for i := range b.Logs {
			for uint32(i) >= b.Receipts[transaction].LogsEnd {
				transaction++
			}
			if *b.Logs[i].Address == scope.Addresses[0] {
				f.Logs = append(f.Logs, b.Logs[i])
				f.LogPlaces = append(f.LogPlaces, chain.LogPlace{
					TransactionHash: &b.TransactionHashes[transaction], TransactionIndex: transaction, LogIndex: uint32(i),
				})
			}
		}
		return f
	}
	complete(chain.CapabilityTransactions)
	f.Transactions, f.TransactionHashes = b.Transactions, b.TransactionHashes
	f.Details |= chain.DetailEnvelopes
	if shape != NoOmmers {
		f.Ommers = b.Ommers
	}
	if shape != NoWithdrawals {
		complete(chain.CapabilityWithdrawals)
		f.Withdrawals = b.Withdrawals
	}
	if shape != NoReceipts {
		complete(chain.CapabilityReceipts)
		complete(chain.CapabilityLogs)
		f.HasReceipts, f.Receipts, f.Logs = true, b.Receipts, b.Logs
		f.Details |= chain.DetailReceiptEncodings
	}
	return f
}
