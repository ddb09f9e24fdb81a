package blockroot

import (
	"fmt"
	"slices"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"

	"github.com/leani-go/leani/chain"
	"github.com/leani-go/leani/internal/bloom"
	"github.com/leani-go/leani/internal/keccak"
	"github.com/leani-go/leani/internal/receipt"
	"github.com/leani-go/leani/internal/rlp"
	"github.com/leani-go/leani/internal/trieroot"
)

// EmptyOmmers is the Keccak-256 of the empty ommers list.
var EmptyOmmers = types.EmptyUncleHash

// Hasher computes roots and blooms. The zero value is ready.
type Hasher struct {
	trie     trieroot.Hasher
	bits     bloom.Memo
	batch    keccak.Batch
	blooms   []types.Bloom // of the receipts of one block
	encoding []byte        // of one receipt
	sum      common.Hash
}

// Keccak is the Keccak-256 of data: the block hash of a header, the ommers hash of a list of
// ommers.
func (h *Hasher) Keccak(data []byte) common.Hash {
	h.batch.Add(data, &h.sum)
	h.batch.Flush()
	return h.sum
}

// TransactionsRoot is the root of the list of transactions, given as EIP-2718 envelopes. When
// hashes is not nil it must be parallel to transactions and receives the transaction hashes.
func (h *Hasher) TransactionsRoot(transactions [][]byte, hashes []common.Hash) common.Hash {
	value := func(i int) []byte { return transactions[i] }
	if hashes == nil {
		return h.trie.Root(len(transactions), value)
	}
	return h.trie.RootAndDigests(hashes[:len(transactions)], value)
}

// ReceiptsRoot is the root of the list of receipts of b, with blooms recomputed from the
// logs. It sets logsBloom to the bloom of the whole block. The receipts of b must fit its
// logs: LogsEnd ascending and within Logs.
func (h *Hasher) ReceiptsRoot(b *chain.Block, logsBloom *types.Bloom) common.Hash {
	*logsBloom = types.Bloom{}
	h.blooms = slices.Grow(h.blooms[:0], len(b.Receipts))[:len(b.Receipts)]
	clear(h.blooms)
	for i := range b.Receipts {
		h.bits.AddLogs(&h.blooms[i], b.ReceiptLogs(i))
	}
	h.bits.Flush()
	for i := range b.Receipts {
		if b.Receipts[i].LogsEnd > 0 { // the blooms before the first log are empty
			bloom.Union(logsBloom, &h.blooms[i])
		}
	}
	return h.trie.Root(len(b.Receipts), func(i int) []byte {
		h.encoding = receipt.AppendCanonical(h.encoding[:0], &b.Receipts[i], b.ReceiptLogs(i), &h.blooms[i])
		return h.encoding
	})
}

// LogsBloom sets dst to the bloom of the logs.
func (h *Hasher) LogsBloom(dst *types.Bloom, logs []chain.Log) {
	*dst = types.Bloom{}
	h.bits.AddLogs(dst, logs)
	h.bits.Flush()
}

// WithdrawalsRoot is the root of an RLP list of withdrawals (EIP-4895). An error says what is
// wrong with the list.
func (h *Hasher) WithdrawalsRoot(list []byte) (common.Hash, error) {
	items := rlp.OpenList(list)
	n := 0
	for counter := items; counter.More(); n++ {
		counter.Next()
		if err := counter.Err(); err != nil {
			return common.Hash{}, fmt.Errorf("withdrawal %d: %w", n, err)
		}
	}
	if err := items.Err(); err != nil {
		return common.Hash{}, fmt.Errorf("withdrawals: %w", err)
	}
	return h.trie.Root(n, func(int) []byte {
		_, item := items.Raw()
		return item
	}), nil
}
