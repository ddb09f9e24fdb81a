package chainfixture

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/rlp"

	"github.com/leani-go/leani/chain"
)

// Block is a block of a fixture.
type Block struct {
	// Block holds what the fixture knows. Senders are set when Answer is.
	chain.Block
	// ChainID is the EIP-155 id of the block's chain.
	ChainID uint64
	// HasBody tells whether the transactions are known, and Complete whether ommers and
	// withdrawals are as well.
	HasBody, Complete bool
	// Answer and Receipts are go-ethereum's results of eth_getBlockByNumber with full
	// transactions and of eth_getBlockReceipts; nil where the fixture has none.
	Answer, AnswerReceipts json.RawMessage
}

// setHeader takes over a header in its RLP.
func (b *Block) setHeader(tb testing.TB, encoded []byte) {
	tb.Helper()
	var header types.Header
	decodeRLP(tb, encoded, &header)
	b.Header = encoded
	b.BlockRef = chain.BlockRef{
		Number:     header.Number.Uint64(),
		Hash:       crypto.Keccak256Hash(encoded),
		ParentHash: header.ParentHash,
		Timestamp:  header.Time,
	}
}

// addTransaction takes over a transaction as it stands in a block body: a list, or a string
// around an envelope.
func (b *Block) addTransaction(tb testing.TB, item rlp.RawValue) {
	tb.Helper()
	envelope := []byte(item)
	if kind, content, _, err := rlp.Split(item); err != nil {
		tb.Fatalf("block %d: transaction %d: %v", b.Number, len(b.Transactions), err)
	} else if kind == rlp.String {
		envelope = content
	}
	b.Transactions = append(b.Transactions, envelope)
	b.TransactionHashes = append(b.TransactionHashes, crypto.Keccak256Hash(envelope))
}

// addReceipt takes over a receipt's scalars and logs.
func (b *Block) addReceipt(receipt chain.Receipt, logs []*types.Log) {
	for _, l := range logs {
		log := chain.Log{Address: &l.Address, NumTopics: uint8(len(l.Topics)), Data: l.Data}
		for i := range l.Topics {
			log.Topics[i] = &l.Topics[i]
		}
		b.Logs = append(b.Logs, log)
	}
	receipt.LogsEnd = uint32(len(b.Logs))
	b.Receipts = append(b.Receipts, receipt)
	b.HasReceipts = true
}

// setAnswer takes over go-ethereum's answers, and the senders from them.
func (b *Block) setAnswer(tb testing.TB, block, receipts json.RawMessage) {
	tb.Helper()
	b.Answer, b.AnswerReceipts = block, receipts
	var body struct {
		Hash         common.Hash
		Transactions []struct{ From common.Address }
	}
	if err := json.Unmarshal(block, &body); err != nil {
		tb.Fatalf("block %d: answer: %v", b.Number, err)
	}
	if body.Hash != b.Hash {
		tb.Fatalf("block %d: answer is about %s, want %s", b.Number, body.Hash, b.Hash)
	}
	for _, transaction := range body.Transactions {
		b.Senders = append(b.Senders, transaction.From)
	}
}

func decodeRLP(tb testing.TB, encoded []byte, v any) {
	tb.Helper()
	if err := rlp.DecodeBytes(encoded, v); err != nil {
		tb.Fatalf("decode %T: %v", v, err)
	}
}

func encodeRLP(tb testing.TB, v any) []byte {
	tb.Helper()
	var b bytes.Buffer
	if err := rlp.Encode(&b, v); err != nil {
		tb.Fatalf("encode %T: %v", v, err)
	}
	return b.Bytes()
}
