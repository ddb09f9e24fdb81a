package ethjson

import (
	"encoding/json"
	"math/big"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/holiman/uint256"

	"github.com/leani-go/leani/chain"
)

// reference is the object that go-ethereum makes of a mined transaction.
func reference(t testing.TB, tx *types.Transaction, b *chain.Block, index int, baseFee *big.Int) []byte {
	t.Helper()
	number := func(v *big.Int) *hexutil.Big { return (*hexutil.Big)(v) }
	v, r, s := tx.RawSignatureValues()
	m := map[string]any{
		"blockHash": b.Hash, "blockNumber": hexutil.Uint64(b.Number), "blockTimestamp": hexutil.Uint64(b.Timestamp),
		"transactionIndex": hexutil.Uint64(index), "hash": tx.Hash(), "from": b.Senders[index], "to": tx.To(),
		"type": hexutil.Uint64(tx.Type()), "nonce": hexutil.Uint64(tx.Nonce()), "gas": hexutil.Uint64(tx.Gas()),
		"gasPrice": number(tx.GasPrice()), "value": number(tx.Value()), "input": hexutil.Bytes(tx.Data()),
		"v": number(v), "r": number(r), "s": number(s),
	}
	if tx.Type() == types.LegacyTxType {
		if id := tx.ChainId(); id.Sign() != 0 {
			m["chainId"] = number(id)
		}
	} else {
		m["chainId"], m["accessList"], m["yParity"] = number(tx.ChainId()), tx.AccessList(), hexutil.Uint64(v.Sign())
	}
	if tx.Type() >= types.DynamicFeeTxType {
		m["maxFeePerGas"], m["maxPriorityFeePerGas"] = number(tx.GasFeeCap()), number(tx.GasTipCap())
		price := new(big.Int).Add(tx.GasTipCap(), baseFee)
		if price.Cmp(tx.GasFeeCap()) > 0 {
			price = tx.GasFeeCap()
		}
		m["gasPrice"] = number(price)
	}
	if tx.Type() == types.BlobTxType {
		m["maxFeePerBlobGas"] = number(tx.BlobGasFeeCap())
		if hashes := tx.BlobHashes(); len(hashes) > 0 {
			m["blobVersionedHashes"] = hashes
		}
	}
	if list := tx.SetCodeAuthorizations(); len(list) > 0 {
		m["authorizationList"] = list
	}
	text, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// seedEnvelopes have every type and every list filled, and some corners.
func seedEnvelopes(t testing.TB) [][]byte {
	to := &common.Address{5}
	one, wide := big.NewInt(1), new(big.Int).Sub(new(big.Int).Lsh(big.NewInt(1), 256), big.NewInt(1))
	list := types.AccessList{{Address: *to}, {Address: *to, StorageKeys: []common.Hash{{1}, {2}}}}
	all := uint256.MustFromBig(wide)
	data := []types.TxData{
		&types.LegacyTx{Nonce: 1 << 63, GasPrice: wide, Value: wide, Data: []byte("data"), V: wide, R: wide, S: wide},
		&types.AccessListTx{ChainID: one, To: to, GasPrice: one, Value: one, AccessList: list, V: one, R: one, S: one},
		&types.DynamicFeeTx{ChainID: one, GasTipCap: wide, GasFeeCap: wide, Value: one, AccessList: list, V: new(big.Int), R: one, S: one},
		&types.DynamicFeeTx{ChainID: one, GasTipCap: one, GasFeeCap: wide, Value: one, V: new(big.Int), R: one, S: one},
		&types.BlobTx{ChainID: uint256.NewInt(1), GasTipCap: all, GasFeeCap: all, Value: all, BlobFeeCap: all, AccessList: list, BlobHashes: []common.Hash{{1}, {2}}, V: all, R: all, S: all},
		&types.BlobTx{},
		&types.SetCodeTx{ChainID: all, To: *to, AccessList: list, AuthList: []types.SetCodeAuthorization{{}, {ChainID: *all, Address: *to, Nonce: 7, V: 255, R: *all, S: *all}}},
		&types.SetCodeTx{},
	}
	for _, v := range []int64{0, 26, 27, 28, 29, 34, 35, 36, 37, 38, 1 << 40} {
		data = append(data, &types.LegacyTx{To: to, GasPrice: one, Value: one, V: big.NewInt(v), R: one, S: one})
	}
	var envelopes [][]byte
	for _, d := range data {
		envelopes = append(envelopes, envelope(t, d))
	}
	return envelopes
}

// FuzzAppendTransaction gives any bytes as a transaction: what go-ethereum reads gives its
// object, everything else an error, in blocks, alone and in receipts. RPC-102, RPC-103
func FuzzAppendTransaction(f *testing.F) {
	for _, seed := range seedEnvelopes(f) {
		f.Add(seed)
	}
	f.Add([]byte{})
	f.Add([]byte{5, 0xc0})
	f.Add([]byte{0xc0})
	header := newHeader(cancunTime, new(uint64))
	encoder := NewEncoder(chain.Mainnet())
	f.Fuzz(func(t *testing.T, envelope []byte) {
		b := newBlock(t, header, envelope)
		got, err := encoder.AppendTransaction([]byte("kept"), b, 0)
		block, blockErr := encoder.AppendBlock(nil, b, true)
		receipts, receiptsErr := encoder.AppendReceipts(nil, b)
		if (err == nil) != (blockErr == nil) || (err == nil) != (receiptsErr == nil) {
			t.Fatalf("got errors %v, %v in the block, %v in the receipts", err, blockErr, receiptsErr)
		}
		if string(got[:4]) != "kept" || err != nil && len(got) != 4 || err != nil && len(block)+len(receipts) != 0 {
			t.Fatalf("the buffer changed: %.80q, error %v", got, err)
		}
		if err == nil && !(json.Valid(got[4:]) && json.Valid(block) && json.Valid(receipts)) {
			t.Fatalf("no JSON: %s, %s, %s", got[4:], block, receipts)
		}
		var tx types.Transaction
		if tx.UnmarshalBinary(envelope) != nil || tx.BlobTxSidecar() != nil {
			if err == nil {
				t.Fatalf("go-ethereum cannot read %x", envelope)
			}
			return
		}
		if err != nil {
			if !tooWide(&tx) {
				t.Fatalf("cannot read %x: %v", envelope, err)
			}
			return
		}
		sameJSON(t, "transaction", got[4:], reference(t, &tx, b, 0, header.BaseFee))
	})
}

// tooWide tells whether a number of the transaction takes more than 256 bits, which
// go-ethereum reads and the chain cannot contain.
func tooWide(tx *types.Transaction) bool {
	v, r, s := tx.RawSignatureValues()
	for _, n := range []*big.Int{v, r, s, tx.ChainId(), tx.Value(), tx.GasPrice(), tx.GasTipCap(), tx.GasFeeCap()} {
		if n.BitLen() > 256 {
			return true
		}
	}
	return false
}

// FuzzAppendBlock gives any bytes as header, ommers and withdrawals: JSON or an error.
func FuzzAppendBlock(f *testing.F) {
	header := newBlock(f, newHeader(cancunTime, new(uint64)))
	f.Add(header.Header, []byte{0xc0}, []byte{0xc0})
	f.Add(header.Header, append([]byte{0xc1}, 0xc0), []byte{0xd9, 0xd8, 1, 2, 0x94, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 5})
	f.Add([]byte{}, []byte{0xc1, 0x80}, []byte{0xc1, 0xc0})
	encoder := NewEncoder(chain.Mainnet())
	f.Fuzz(func(t *testing.T, header, ommers, withdrawals []byte) {
		b := newBlock(t, newHeader(cancunTime, new(uint64)))
		b.Header, b.Ommers, b.Withdrawals = header, ommers, withdrawals
		got, err := encoder.AppendBlock([]byte("kept"), b, true)
		if string(got[:4]) != "kept" || err != nil && len(got) != 4 || err == nil && !json.Valid(got[4:]) {
			t.Fatalf("got %q, %v", got, err)
		}
	})
}
