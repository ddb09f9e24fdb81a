package sender

import (
	"crypto/ecdsa"
	"errors"
	"math/big"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/rlp"
	"github.com/holiman/uint256"
	"pgregory.net/rapid"

	"github.com/leani-go/leani/internal/chainfixture"
)

// reference is go-ethereum's answer under the loosest rules that a mined transaction of the
// chain can have been accepted by.
func reference(tx *types.Transaction, chainID uint64) (common.Address, error) {
	if tx.Type() == types.LegacyTxType && !tx.Protected() {
		return types.Sender(types.FrontierSigner{}, tx)
	}
	return types.Sender(types.LatestSignerForChainID(new(big.Int).SetUint64(chainID)), tx)
}

// Every transaction of the fixtures, types 0 to 4, has the sender that go-ethereum recovers.
func TestRecoverFixtures(t *testing.T) {
	blocks := chainfixture.ConformanceChain(t)
	for i, b := range chainfixture.RealBlocks(t) {
		if b.Answer != nil || i%4 == 0 {
			blocks = append(blocks, b)
		}
	}
	var checked [5]int
	recoverers := make(map[uint64]*Recoverer)
	for _, b := range blocks {
		r := recoverers[b.ChainID]
		if r == nil {
			r = New(b.ChainID)
			recoverers[b.ChainID] = r
		}
		transactions := b.Transactions
		if testing.Short() && len(transactions) > 20 {
			transactions = transactions[:20]
		}
		for i, envelope := range transactions {
			var tx types.Transaction
			if err := tx.UnmarshalBinary(envelope); err != nil {
				t.Fatal(err)
			}
			got, err := r.Recover(envelope)
			if err != nil {
				t.Errorf("block %d, transaction %d: %v", b.Number, i, err)
				continue
			}
			// The answers hold go-ethereum's senders; where there are none it is asked again.
			want := common.Address{}
			if b.Senders != nil {
				want = b.Senders[i]
			} else if want, err = reference(&tx, b.ChainID); err != nil {
				t.Fatal(err)
			}
			if got != want {
				t.Errorf("block %d, transaction %d: got %s, want %s", b.Number, i, got, want)
			}
			checked[tx.Type()]++
		}
	}
	for kind, n := range checked {
		if n == 0 {
			t.Errorf("no transaction of type %d was checked", kind)
		}
	}
	t.Logf("transactions by type: %v", checked)
}

// Random transactions of every type: signed for the chain or for another one, with intact or
// damaged signatures. Recover gives go-ethereum's sender, and an error where that has one.
func TestRecoverEqualsGeth(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		chainID := rapid.SampledFrom([]uint64{1, 2, 11_155_111, 1<<63 - 1}).Draw(t, "chain id")
		key := drawKey(t)
		signed := chainID
		if rapid.IntRange(0, 9).Draw(t, "other chain") == 0 {
			signed++
		}
		var signer types.Signer = types.LatestSignerForChainID(new(big.Int).SetUint64(signed))
		tx := types.NewTx(drawTransaction(t, signed))
		if tx.Type() == types.LegacyTxType && rapid.Bool().Draw(t, "unprotected") {
			signer = types.HomesteadSigner{}
		}
		tx, err := types.SignTx(tx, signer, key)
		if err != nil {
			t.Fatal(err)
		}
		envelope, err := tx.MarshalBinary()
		if err != nil {
			t.Fatal(err)
		}
		want, wantErr := reference(tx, chainID)
		got, err := recoverOne(envelope, chainID)
		if got != want || (err == nil) != (wantErr == nil) {
			t.Fatalf("got %s, %v; want %s, %v", got, err, want, wantErr)
		}
		if errors.Is(wantErr, types.ErrInvalidChainId) != errors.Is(err, ErrChainID) {
			t.Fatalf("got error %v, want %v", err, wantErr)
		}

		// The same with one changed byte, as far as go-ethereum still reads it.
		envelope[rapid.IntRange(0, len(envelope)-1).Draw(t, "position")] ^= byte(1 << rapid.IntRange(0, 7).Draw(t, "bit"))
		compare(t, envelope, chainID)
	})
}

// compare checks that Recover agrees with go-ethereum about bytes that this one can read.
func compare(t interface{ Fatalf(string, ...any) }, envelope []byte, chainID uint64) {
	got, err := recoverOne(envelope, chainID)
	var tx types.Transaction
	if tx.UnmarshalBinary(envelope) != nil || tx.Type() == types.BlobTxType && tx.BlobTxSidecar() != nil {
		return
	}
	want, wantErr := reference(&tx, chainID)
	if got != want || (err == nil) != (wantErr == nil) {
		t.Fatalf("%x: got %s, %v; want %s, %v", envelope, got, err, want, wantErr)
	}
}

