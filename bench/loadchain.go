package bench

import (
	"encoding/binary"
	"fmt"
	"math/big"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/rlp"

	"github.com/leani-go/leani/chain"
	"github.com/leani-go/leani/internal/blockroot"
)

// ProvedBlocks makes blocks of a corpus that a node takes: headers with true roots and blooms, and transactions of which every
// sender can be recovered. Only state is missing. The n-th block that it makes, counted from 0, has the logs of block n of the
// corpus, wherever it stands in the chain. One goroutine.
type ProvedBlocks struct {
	corpus *Corpus
	hasher blockroot.Hasher
	made   uint64
}

// NewProvedBlocks begins with the logs of block 0.
func NewProvedBlocks(c *Corpus) *ProvedBlocks { return &ProvedBlocks{corpus: c} }

// signatureR is half of a signature that belongs to some key whatever is signed: the first coordinate of the curve's
// generator (SEC 2, section 2.4.1).
var signatureR, _ = new(big.Int).SetString("79be667ef9dcbbac55a06295ce870b07029bfcdb2dce28d959f2815b16f81798", 16)

// After makes a block on top of another one, block 0 without one, in memory of its own.
func (p *ProvedBlocks) After(parent *chain.BlockRef) (*chain.Block, error) {
	number, above := uint64(0), common.Hash{}
	if parent != nil {
		number, above = parent.Number+1, parent.Hash
	}
	made := new(corpusBlock)
	if err := p.corpus.block(p.made, above, made); err != nil {
		return nil, err
	}
	b := &made.Block
	for i := range b.Transactions {
		envelope, err := p.transaction(uint64(i), b.Transactions[i])
		if err != nil {
			return nil, fmt.Errorf("transaction %d of block %d: %w", i, number, err)
		}
		b.Transactions[i] = envelope
	}
	p.made++

	var h types.Header
	if err := rlp.DecodeBytes(b.Header, &h); err != nil {
		return nil, fmt.Errorf("header of block %d: %w", number, err)
	}
	h.Number, h.Time, h.GasUsed = new(big.Int).SetUint64(number), 1_700_000_000+12*number, 0
	h.TxHash = p.hasher.TransactionsRoot(b.Transactions, b.TransactionHashes)
	h.ReceiptHash = p.hasher.ReceiptsRoot(b, &h.Bloom)
	if n := len(b.Receipts); n > 0 {
		h.GasUsed = b.Receipts[n-1].CumulativeGasUsed
	}
	text, err := rlp.EncodeToBytes(&h)
	if err != nil {
		return nil, fmt.Errorf("header of block %d: %w", number, err)
	}
	b.Header, b.BlockRef = text, chain.BlockRef{Number: number, Hash: crypto.Keccak256Hash(text), ParentHash: above, Timestamp: h.Time}
	return b, nil
}

// transaction makes a transaction that carries some bytes.
func (p *ProvedBlocks) transaction(index uint64, data []byte) ([]byte, error) {
	var s [32]byte
	for k := range uint64(4) {
		binary.BigEndian.PutUint64(s[8*k:], scramble(p.corpus.Seed^p.made<<32^index<<8^k))
	}
	s[0] &= 0x3f // signatures have the smaller one of two (EIP-2)
	to := p.corpus.fixed[index%uint64(len(p.corpus.fixed))]
	return types.NewTx(&types.DynamicFeeTx{
		ChainID: big.NewInt(CorpusChainID), Nonce: p.made, GasTipCap: big.NewInt(1_000_000_000), GasFeeCap: big.NewInt(30_000_000_000),
		Gas: 200_000, To: &to, Value: new(big.Int), Data: data, V: new(big.Int), R: signatureR, S: new(big.Int).SetBytes(s[:]),
	}).MarshalBinary()
}

// ProvedQueries are Queries for a chain of proved blocks, of which hash gives the hashes.
func (c *Corpus) ProvedQueries(hash func(number uint64) common.Hash) ([]Query, error) {
	list, err := c.Queries()
	if err != nil {
		return nil, err
	}
	numbers := make([]uint64, c.Blocks)
	for i := range numbers {
		numbers[i] = uint64(i)
	}
	hashes, err := c.Hashes(numbers)
	if err != nil {
		return nil, err
	}
	known := make(map[common.Hash]uint64, len(hashes))
	for n, h := range hashes {
		known[h] = uint64(n)
	}
	for i := range list {
		q := &list[i]
		if q.BlockHash == nil {
			continue
		}
		number := known[*q.BlockHash]
		h := hash(number)
		proved, err := newLogQuery(q.Class, q.Filter, chain.Range{From: number, To: number + 1}, &h)
		if err != nil {
			return nil, err
		}
		proved.ID, proved.Expect = q.ID, q.Expect
		proved.Blocks = chain.Range{From: number, To: number + 1}
		*q = proved
	}
	return list, nil
}
