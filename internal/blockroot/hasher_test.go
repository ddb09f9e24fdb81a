package blockroot

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	gethrlp "github.com/ethereum/go-ethereum/rlp"
	"github.com/ethereum/go-ethereum/trie"

	"github.com/leani-go/leani/chain"
	"github.com/leani-go/leani/internal/receipt"
)

// TestEqualsGoEthereum compares every result with go-ethereum's on random blocks of many
// sizes, with one Hasher for all of them.
func TestEqualsGoEthereum(t *testing.T) {
	var h Hasher
	rng := rand.New(rand.NewPCG(3, 4))
	for _, n := range []int{0, 1, 2, 3, 15, 16, 17, 127, 128, 129, 200, 300, 5} {
		transactions := make(types.Transactions, n)
		receipts := make(types.Receipts, n)
		withdrawals := make(types.Withdrawals, n)
		var envelopes [][]byte
		for i := range n {
			to := common.Address{byte(rng.IntN(5))}
			if i%2 == 0 {
				transactions[i] = types.NewTx(&types.LegacyTx{Nonce: rng.Uint64(), To: &to, Data: make([]byte, rng.IntN(300))})
			} else {
				transactions[i] = types.NewTx(&types.DynamicFeeTx{Nonce: rng.Uint64(), To: &to, Data: make([]byte, rng.IntN(300))})
			}
			envelope, err := transactions[i].MarshalBinary()
			if err != nil {
				t.Fatal(err)
			}
			envelopes = append(envelopes, envelope)
			receipts[i] = &types.Receipt{Type: transactions[i].Type(), Status: uint64(i % 2), CumulativeGasUsed: rng.Uint64()}
			for range rng.IntN(4) {
				l := &types.Log{Address: to, Data: make([]byte, rng.IntN(70)), Topics: make([]common.Hash, rng.IntN(5))}
				for k := range l.Topics {
					l.Topics[k] = common.Hash{byte(rng.IntN(40)), byte(k)}
				}
				receipts[i].Logs = append(receipts[i].Logs, l)
			}
			receipts[i].Bloom = types.CreateBloom(receipts[i])
			withdrawals[i] = &types.Withdrawal{Index: rng.Uint64(), Validator: uint64(i), Address: to, Amount: uint64(rng.IntN(100))}
		}

		hashes := make([]common.Hash, n)
		want := types.DeriveSha(transactions, trie.NewStackTrie(nil))
		if got := h.TransactionsRoot(envelopes, hashes); got != want {
			t.Fatalf("%d transactions: got %x want %x", n, got, want)
		}
		if got := h.TransactionsRoot(envelopes, nil); got != want {
			t.Fatalf("%d transactions without hashes: got %x want %x", n, got, want)
		}
		for i, hash := range hashes {
			if hash != transactions[i].Hash() {
				t.Fatalf("transaction %d: got hash %x want %x", i, hash, transactions[i].Hash())
			}
		}

		list, err := gethrlp.EncodeToBytes(receipts)
		if err != nil {
			t.Fatal(err)
		}
		var b chain.Block
		if _, err := receipt.DecodeCanonical(list, &b, nil); err != nil {
			t.Fatal(err)
		}
		logsBloom := types.Bloom{1, 2, 3}
		if got, want := h.ReceiptsRoot(&b, &logsBloom), types.DeriveSha(receipts, trie.NewStackTrie(nil)); got != want {
			t.Fatalf("%d receipts: got %x want %x", n, got, want)
		}
		if want := types.MergeBloom(receipts); logsBloom != want {
			t.Fatalf("%d receipts: got bloom %x want %x", n, logsBloom, want)
		}
		again := types.Bloom{1, 2, 3}
		if h.LogsBloom(&again, b.Logs); again != logsBloom {
			t.Fatalf("bloom of the logs alone: got %x want %x", again, logsBloom)
		}

		list, err = gethrlp.EncodeToBytes(withdrawals)
		if err != nil {
			t.Fatal(err)
		}
		got, err := h.WithdrawalsRoot(list)
		if want := types.DeriveSha(withdrawals, trie.NewStackTrie(nil)); err != nil || got != want {
			t.Fatalf("%d withdrawals: got %x %v want %x", n, got, err, want)
		}
		if got, want := h.Keccak(list), crypto.Keccak256Hash(list); got != want {
			t.Fatalf("keccak: got %x want %x", got, want)
		}
	}
	if got := h.Keccak([]byte{0xc0}); got != EmptyOmmers {
		t.Fatalf("empty ommers: got %x want %x", got, EmptyOmmers)
	}
}

func TestWithdrawalsRootRefuses(t *testing.T) {
	var h Hasher
	for _, list := range [][]byte{nil, {0x80}, {0xc0, 0xc0}, {0xc1, 0x81}, bytes.Repeat([]byte{0xff}, 9)} {
		if _, err := h.WithdrawalsRoot(list); err == nil {
			t.Errorf("%x: accepted", list)
		}
	}
}