func drawKey(t *rapid.T) *ecdsa.PrivateKey {
	seed := rapid.SliceOfN(rapid.Byte(), 1, 8).Draw(t, "key")
	key, err := crypto.ToECDSA(crypto.Keccak256(seed))
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func drawTransaction(t *rapid.T, chainID uint64) types.TxData {
	nonce := rapid.Uint64().Draw(t, "nonce")
	value := uint256.NewInt(rapid.Uint64().Draw(t, "value"))
	data := rapid.SliceOfN(rapid.Byte(), 0, 100).Draw(t, "data")
	address := common.BytesToAddress(rapid.SliceOfN(rapid.Byte(), 0, 20).Draw(t, "to"))
	to := &address
	if rapid.Bool().Draw(t, "creation") {
		to = nil
	}
	var list types.AccessList
	for range rapid.IntRange(0, 2).Draw(t, "access tuples") {
		list = append(list, types.AccessTuple{Address: address, StorageKeys: make([]common.Hash, rapid.IntRange(0, 3).Draw(t, "keys"))})
	}
	id := new(big.Int).SetUint64(chainID)
	switch rapid.IntRange(0, 4).Draw(t, "type") {
	case accessListType:
		return &types.AccessListTx{ChainID: id, Nonce: nonce, GasPrice: value.ToBig(), Gas: 1, To: to, Value: value.ToBig(), Data: data, AccessList: list}
	case dynamicFeeType:
		return &types.DynamicFeeTx{ChainID: id, Nonce: nonce, GasTipCap: value.ToBig(), GasFeeCap: value.ToBig(), Gas: 1, To: to, Value: value.ToBig(), Data: data, AccessList: list}
	case blobType:
		return &types.BlobTx{ChainID: uint256.MustFromBig(id), Nonce: nonce, GasTipCap: value, GasFeeCap: value, Gas: 1, To: address, Value: value, Data: data, AccessList: list,
			BlobFeeCap: value, BlobHashes: make([]common.Hash, rapid.IntRange(0, 6).Draw(t, "blobs"))}
	case setCodeType:
		return &types.SetCodeTx{ChainID: uint256.MustFromBig(id), Nonce: nonce, GasTipCap: value, GasFeeCap: value, Gas: 1, To: address, Value: value, Data: data, AccessList: list,
			AuthList: make([]types.SetCodeAuthorization, rapid.IntRange(0, 2).Draw(t, "authorizations"))}
	default:
		return &types.LegacyTx{Nonce: nonce, GasPrice: value.ToBig(), Gas: 1, To: to, Value: value.ToBig(), Data: data}
	}
}

// The other signature over the same hash, with s mirrored and the parity flipped, gives the
// same sender where Homestead's rule (EIP-2) does not apply, and is refused where it does.
func TestHighS(t *testing.T) {
	key, err := crypto.ToECDSA(crypto.Keccak256([]byte("key")))
	if err != nil {
		t.Fatal(err)
	}
	want := crypto.PubkeyToAddress(key.PublicKey)
	mirror := func(tx *types.Transaction) []byte {
		v, r, s := tx.RawSignatureValues()
		s = new(big.Int).Sub(crypto.S256().Params().N, s)
		switch {
		case tx.Type() != types.LegacyTxType:
			v = new(big.Int).Xor(v, big.NewInt(1))
		case v.Bit(0) == 1: // 27 and 37 are even parity
			v = new(big.Int).Add(v, big.NewInt(1))
		default:
			v = new(big.Int).Sub(v, big.NewInt(1))
		}
		if tx.Type() == types.LegacyTxType {
			b, err := rlp.EncodeToBytes(&types.LegacyTx{Nonce: tx.Nonce(), GasPrice: tx.GasPrice(), Gas: tx.Gas(), To: tx.To(), Value: tx.Value(), V: v, R: r, S: s})
			if err != nil {
				t.Fatal(err)
			}
			return b
		}
		b, err := rlp.EncodeToBytes(&types.DynamicFeeTx{ChainID: tx.ChainId(), Nonce: tx.Nonce(), GasTipCap: tx.GasTipCap(), GasFeeCap: tx.GasFeeCap(), Gas: tx.Gas(), To: tx.To(), Value: tx.Value(), V: v, R: r, S: s})
		if err != nil {
			t.Fatal(err)
		}
		return append([]byte{tx.Type()}, b...)
	}
	legacy := &types.LegacyTx{GasPrice: big.NewInt(1), Gas: 21000, To: &want, Value: big.NewInt(1)}
	dynamic := &types.DynamicFeeTx{ChainID: big.NewInt(1), GasTipCap: big.NewInt(1), GasFeeCap: big.NewInt(1), Gas: 21000, To: &want, Value: big.NewInt(1)}
	for _, c := range []struct {
		name   string
		signer types.Signer
		data   types.TxData
		err    error
	}{
		{"unprotected", types.HomesteadSigner{}, legacy, nil},
		{"protected", types.LatestSignerForChainID(big.NewInt(1)), legacy, ErrSignature},
		{"typed", types.LatestSignerForChainID(big.NewInt(1)), dynamic, ErrSignature},
	} {
		tx, err := types.SignNewTx(key, c.signer, c.data)
		if err != nil {
			t.Fatal(err)
		}
		got, err := recoverOne(mirror(tx), 1)
		if !errors.Is(err, c.err) || err == nil && got != want {
			t.Errorf("%s: got %s, %v; want %s, %v", c.name, got, err, want, c.err)
		}
	}
}

// Envelopes that no block can contain give the sentinel that fits.
func TestRecoverRefuses(t *testing.T) {
	legacy := func(v, r, s *big.Int) []byte {
		b, err := rlp.EncodeToBytes(&types.LegacyTx{GasPrice: new(big.Int), Value: new(big.Int), V: v, R: r, S: s})
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	one := big.NewInt(1)
	n := crypto.S256().Params().N
	for _, c := range []struct {
		name     string
		envelope []byte
		want     error
	}{
		{"empty", nil, ErrType},
		{"type 0", []byte{0, 0xc0}, ErrType},
		{"type 5", []byte{5, 0xc0}, ErrType},
		{"string", []byte{0x80}, ErrType},
		{"v 0", legacy(new(big.Int), one, one), ErrSignature},
		{"v 34", legacy(big.NewInt(34), one, one), ErrSignature},
		{"v of another chain", legacy(big.NewInt(39), one, one), ErrChainID},
		{"v of chain 0", legacy(big.NewInt(35), one, one), ErrChainID},
		{"wide v", legacy(new(big.Int).Lsh(one, 200), one, one), ErrChainID},
		{"r 0", legacy(big.NewInt(27), new(big.Int), one), ErrSignature},
		{"s 0", legacy(big.NewInt(27), one, new(big.Int)), ErrSignature},
		{"r of the order", legacy(big.NewInt(27), n, one), ErrSignature},
		{"s of the order", legacy(big.NewInt(27), one, n), ErrSignature},
		{"r off the curve", legacy(big.NewInt(27), big.NewInt(5), one), ErrSignature},
	} {
		if got, err := recoverOne(c.envelope, 1); !errors.Is(err, c.want) || got != (common.Address{}) {
			t.Errorf("%s: got %s, %v; want %v", c.name, got, err, c.want)
		}
	}
	for _, envelope := range [][]byte{{0xc0}, {0xc1}, {1}, {2, 0xc0}, {2, 0x80}, {3, 0xf8, 0xff}} {
		if got, err := recoverOne(envelope, 1); err == nil {
			t.Errorf("%x: got %s, want an error", envelope, got)
		}
	}
}

func FuzzRecover(f *testing.F) {
	key, err := crypto.ToECDSA(crypto.Keccak256([]byte("key")))
	if err != nil {
		f.Fatal(err)
	}
	signer := types.LatestSignerForChainID(big.NewInt(1))
	for _, data := range []types.TxData{
		&types.LegacyTx{GasPrice: big.NewInt(1), Value: big.NewInt(1)},
		&types.AccessListTx{ChainID: big.NewInt(1), GasPrice: big.NewInt(1), Value: big.NewInt(1)},
		&types.DynamicFeeTx{ChainID: big.NewInt(1), GasTipCap: big.NewInt(1), GasFeeCap: big.NewInt(1), Value: big.NewInt(1)},
		&types.BlobTx{ChainID: uint256.NewInt(1), BlobHashes: make([]common.Hash, 1)},
		&types.SetCodeTx{ChainID: uint256.NewInt(1), AuthList: make([]types.SetCodeAuthorization, 1)},
	} {
		tx, err := types.SignNewTx(key, signer, data)
		if err != nil {
			f.Fatal(err)
		}
		envelope, err := tx.MarshalBinary()
		if err != nil {
			f.Fatal(err)
		}
		f.Add(envelope)
	}
	f.Add([]byte{0xc0})
	f.Fuzz(func(t *testing.T, envelope []byte) { compare(t, envelope, 1) })
}

// recoverOne gives the sender of one transaction.
func recoverOne(envelope []byte, chainID uint64) (common.Address, error) {
	return New(chainID).Recover(envelope)
}
