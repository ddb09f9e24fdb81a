package ethjson

import (
	"encoding/json"
	"errors"
	"math/big"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/rlp"
	"github.com/holiman/uint256"

	"github.com/leani-go/leani/chain"
)

// Times of the built-in Mainnet schedule.
const (
	cancunTime = 1_710_338_135
	pragueTime = 1_746_612_311
)

// newBlock makes a block with the transactions, all from address 1, that succeeded with 21,000
// gas and no logs each.
func newBlock(t testing.TB, header *types.Header, transactions ...[]byte) *chain.Block {
	t.Helper()
	encoded, err := rlp.EncodeToBytes(header)
	if err != nil {
		t.Fatal(err)
	}
	b := &chain.Block{
		BlockRef:     chain.BlockRef{Number: header.Number.Uint64(), Hash: crypto.Keccak256Hash(encoded), Timestamp: header.Time},
		Header:       encoded,
		Transactions: transactions,
		Ommers:       []byte{0xc0},
		Withdrawals:  []byte{0xc0},
		HasReceipts:  true,
	}
	for i, envelope := range transactions {
		b.TransactionHashes = append(b.TransactionHashes, crypto.Keccak256Hash(envelope))
		b.Senders = append(b.Senders, common.Address{1})
		b.Receipts = append(b.Receipts, chain.Receipt{Status: 1, CumulativeGasUsed: uint64(i+1) * 21_000})
	}
	return b
}

// newHeader makes a header of the time, with excess blob gas unless that is nil.
func newHeader(time uint64, excessBlobGas *uint64) *types.Header {
	h := &types.Header{
		Difficulty: new(big.Int), Number: big.NewInt(20_000_000), Time: time,
		BaseFee: big.NewInt(1_000_000_000), WithdrawalsHash: new(common.Hash),
	}
	if excessBlobGas != nil {
		h.BlobGasUsed, h.ExcessBlobGas, h.ParentBeaconRoot = new(uint64), excessBlobGas, new(common.Hash)
	}
	return h
}

func envelope(t testing.TB, data types.TxData) []byte {
	t.Helper()
	b, err := types.NewTx(data).MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func plainEnvelope(t testing.TB) []byte {
	return envelope(t, &types.LegacyTx{To: &common.Address{2}, GasPrice: big.NewInt(1), Value: big.NewInt(1), V: big.NewInt(27), R: big.NewInt(1), S: big.NewInt(1)})
}

func blobEnvelope(t testing.TB) []byte {
	return envelope(t, &types.BlobTx{ChainID: uint256.NewInt(1), BlobHashes: make([]common.Hash, 2), GasTipCap: uint256.NewInt(1), GasFeeCap: uint256.NewInt(2)})
}

// One price that cannot be computed fails every receipt of its block, those of ordinary
// transactions too, together and one by one; blocks without a blob transaction are served
// whatever their header and chain. RPC-111, RPC-112, RPC-113, RPC-114, RPC-115, RPC-116,
// RPC-117
func TestBlobPriceFailsTheBlock(t *testing.T) {
	excess := func(v uint64) *uint64 { return &v }
	plain, blob := plainEnvelope(t), blobEnvelope(t)
	for _, c := range []struct {
		name    string
		network *chain.Network
		header  *types.Header
		want    error
	}{
		{"covered", chain.Mainnet(), newHeader(cancunTime, excess(0)), nil},
		{"before the schedule", chain.Mainnet(), newHeader(cancunTime-1, excess(0)), chain.ErrBlobScheduleUnavailable},
		{"another chain", chain.UnscheduledNetwork("sepolia", 11_155_111), newHeader(cancunTime, excess(0)), chain.ErrBlobScheduleUnavailable},
		{"no excess", chain.Mainnet(), newHeader(cancunTime, nil), chain.ErrExcessBlobGasMissing},
		{"too dear", chain.Mainnet(), newHeader(cancunTime, excess(1<<64-1)), chain.ErrQuantityExceedsU128},
	} {
		encoder := NewEncoder(c.network)
		mixed := newBlock(t, c.header, plain, blob, plain)
		got, err := encoder.AppendReceipts([]byte("kept"), mixed)
		if !errors.Is(err, c.want) || (err == nil) != (c.want == nil) || err != nil && string(got) != "kept" {
			t.Errorf("%s: all receipts: got %.80q, %v; want error %v", c.name, got, err, c.want)
		}
		for i := range mixed.Transactions {
			got, err := encoder.AppendReceipt([]byte("kept"), mixed, i)
			if !errors.Is(err, c.want) || (err == nil) != (c.want == nil) || err != nil && string(got) != "kept" {
				t.Errorf("%s: receipt %d: got %.80q, %v; want error %v", c.name, i, got, err, c.want)
			}
		}
		ordinary := newBlock(t, c.header, plain, plain)
		if _, err := encoder.AppendReceipts(nil, ordinary); err != nil {
			t.Errorf("%s: block without blobs: %v", c.name, err)
		}
		if _, err := encoder.AppendReceipt(nil, ordinary, 1); err != nil {
			t.Errorf("%s: receipt of a block without blobs: %v", c.name, err)
		}
	}
}

// The price is the one of the fork that the timestamp selects, to the second. RPC-110
func TestBlobPriceFollowsTheTimestamp(t *testing.T) {
	excess := uint64(30_539_776)
	for time, want := range map[uint64]string{pragueTime - 1: "0x24b1", pragueTime: "0x1bd"} { // 9393, 445
		b := newBlock(t, newHeader(time, &excess), blobEnvelope(t))
		text, err := NewEncoder(chain.Mainnet()).AppendReceipt(nil, b, 0)
		if err != nil {
			t.Fatal(err)
		}
		var got struct{ BlobGasPrice, BlobGasUsed string }
		if err := json.Unmarshal(text, &got); err != nil {
			t.Fatal(err)
		}
		if got.BlobGasPrice != want || got.BlobGasUsed != "0x40000" {
			t.Errorf("at %d: got price %s for %s gas, want %s for 0x40000", time, got.BlobGasPrice, got.BlobGasUsed, want)
		}
	}
}

// A creation names the contract, whether it succeeded or not, and a receipt from before
// Byzantium has a root in place of a status.
func TestCreationReceipt(t *testing.T) {
	for _, nonce := range []uint64{0, 1, 127, 128, 1<<64 - 1} {
		creation := envelope(t, &types.LegacyTx{Nonce: nonce, GasPrice: big.NewInt(3), Value: new(big.Int), V: big.NewInt(28), R: big.NewInt(1), S: big.NewInt(1)})
		b := newBlock(t, &types.Header{Difficulty: big.NewInt(1), Number: big.NewInt(50_000), Time: 1_438_969_901}, creation)
		b.Receipts[0].PostState = common.Hash{7}.Bytes()
		text, err := NewEncoder(chain.Mainnet()).AppendReceipt(nil, b, 0)
		if err != nil {
			t.Fatal(err)
		}
		var got map[string]any
		if err := json.Unmarshal(text, &got); err != nil {
			t.Fatal(err)
		}
		created := crypto.CreateAddress(b.Senders[0], nonce)
		for member, want := range map[string]any{
			"contractAddress": "0x" + common.Bytes2Hex(created[:]), "to": nil, "root": common.Hash{7}.Hex(), "effectiveGasPrice": "0x3",
		} {
			if got[member] != want {
				t.Errorf("nonce %d: %s: got %v, want %v", nonce, member, got[member], want)
			}
		}
		if _, ok := got["status"]; ok {
			t.Errorf("nonce %d: a status beside the root", nonce)
		}
	}
}
