package verify

import (
	"bytes"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	gethrlp "github.com/ethereum/go-ethereum/rlp"

	"github.com/leani-go/leani/chain"
	"github.com/leani-go/leani/ingest/era"
	"github.com/leani-go/leani/internal/header"
	"github.com/leani-go/leani/internal/shareddata"
)

// pair returns two consecutive real blocks, with withdrawals, logs and all types of receipts.
func pair(tb testing.TB) []chain.Block {
	tb.Helper()
	f, err := era.OpenPath(filepath.Join(shareddata.Root(tb), "testdata", "era", "mainnet-mini", "mainnet-22431083-22431084-noproofs.ere"), era.Options{})
	if err != nil {
		tb.Fatal(err)
	}
	defer f.Close()
	blocks := make([]chain.Block, 2)
	if n, err := f.ReadBlocks(f.Range(), chain.PartsAll, new(era.Buffer), blocks); n != 2 || err != nil {
		tb.Fatal(n, err)
	}
	return blocks
}

// TestBlock verifies real blocks, the second as the successor of the first, and pins what is
// filled in.
func TestBlock(t *testing.T) {
	blocks := pair(t)
	var v Verifier
	for i := range blocks {
		b := &blocks[i]
		want := Expected{Number: 22431083 + uint64(i)}
		if i > 0 {
			want.ParentHash = blocks[i-1].Hash
		}
		if err := v.Block(b, want); err != nil {
			t.Fatal(err)
		}
		if b.Hash == (common.Hash{}) || len(b.TransactionHashes) != len(b.Transactions) || v.Header().Number != b.Number {
			t.Fatalf("block %v is not filled in", b.BlockRef)
		}
		want.Hash = b.Hash
		if err := v.Block(b, want); err != nil {
			t.Fatal(err)
		}
	}
}

// TestBlockRefuses changes one thing at a time and pins which check notices.
//
// SRC-030
func TestBlockRefuses(t *testing.T) {
	pristine := pair(t)
	var reference Verifier
	if err := reference.Block(&pristine[0], Expected{Number: 22431083}); err != nil {
		t.Fatal(err)
	}
	// reheaded replaces the header by one that go-ethereum encodes after a change.
	reheaded := func(b *chain.Block, change func(*types.Header)) {
		var h types.Header
		if err := gethrlp.DecodeBytes(b.Header, &h); err != nil {
			t.Fatal(err)
		}
		change(&h)
		encoded, err := gethrlp.EncodeToBytes(&h)
		if err != nil {
			t.Fatal(err)
		}
		b.Header = encoded
	}
	for _, c := range []struct {
		name   string
		check  Check
		change func(b *chain.Block, want *Expected)
	}{
		{"no header", CheckHeader, func(b *chain.Block, _ *Expected) { b.Header = nil }},
		{"surplus after the header", CheckHeader, func(b *chain.Block, _ *Expected) { b.Header = append(bytes.Clone(b.Header), 0) }},
		{"another hash", CheckHash, func(_ *chain.Block, want *Expected) { want.Hash = common.Hash{1} }},
		{"another number", CheckNumber, func(_ *chain.Block, want *Expected) { want.Number++ }},
		{"another parent", CheckParent, func(_ *chain.Block, want *Expected) { want.ParentHash = common.Hash{1} }},
		{"header of another block", CheckNumber, func(b *chain.Block, _ *Expected) { b.Header = pristine[1].Header }},
		{"transaction missing", CheckTransactionsRoot, func(b *chain.Block, _ *Expected) { b.Transactions = b.Transactions[1:] }},
		{"transaction twice", CheckTransactionsRoot, func(b *chain.Block, _ *Expected) { b.Transactions = append(b.Transactions, b.Transactions[0]) }},
		{"transactions swapped", CheckTransactionsRoot, func(b *chain.Block, _ *Expected) {
			b.Transactions[3], b.Transactions[4] = b.Transactions[4], b.Transactions[3]
		}},
		{"empty transaction", CheckTransactionsRoot, func(b *chain.Block, _ *Expected) { b.Transactions[2] = nil }},
		{"no ommers list", CheckOmmersHash, func(b *chain.Block, _ *Expected) { b.Ommers = nil }},
		{"an ommer", CheckOmmersHash, func(b *chain.Block, _ *Expected) { b.Ommers = []byte{0xc1, 0xc0} }},
		{"no withdrawals", CheckWithdrawals, func(b *chain.Block, _ *Expected) { b.Withdrawals = nil }},
		{"withdrawals without a root", CheckWithdrawals, func(b *chain.Block, _ *Expected) {
			reheaded(b, func(h *types.Header) {
				h.WithdrawalsHash, h.BlobGasUsed, h.ExcessBlobGas, h.ParentBeaconRoot, h.RequestsHash = nil, nil, nil, nil, nil
			})
		}},
		{"malformed withdrawals", CheckWithdrawals, func(b *chain.Block, _ *Expected) { b.Withdrawals = []byte{0xc1} }},
		{"other withdrawals", CheckWithdrawalsRoot, func(b *chain.Block, _ *Expected) { b.Withdrawals = []byte{0xc0} }},
		{"receipt missing", CheckReceiptsCount, func(b *chain.Block, _ *Expected) { b.Receipts = b.Receipts[:len(b.Receipts)-1] }},
		{"no receipts", CheckReceiptsCount, func(b *chain.Block, _ *Expected) { b.Receipts, b.Logs = nil, nil }},
		{"receipt of another type", CheckReceiptType, func(b *chain.Block, _ *Expected) { b.Receipts[0].Type ^= 1 }},
		{"gas falls", CheckCumulativeGas, func(b *chain.Block, _ *Expected) { b.Receipts[0].CumulativeGasUsed = 1 << 60 }},
		{"other gas in the end", CheckCumulativeGas, func(b *chain.Block, _ *Expected) { b.Receipts[len(b.Receipts)-1].CumulativeGasUsed++ }},
		{"logs out of range", CheckLogs, func(b *chain.Block, _ *Expected) { b.Receipts[len(b.Receipts)-1].LogsEnd++ }},
		{"logs out of order", CheckLogs, func(b *chain.Block, _ *Expected) { b.Receipts[len(b.Receipts)-2].LogsEnd = 0 }},
		{"log of no receipt", CheckLogs, func(b *chain.Block, _ *Expected) { b.Logs = append(b.Logs, b.Logs[0]) }},
		{"gas moved between receipts", CheckReceiptsRoot, func(b *chain.Block, _ *Expected) { b.Receipts[0].CumulativeGasUsed-- }},
		{"status", CheckReceiptsRoot, func(b *chain.Block, _ *Expected) { b.Receipts[5].Status ^= 1 }},
		{"state root for status", CheckReceiptsRoot, func(b *chain.Block, _ *Expected) { b.Receipts[5].PostState = make([]byte, 32) }},
		{"log data", CheckReceiptsRoot, func(b *chain.Block, _ *Expected) { b.Logs[9].Data = nil }},
		{"log address", CheckReceiptsRoot, func(b *chain.Block, _ *Expected) { b.Logs[9].Address = new(common.Address) }},
		{"log topic", CheckReceiptsRoot, func(b *chain.Block, _ *Expected) { b.Logs[9].Topics[0] = new(common.Hash) }},
		{"log with a topic less", CheckReceiptsRoot, func(b *chain.Block, _ *Expected) { b.Logs[9].NumTopics-- }},
		{"log moved to the receipt before", CheckReceiptsRoot, func(b *chain.Block, _ *Expected) {
			for i := range b.Receipts {
				if i > 0 && b.Receipts[i].LogsEnd > b.Receipts[i-1].LogsEnd+1 {
					b.Receipts[i-1].LogsEnd++
					return
				}
			}
			t.Fatal("no receipt with two logs")
		}},
		{"bloom of the header", CheckLogsBloom, func(b *chain.Block, _ *Expected) {
			reheaded(b, func(h *types.Header) { h.Bloom[0] ^= 1 })
		}},
		{"gas of the header", CheckCumulativeGas, func(b *chain.Block, _ *Expected) {
			reheaded(b, func(h *types.Header) { h.GasUsed++ })
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := pristine[0]
			b.Transactions = slices.Clone(b.Transactions)
			b.Receipts = slices.Clone(b.Receipts)
			b.Logs = slices.Clone(b.Logs)
			b.TransactionHashes = nil
			want := Expected{Number: 22431083}
			c.change(&b, &want)
			err := new(Verifier).Block(&b, want)
			var failed *Error
			if !errors.As(err, &failed) || failed.Check != c.check || failed.Block != want.Number {
				t.Fatalf("got %v, want block %d: %v", err, want.Number, c.check)
			}
			if !strings.Contains(err.Error(), c.check.String()) {
				t.Errorf("the text does not name the check: %v", err)
			}
		})
	}
}

