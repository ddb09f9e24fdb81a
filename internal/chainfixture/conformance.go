package chainfixture

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"testing"

	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/rlp"

	"github.com/leani-go/leani/chain"
	"github.com/leani-go/leani/internal/shareddata"
)

// conformanceChainID is the chain id in the genesis file of the conformance chain.
const conformanceChainID = 3503995874084926

// ConformanceChain loads the chain of the execution-apis suite, block 0 included. Its receipts
// are go-ethereum's answers read back.
func ConformanceChain(tb testing.TB) []*Block {
	tb.Helper()
	var answers []answer
	text := openGzip(tb, shareddata.Path(tb, "execution-apis", "regenerated", "chain_rpc.json.gz"))
	if err := json.NewDecoder(text).Decode(&answers); err != nil {
		tb.Fatalf("conformance answers: %v", err)
	}
	content, err := os.ReadFile(shareddata.Path(tb, "execution-apis", "tests", "chain.rlp"))
	if err != nil {
		tb.Fatal(err)
	}
	blocks := []*Block{conformanceGenesis(tb, answers[0].Block)}
	stream := rlp.NewStream(bytes.NewReader(content), 0)
	for {
		var parts []rlp.RawValue
		if err := stream.Decode(&parts); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			tb.Fatalf("conformance chain: block %d: %v", len(blocks), err)
		}
		b := new(Block)
		b.setHeader(tb, parts[0])
		b.setBody(tb, encodeRLP(tb, parts[1:]))
		blocks = append(blocks, b)
	}
	for i, b := range blocks {
		b.ChainID, b.HasBody, b.Complete = conformanceChainID, true, true
		b.setAnswer(tb, answers[i].Block, answers[i].Receipts)
		b.setAnsweredReceipts(tb)
	}
	return blocks
}

// conformanceGenesis makes the block, which the chain file leaves out, from the answer.
func conformanceGenesis(tb testing.TB, answer json.RawMessage) *Block {
	tb.Helper()
	var header types.Header
	if err := json.Unmarshal(answer, &header); err != nil {
		tb.Fatalf("conformance genesis: %v", err)
	}
	b := &Block{Block: chain.Block{Ommers: []byte{rlp.EmptyList[0]}}}
	b.setHeader(tb, encodeRLP(tb, &header))
	return b
}

func (b *Block) setAnsweredReceipts(tb testing.TB) {
	tb.Helper()
	var receipts []*types.Receipt
	if err := json.Unmarshal(b.AnswerReceipts, &receipts); err != nil {
		tb.Fatalf("block %d: receipts: %v", b.Number, err)
	}
	b.HasReceipts = true
	for _, r := range receipts {
		b.addReceipt(chain.Receipt{
			Type: r.Type, Status: byte(r.Status), PostState: r.PostState, CumulativeGasUsed: r.CumulativeGasUsed,
		}, r.Logs)
	}
}
