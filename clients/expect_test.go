package clients

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/big"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/google/go-cmp/cmp"

	"github.com/leani-go/leani/clients/harness"
)

// What a client has to say, in the form in which scripts say it (lines.mjs): numbers in decimal, text in lower case.

type object = map[string]any

func decimal(n any) string { return fmt.Sprint(n) }

func low(s fmt.Stringer) string { return strings.ToLower(s.String()) }

func data(b []byte) string { return hexutil.Encode(b) }

// address of a pointer that may be nil.
func orNull[T fmt.Stringer](p *T) any {
	if p == nil {
		return nil
	}
	return low(*p)
}

func list[T, R any](from []T, to func(T) R) []any {
	out := []any{}
	for _, v := range from {
		out = append(out, to(v))
	}
	return out
}

func wantHeader(b *harness.Block) object {
	h := b.Header()
	return object{
		"number": decimal(h.Number), "hash": low(b.Hash()), "parentHash": low(h.ParentHash), "timestamp": decimal(h.Time),
		"gasUsed": decimal(h.GasUsed), "gasLimit": decimal(h.GasLimit), "baseFeePerGas": decimal(h.BaseFee), "miner": low(h.Coinbase),
		"extraData": data(h.Extra), "logsBloom": data(h.Bloom[:]), "stateRoot": low(h.Root), "transactionsRoot": low(h.TxHash),
		"receiptsRoot": low(h.ReceiptHash), "withdrawalsRoot": low(h.WithdrawalsHash), "parentBeaconBlockRoot": low(h.ParentBeaconRoot),
		"blobGasUsed": decimal(*h.BlobGasUsed), "excessBlobGas": decimal(*h.ExcessBlobGas), "sha3Uncles": low(h.UncleHash),
		"mixHash": low(h.MixDigest), "nonce": data(h.Nonce[:]), "difficulty": decimal(h.Difficulty),
	}
}

func wantBlock(b *harness.Block, full bool) object {
	o := wantHeader(b)
	o["size"] = decimal(b.Size())
	o["uncles"] = []any{}
	o["withdrawals"] = list(b.Withdrawals(), func(w *types.Withdrawal) object {
		return object{"index": decimal(w.Index), "validatorIndex": decimal(w.Validator), "address": low(w.Address), "amount": decimal(w.Amount)}
	})
	transactions := []any{}
	for i, tx := range b.Transactions() {
		if full {
			transactions = append(transactions, wantTransaction(b, i))
		} else {
			transactions = append(transactions, low(tx.Hash()))
		}
	}
	o["transactions"] = transactions
	return o
}

func wantTransaction(b *harness.Block, i int) object {
	tx := b.Transactions()[i]
	from, err := types.Sender(types.LatestSignerForChainID(big.NewInt(harness.ChainID)), tx)
	if err != nil {
		panic(err) // the block was proved
	}
	v, r, s := tx.RawSignatureValues()
	o := object{
		"hash": low(tx.Hash()), "blockHash": low(b.Hash()), "blockNumber": decimal(b.Number()), "transactionIndex": decimal(i),
		"from": low(from), "to": orNull(tx.To()), "value": decimal(tx.Value()), "gas": decimal(tx.Gas()),
		"gasPrice": decimal(b.Receipts[i].EffectiveGasPrice), "nonce": decimal(tx.Nonce()), "input": data(tx.Data()),
		"type": decimal(tx.Type()), "v": decimal(v), "r": quantity(r), "s": quantity(s),
	}
	if tx.Type() > types.LegacyTxType {
		o["chainId"], o["yParity"] = decimal(tx.ChainId()), decimal(v)
		o["accessList"] = list(tx.AccessList(), func(a types.AccessTuple) object {
			return object{"address": low(a.Address), "storageKeys": list(a.StorageKeys, func(k common.Hash) string { return low(k) })}
		})
	}
	if tx.Type() >= types.DynamicFeeTxType {
		o["maxFeePerGas"], o["maxPriorityFeePerGas"] = decimal(tx.GasFeeCap()), decimal(tx.GasTipCap())
	}
	switch tx.Type() {
	case types.BlobTxType:
		o["maxFeePerBlobGas"] = decimal(tx.BlobGasFeeCap())
		o["blobVersionedHashes"] = list(tx.BlobHashes(), func(h common.Hash) string { return low(h) })
	case types.SetCodeTxType:
		o["authorizationList"] = list(tx.SetCodeAuthorizations(), func(a types.SetCodeAuthorization) object {
			return object{"address": low(a.Address), "chainId": decimal(a.ChainID.Dec()), "nonce": decimal(a.Nonce),
				"r": quantity(a.R.ToBig()), "s": quantity(a.S.ToBig()), "yParity": decimal(a.V)}
		})
	}
	return o
}

