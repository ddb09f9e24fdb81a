package ingest

import (
	"encoding/binary"
	"math/big"
	"math/rand/v2"
	"sync"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/rlp"
	"github.com/ethereum/go-ethereum/trie"

	"github.com/leani-go/leani/chain"
)

// testBlocks is the length of the made-up chain of the tests.
const testBlocks = 200

// testChain is a chain whose blocks verify, made with go-ethereum: up to three transactions a
// block, each with up to three logs. It must not be changed.
var testChain = sync.OnceValue(func() []chain.Block {
	random := rand.New(rand.NewPCG(1, 2))
	blocks := make([]chain.Block, testBlocks)
	parent := common.Hash{}
	for n := range blocks {
		blocks[n] = makeBlock(uint64(n), parent, random)
		parent = blocks[n].Hash
	}
	return blocks
})

func makeBlock(number uint64, parent common.Hash, random *rand.Rand) chain.Block {
	var (
		b        chain.Block
		body     types.Body
		receipts types.Receipts
		gas      uint64
	)
	for i := range random.IntN(4) {
		data := make([]byte, random.IntN(2000))
		for j := 0; j+8 < len(data); j += 16 {
			binary.LittleEndian.PutUint64(data[j:], random.Uint64())
		}
		tx := types.NewTx(&types.LegacyTx{Nonce: number, Gas: uint64(i), Data: data, V: big.NewInt(27), R: big.NewInt(1), S: big.NewInt(1)})
		gas += 21_000
		r := &types.Receipt{Status: types.ReceiptStatusSuccessful, CumulativeGasUsed: gas}
		for range random.IntN(4) {
			l := &types.Log{Address: common.Address{byte(random.IntN(5))}, Data: make([]byte, random.IntN(100))}
			for range random.IntN(chain.MaximumTopics + 1) {
				l.Topics = append(l.Topics, common.Hash{byte(random.IntN(9))})
			}
			r.Logs = append(r.Logs, l)
			b.Logs = append(b.Logs, logOf(l))
		}
		r.Bloom = types.CreateBloom(r)
		body.Transactions, receipts = append(body.Transactions, tx), append(receipts, r)
		b.Transactions = append(b.Transactions, must(tx.MarshalBinary()))
		b.TransactionHashes = append(b.TransactionHashes, tx.Hash())
		b.Receipts = append(b.Receipts, chain.Receipt{Status: 1, CumulativeGasUsed: gas, LogsEnd: uint32(len(b.Logs))})
	}
	header := types.NewBlock(&types.Header{
		ParentHash: parent, Number: new(big.Int).SetUint64(number), Time: 12 * number, GasUsed: gas, Difficulty: big.NewInt(1),
	}, &body, receipts, trie.NewStackTrie(nil)).Header()
	b.BlockRef = chain.BlockRef{Number: number, Hash: header.Hash(), ParentHash: parent, Timestamp: header.Time}
	b.Header, b.Ommers, b.HasReceipts = must(rlp.EncodeToBytes(header)), []byte{0xc0}, true
	return b
}

// makeLargeBlock makes a block with one transaction of 10 to 60 KB that do not compress.
func makeLargeBlock(number uint64, parent common.Hash, random *rand.Rand) chain.Block {
	data := make([]byte, 10_000+random.IntN(50_000))
	for i := range data {
		data[i] = byte(random.Uint32())
	}
	tx := types.NewTx(&types.LegacyTx{Data: data, V: big.NewInt(27), R: big.NewInt(1), S: big.NewInt(1)})
	receipt := &types.Receipt{Status: types.ReceiptStatusSuccessful, CumulativeGasUsed: 21_000}
	header := types.NewBlock(&types.Header{
		ParentHash: parent, Number: new(big.Int).SetUint64(number), GasUsed: 21_000, Difficulty: big.NewInt(1),
	}, &types.Body{Transactions: types.Transactions{tx}}, types.Receipts{receipt}, trie.NewStackTrie(nil)).Header()
	return chain.Block{
		BlockRef:     chain.BlockRef{Number: number, Hash: header.Hash(), ParentHash: parent},
		Header:       must(rlp.EncodeToBytes(header)),
		Transactions: [][]byte{must(tx.MarshalBinary())},
		Ommers:       []byte{0xc0},
		HasReceipts:  true,
		Receipts:     []chain.Receipt{{Status: 1, CumulativeGasUsed: 21_000}},
	}
}

func logOf(l *types.Log) chain.Log {
	out := chain.Log{Address: &l.Address, Data: l.Data, NumTopics: uint8(len(l.Topics))}
	for i := range l.Topics {
		out.Topics[i] = &l.Topics[i]
	}
	return out
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}
