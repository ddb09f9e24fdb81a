package header

import (
	"errors"
	"math/big"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	gethrlp "github.com/ethereum/go-ethereum/rlp"

	"github.com/leani-go/leani/internal/rlp"
)

// sample is a header with every field set to a value of its own, cut to the given number of
// fields.
func sample(t testing.TB, fields int) (*types.Header, []byte) {
	t.Helper()
	number := func(v uint64) *uint64 { return &v }
	hash := func(b byte) *common.Hash { return &common.Hash{b, 31: b} }
	h := &types.Header{
		ParentHash: *hash(1), UncleHash: *hash(2), Coinbase: common.Address{3}, Root: *hash(4),
		TxHash: *hash(5), ReceiptHash: *hash(6), Bloom: types.Bloom{7}, Difficulty: big.NewInt(0x080808),
		Number: big.NewInt(9), GasLimit: 10, GasUsed: 0, Time: 1 << 40, Extra: []byte("extra"),
		MixDigest: *hash(14), Nonce: types.BlockNonce{15},
	}
	for i, set := range []func(){
		func() { h.BaseFee = new(big.Int) },
		func() { h.WithdrawalsHash = hash(17) },
		func() { h.BlobGasUsed = number(18) },
		func() { h.ExcessBlobGas = number(19) },
		func() { h.ParentBeaconRoot = hash(20) },
		func() { h.RequestsHash = hash(21) },
		func() { h.BlockAccessListHash = hash(22) },
		func() { h.SlotNumber = number(23) },
	} {
		if FieldsFrontier+i < fields {
			set()
		}
	}
	encoded, err := gethrlp.EncodeToBytes(h)
	if err != nil {
		t.Fatal(err)
	}
	return h, encoded
}

// compare tells where the two parsers differ.
func compare(t *testing.T, h *Header, want *types.Header) {
	t.Helper()
	same := func(name string, ok bool) {
		t.Helper()
		if !ok {
			t.Errorf("%s differs: %+v", name, h)
		}
	}
	optional := func(name string, got, want *common.Hash) {
		t.Helper()
		same(name, (got == nil) == (want == nil) && (got == nil || *got == *want))
	}
	uints := func(name string, got uint64, want *uint64) {
		t.Helper()
		same(name, want == nil && got == 0 || want != nil && got == *want)
	}
	same("parent hash", *h.ParentHash == want.ParentHash)
	same("ommers hash", *h.OmmersHash == want.UncleHash)
	same("beneficiary", *h.Beneficiary == want.Coinbase)
	same("state root", *h.StateRoot == want.Root)
	same("transactions root", *h.TransactionsRoot == want.TxHash)
	same("receipts root", *h.ReceiptsRoot == want.ReceiptHash)
	same("logs bloom", *h.LogsBloom == want.Bloom)
	same("difficulty", new(big.Int).SetBytes(h.Difficulty).Cmp(want.Difficulty) == 0)
	same("number", h.Number == want.Number.Uint64())
	same("gas limit", h.GasLimit == want.GasLimit)
	same("gas used", h.GasUsed == want.GasUsed)
	same("timestamp", h.Timestamp == want.Time)
	same("extra", string(h.Extra) == string(want.Extra))
	same("mix hash", *h.MixHash == want.MixDigest)
	same("nonce", *h.Nonce == want.Nonce)
	same("base fee", (h.BaseFee == nil) == (want.BaseFee == nil) && (want.BaseFee == nil || new(big.Int).SetBytes(h.BaseFee).Cmp(want.BaseFee) == 0))
	optional("withdrawals root", h.WithdrawalsRoot, want.WithdrawalsHash)
	uints("blob gas used", h.BlobGasUsed, want.BlobGasUsed)
	uints("excess blob gas", h.ExcessBlobGas, want.ExcessBlobGas)
	optional("parent beacon root", h.ParentBeaconRoot, want.ParentBeaconRoot)
	optional("requests hash", h.RequestsHash, want.RequestsHash)
	optional("block access list hash", h.BlockAccessListHash, want.BlockAccessListHash)
	uints("slot number", h.SlotNumber, want.SlotNumber)
}

// TestParseEqualsGoEthereum compares every field at every number of fields.
func TestParseEqualsGoEthereum(t *testing.T) {
	for fields := FieldsFrontier; fields <= FieldsMaximum; fields++ {
		want, encoded := sample(t, fields)
		var h Header
		if err := Parse(encoded, &h); err != nil {
			t.Fatal(err)
		}
		if h.Fields != fields {
			t.Fatalf("got %d fields want %d", h.Fields, fields)
		}
		compare(t, &h, want)
	}
}

func TestParseRefuses(t *testing.T) {
	_, full := sample(t, FieldsMaximum)
	content := full[3:]
	rewrap := func(content []byte) []byte {
		return append(rlp.AppendListHeader(nil, len(content)), content...)
	}
	for _, c := range []struct {
		name string
		in   []byte
		err  error
	}{
		{"empty", nil, rlp.ErrTruncated},
		{"a string", []byte{0x80}, rlp.ErrNotList},
		{"bytes after it", append(full[:len(full):len(full)], 0), rlp.ErrSurplus},
		{"one field more", rewrap(append(content[:len(content):len(content)], 0x80)), rlp.ErrSurplus},
		{"half of it", rewrap(content[:len(content)/2]), rlp.ErrTruncated},
		{"no fields", rewrap(nil), rlp.ErrTruncated},
		{"short parent hash", rewrap(append([]byte{0x9f}, content[2:]...)), rlp.ErrStringSize},
	} {
		var h Header
		if err := Parse(c.in, &h); !errors.Is(err, c.err) {
			t.Errorf("%s: got %v want %v", c.name, err, c.err)
		}
	}
}

func TestParseAllocatesNothing(t *testing.T) {
	_, encoded := sample(t, FieldsPrague)
	var h Header
	if n := testing.AllocsPerRun(10, func() {
		if Parse(encoded, &h) != nil {
			t.Fatal("refused")
		}
	}); n != 0 {
		t.Fatalf("%v allocations", n)
	}
}

// FuzzHeader compares the verdict and the fields with go-ethereum's decoder.
func FuzzHeader(f *testing.F) {
	for _, fields := range []int{FieldsFrontier, FieldsLondon, FieldsCancun, FieldsMaximum} {
		_, encoded := sample(f, fields)
		f.Add(encoded)
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		var h Header
		err := Parse(in, &h)
		var want types.Header
		gErr := gethrlp.DecodeBytes(in, &want)
		// go-ethereum takes integers of any size where 256 and 64 bits are the limit here.
		if gErr == nil && (want.Difficulty.BitLen() > 256 || !want.Number.IsUint64() || want.BaseFee != nil && want.BaseFee.BitLen() > 256) {
			return
		}
		if (err == nil) != (gErr == nil) {
			t.Fatalf("got error %v, go-ethereum %v", err, gErr)
		}
		if err == nil {
			compare(t, &h, &want)
		}
	})
}
