package chainfixture

import (
	"testing"

	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/trie"

	"github.com/leani-go/leani/chain"
)

// Frame is the block as a frame that says exactly what the fixture has of it; Whole tells whether that is
// everything. Lists that are not those of the header are left out: where the source lost ommers or
// withdrawals, it shows an empty list, or none. The frame shares the block's memory.
func (b *Block) Frame(tb testing.TB) (f *chain.Frame, whole bool) {
	tb.Helper()
	var header types.Header
	decodeRLP(tb, b.Header, &header)
	f = &chain.Frame{
		ChainID: b.ChainID, Finality: chain.Finalized, Schema: "real-blocks", Details: chain.DetailHeaderRLP,
		Provenance: []chain.Provenance{{SourceID: "real-blocks", Kind: chain.PublicDataset, Trust: chain.TrustedDataset}},
	}
	f.BlockRef, f.Header = b.BlockRef, b.Header
	for _, c := range chain.MaterialKinds.List() {
		*f.Material(c) = chain.MissingMaterial(chain.NotAvailable)
	}
	complete := func(kinds ...chain.Capability) {
		for _, c := range kinds {
			*f.Material(c) = chain.CompleteMaterial()
		}
	}
	complete(chain.CapabilityHeader)
	if b.HasBody {
		complete(chain.CapabilityTransactions)
		f.Transactions, f.TransactionHashes = b.Transactions, b.TransactionHashes
		f.Details |= chain.DetailEnvelopes
		if crypto.Keccak256Hash(b.Ommers) == header.UncleHash {
			f.Ommers = b.Ommers
		}
		if header.WithdrawalsHash == nil {
			complete(chain.CapabilityWithdrawals) // there is no such list
		} else if b.Withdrawals != nil && b.withdrawalsRoot(tb) == *header.WithdrawalsHash {
			complete(chain.CapabilityWithdrawals)
			f.Withdrawals = b.Withdrawals
		}
	}
	if b.HasReceipts {
		complete(chain.CapabilityReceipts, chain.CapabilityLogs)
		f.HasReceipts, f.Receipts, f.Logs = true, b.Receipts, b.Logs
		f.Details |= chain.DetailReceiptEncodings
	}
	return f, b.HasBody && b.HasReceipts && f.Ommers != nil && f.Material(chain.CapabilityWithdrawals).Complete()
}

// withdrawalsRoot is the root of the withdrawals by go-ethereum.
func (b *Block) withdrawalsRoot(tb testing.TB) [32]byte {
	tb.Helper()
	var list types.Withdrawals
	decodeRLP(tb, b.Withdrawals, &list)
	return types.DeriveSha(list, trie.NewStackTrie(nil))
}
