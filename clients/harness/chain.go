package harness

import (
	"compress/gzip"
	"encoding/json"
	"fmt"
	"math/big"
	"os"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/consensus/misc/eip4844"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/params"
	"github.com/ethereum/go-ethereum/rlp"
	"github.com/ethereum/go-ethereum/trie"

	"github.com/leani-go/leani/chain"
	"github.com/leani-go/leani/ingest/era"
	"github.com/leani-go/leani/internal/shareddata"
)

// ChainID is the id of the chain of Chainlab.
const ChainID = 424242

// TransferTopic is the first topic of the ERC-20 event Transfer(address,address,uint256).
var TransferTopic = common.HexToHash("0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef")

// Block is a block with what belongs to it. Blocks do not change once made.
type Block struct {
	*types.Block
	// Receipts are parallel to the transactions, with all derived fields.
	Receipts types.Receipts
}

// Logs are the logs of the block in order.
func (b *Block) Logs() []*types.Log {
	var logs []*types.Log
	for _, r := range b.Receipts {
		logs = append(logs, r.Logs...)
	}
	return logs
}

// Chain is the chain of the test data: 801 blocks, post-merge from its genesis, with Osaka's rules and transactions of all
// types. It is used by one goroutine.
type Chain struct {
	// Config is that of the chain's genesis.
	Config *params.ChainConfig

	tb      testing.TB
	file    *era.File
	genesis string
	path    string
	blocks  map[uint64]*Block
}

// Chainlab opens the chain. Where its data is absent the test is skipped.
func Chainlab(tb testing.TB) *Chain {
	tb.Helper()
	c := &Chain{
		tb:      tb,
		genesis: shareddata.Path(tb, "chainlab-800", "genesis.json.gz"),
		path:    shareddata.Path(tb, "chainlab-800", "chainlab-00000-3b8d3ead-noproofs.ere"),
		blocks:  make(map[uint64]*Block),
	}
	c.Config = readConfig(tb, c.genesis)
	f, err := era.OpenPath(c.path, era.Options{})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = f.Close() }) // only read
	c.file = f
	return c
}

// readConfig reads the chain's rules from a compressed genesis.
func readConfig(tb testing.TB, path string) *params.ChainConfig {
	tb.Helper()
	f, err := os.Open(path)
	if err != nil {
		tb.Fatal(err)
	}
	defer func() { _ = f.Close() }() // only read
	var genesis struct{ Config *params.ChainConfig }
	plain, err := gzip.NewReader(f)
	if err == nil {
		err = json.NewDecoder(plain).Decode(&genesis)
	}
	if err != nil || genesis.Config == nil {
		tb.Fatalf("read %s: no rules: %v", path, err)
	}
	return genesis.Config
}

// Blocks is the range of the chain's blocks.
func (c *Chain) Blocks() chain.Range { return c.file.Range() }

// Block gives a block of the chain, proved by go-ethereum's code to be what its header says.
func (c *Chain) Block(n uint64) *Block {
	c.tb.Helper()
	if b := c.blocks[n]; b != nil {
		return b
	}
	var raw chain.Block
	if err := c.file.ReadBlock(n, chain.PartsAll, new(era.Buffer), &raw); err != nil {
		c.tb.Fatal(err)
	}
	b, err := decode(c.Config, &raw)
	if err != nil {
		c.tb.Fatalf("block %d: %v", n, err)
	}
	c.blocks[n] = b
	return b
}

// Span gives the blocks from first to last.
func (c *Chain) Span(first, last uint64) []*Block {
	c.tb.Helper()
	var blocks []*Block
	for n := first; n <= last; n++ {
		blocks = append(blocks, c.Block(n))
	}
	return blocks
}

// decode makes a block of the bytes in an era file.
func decode(config *params.ChainConfig, raw *chain.Block) (*Block, error) {
	var header types.Header
	if err := rlp.DecodeBytes(raw.Header, &header); err != nil {
		return nil, fmt.Errorf("header: %w", err)
	}
	body := new(types.Body)
	for i, envelope := range raw.Transactions {
		tx := new(types.Transaction)
		if err := tx.UnmarshalBinary(envelope); err != nil {
			return nil, fmt.Errorf("transaction %d: %w", i, err)
		}
		body.Transactions = append(body.Transactions, tx)
	}
	if raw.Withdrawals != nil {
		body.Withdrawals = types.Withdrawals{}
		if err := rlp.DecodeBytes(raw.Withdrawals, &body.Withdrawals); err != nil {
			return nil, fmt.Errorf("withdrawals: %w", err)
		}
	}
	var receipts types.Receipts
	for i, r := range raw.Receipts {
		receipt := &types.Receipt{Type: r.Type, PostState: r.PostState, Status: uint64(r.Status), CumulativeGasUsed: r.CumulativeGasUsed}
		for _, l := range raw.ReceiptLogs(i) {
			log := &types.Log{Address: *l.Address, Topics: []common.Hash{}, Data: append([]byte{}, l.Data...)}
			for _, topic := range l.Topics[:l.NumTopics] {
				log.Topics = append(log.Topics, *topic)
			}
			receipt.Logs = append(receipt.Logs, log)
		}
		receipt.Bloom = types.CreateBloom(receipt)
		receipts = append(receipts, receipt)
	}
	return assemble(config, &header, body, receipts)
}

// assemble puts a block together, checks it against its header, and derives what receipts do not store.
func assemble(config *params.ChainConfig, header *types.Header, body *types.Body, receipts types.Receipts) (*Block, error) {
	block := types.NewBlockWithHeader(header).WithBody(*body)
	if got := types.DeriveSha(block.Transactions(), trie.NewStackTrie(nil)); got != header.TxHash {
		return nil, fmt.Errorf("transactions root %s, want %s", got, header.TxHash)
	}
	if got := types.DeriveSha(receipts, trie.NewStackTrie(nil)); got != header.ReceiptHash {
		return nil, fmt.Errorf("receipts root %s, want %s", got, header.ReceiptHash)
	}
	if header.WithdrawalsHash != nil {
		if got := types.DeriveSha(block.Withdrawals(), trie.NewStackTrie(nil)); got != *header.WithdrawalsHash {
			return nil, fmt.Errorf("withdrawals root %s, want %s", got, header.WithdrawalsHash)
		}
	}
	if got := types.MergeBloom(receipts); got != header.Bloom {
		return nil, fmt.Errorf("bloom %x, want %x", got, header.Bloom)
	}
	var blobGasPrice *big.Int
	if header.ExcessBlobGas != nil {
		blobGasPrice = eip4844.CalcBlobFee(config, header)
	}
	err := receipts.DeriveFields(config, block.Hash(), header.Number.Uint64(), header.Time, header.BaseFee, blobGasPrice, block.Transactions())
	if err != nil {
		return nil, fmt.Errorf("derive receipts: %w", err)
	}
	return &Block{Block: block, Receipts: receipts}, nil
}