// quantity is a number that clients leave as the node wrote it. Comparison ignores how many zeros it begins with: some
// clients fill it up.
func quantity(n *big.Int) string { return hexutil.EncodeBig(n) }

func wantLog(b *harness.Block, l *types.Log) object {
	return object{
		"address": low(l.Address), "topics": list(l.Topics, func(h common.Hash) string { return low(h) }), "data": data(l.Data),
		"blockNumber": decimal(b.Number()), "blockHash": low(b.Hash()), "blockTimestamp": decimal(b.Time()), "transactionHash": low(l.TxHash),
		"transactionIndex": decimal(l.TxIndex), "logIndex": decimal(l.Index), "removed": false,
	}
}

func wantReceipt(b *harness.Block, i int) object {
	r, tx := b.Receipts[i], wantTransaction(b, i)
	var contract any
	if r.ContractAddress != (common.Address{}) {
		contract = low(r.ContractAddress)
	}
	o := object{
		"transactionHash": tx["hash"], "transactionIndex": decimal(i), "blockHash": low(b.Hash()), "blockNumber": decimal(b.Number()),
		"from": tx["from"], "to": tx["to"], "contractAddress": contract, "cumulativeGasUsed": decimal(r.CumulativeGasUsed),
		"gasUsed": decimal(r.GasUsed), "effectiveGasPrice": decimal(r.EffectiveGasPrice), "logsBloom": data(r.Bloom[:]),
		"status": decimal(r.Status), "logs": list(r.Logs, func(l *types.Log) object { return wantLog(b, l) }),
	}
	if r.Type == types.BlobTxType {
		o["blobGasUsed"], o["blobGasPrice"] = decimal(r.BlobGasUsed), decimal(r.BlobGasPrice)
	}
	return o
}

// compare requires that what a client says is what it has to be. A client's objects need not have every member: the
// script picks those that the client offers, and says "absent" where one is missing.
func compare(t *testing.T, what string, got json.RawMessage, want any) {
	t.Helper()
	var value any
	if err := json.Unmarshal(got, &value); err != nil {
		t.Fatalf("%s: %v in %.500s", what, err, got)
	}
	if want = narrow(want, value); !reflect.DeepEqual(want, value) {
		t.Errorf("%s (- want, + got):\n%.3000s", what, cmp.Diff(want, value))
	}
}

// narrow leaves out of want the members of objects that got does not have, and takes over r and s of signatures where they
// are the same number.
func narrow(want, got any) any {
	switch w := want.(type) {
	case object:
		g, ok := got.(object)
		if !ok {
			return want
		}
		out := object{}
		for _, name := range slices.Sorted(maps.Keys(w)) {
			value, has := g[name]
			if !has {
				continue
			}
			if out[name] = narrow(w[name], value); name == "r" || name == "s" {
				if a, b := w[name].(string), fmt.Sprint(value); strings.TrimLeft(a, "0x") == strings.TrimLeft(b, "0x") {
					out[name] = value
				}
			}
		}
		return out
	case []any:
		g, ok := got.([]any)
		if !ok || len(g) != len(w) {
			return want
		}
		out := make([]any, len(w))
		for i := range w {
			out[i] = narrow(w[i], g[i])
		}
		return out
	}
	return want
}
