package harness

import (
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/trie"
)

// Draft is a block in the making.
type Draft struct {
	// Header may be changed freely; parent, roots, bloom and number are set afterwards.
	Header *types.Header
	// Receipts are parallel to the block's transactions. Their logs may be changed, dropped and added: address, topics
	// and data are what counts.
	Receipts types.Receipts
}

// Fork makes a block with the transactions of original, as a child of parent. The edit, if there is one, changes what it
// is given; blocks that were made before stay as they are. Without any edit the extra data make it another block than
// original.
func (c *Chain) Fork(parent, original *Block, edit func(*Draft)) *Block {
	c.tb.Helper()
	draft := &Draft{Header: original.Header()}
	draft.Header.Extra = append([]byte("fork "), draft.Header.Extra...)
	draft.Header.Extra = draft.Header.Extra[:min(len(draft.Header.Extra), 32)]
	for _, r := range original.Receipts {
		copied := &types.Receipt{Type: r.Type, PostState: r.PostState, Status: r.Status, CumulativeGasUsed: r.CumulativeGasUsed}
		for _, l := range r.Logs {
			copied.Logs = append(copied.Logs, &types.Log{Address: l.Address, Topics: append(l.Topics[:0:0], l.Topics...), Data: append([]byte{}, l.Data...)})
		}
		draft.Receipts = append(draft.Receipts, copied)
	}
	if edit != nil {
		edit(draft)
	}
	for _, r := range draft.Receipts {
		r.Bloom = types.CreateBloom(r)
	}
	draft.Header.ParentHash = parent.Hash()
	draft.Header.ReceiptHash = types.DeriveSha(draft.Receipts, trie.NewStackTrie(nil))
	draft.Header.Bloom = types.MergeBloom(draft.Receipts)
	b, err := assemble(c.Config, draft.Header, original.Body(), draft.Receipts)
	if err != nil {
		c.tb.Fatalf("fork of block %d: %v", original.NumberU64(), err)
	}
	return b
}