// TestAmsterdamGas pins that the header's gas is not compared with the receipts' once a block
// counts gas in two dimensions (EIP-8037), and that everything else still is.
func TestAmsterdamGas(t *testing.T) {
	b := pair(t)[0]
	var h types.Header
	if err := gethrlp.DecodeBytes(b.Header, &h); err != nil {
		t.Fatal(err)
	}
	slot := uint64(1)
	h.RequestsHash, h.BlockAccessListHash, h.SlotNumber, h.GasUsed = new(common.Hash), new(common.Hash), &slot, h.GasUsed-1
	encoded, err := gethrlp.EncodeToBytes(&h)
	if err != nil {
		t.Fatal(err)
	}
	b.Header = encoded
	var v Verifier
	if err := v.Block(&b, Expected{Number: b.Number}); err != nil {
		t.Fatal(err)
	}
	if v.Header().Fields != header.FieldsAmsterdam {
		t.Fatal(v.Header().Fields)
	}
	b.Receipts[0].Status ^= 1
	var failed *Error
	if err := v.Block(&b, Expected{Number: b.Number}); !errors.As(err, &failed) || failed.Check != CheckReceiptsRoot {
		t.Fatal(err)
	}
}

func TestWithoutReceipts(t *testing.T) {
	b := pair(t)[0]
	b.HasReceipts, b.Receipts, b.Logs = false, nil, nil
	if err := new(Verifier).Block(&b, Expected{Number: b.Number}); err != nil {
		t.Fatal(err)
	}
}

func TestVerifyingAllocatesNothing(t *testing.T) {
	blocks := pair(t)
	var v Verifier
	run := func() {
		for i := range blocks {
			if err := v.Block(&blocks[i], Expected{Number: 22431083 + uint64(i)}); err != nil {
				t.Fatal(err)
			}
		}
	}
	run()
	if n := testing.AllocsPerRun(10, run); n != 0 {
		t.Fatalf("%v allocations for two blocks", n)
	}
}

func TestCheckNames(t *testing.T) {
	for c := CheckHeader; c <= CheckLogsBloom; c++ {
		if strings.HasPrefix(c.String(), "check ") {
			t.Errorf("check %d has no name", c)
		}
	}
	if Check(0).String() != "check 0" || Check(200).String() != "check 200" {
		t.Error(Check(0), Check(200))
	}
}
