package chainfixture

import (
	"archive/tar"
	"bufio"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"strconv"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/rlp"

	"github.com/leani-go/leani/chain"
	"github.com/leani-go/leani/internal/shareddata"
)

// The blocks of the collection that are not Mainnet's, by number: some of Ropsten, two of a
// test network without transactions.
var foreignChains = map[uint64]uint64{
	10989: 3, 10991: 3, 10992: 3, 239782: 3, 363366: 3, 468179: 3, 468194: 3,
	4156: 0, 12691: 0,
}

// RealBlocks loads the collection of real blocks, nearly all of Mainnet.
func RealBlocks(tb testing.TB) []*Block {
	tb.Helper()
	return realBlocks(tb, func(uint64, bool) bool { return true })
}

// AnsweredBlocks loads the Mainnet blocks of the collection that go-ethereum's answers are
// known for, without taking the time to read the others.
func AnsweredBlocks(tb testing.TB) []*Block {
	tb.Helper()
	return realBlocks(tb, func(_ uint64, answered bool) bool { return answered })
}

// realBlocks loads the blocks that are wanted by their number and whether there are answers.
func realBlocks(tb testing.TB, want func(number uint64, answered bool) bool) []*Block {
	tb.Helper()
	answers := realAnswers(tb)
	lines := bufio.NewScanner(openGzip(tb, shareddata.Path(tb, "real-blocks", "blocks.jsonl.gz")))
	lines.Buffer(nil, 256<<20)
	var blocks []*Block
	for lines.Scan() {
		// The rows are long and start with the number.
		var number uint64
		start := lines.Bytes()[:min(40, len(lines.Bytes()))]
		if _, err := fmt.Sscanf(string(start), `{"number":%d,`, &number); err != nil {
			tb.Fatalf("real blocks: row %d: %v", len(blocks), err)
		}
		foreign, isForeign := foreignChains[number]
		a, answered := answers[number]
		answered = answered && !isForeign
		if !want(number, answered) {
			continue
		}
		var row struct {
			BodyComplete                        bool
			HeaderRLP, BodyRLP, SlimReceiptsRLP hexutil.Bytes
		}
		if err := json.Unmarshal(lines.Bytes(), &row); err != nil {
			tb.Fatalf("real block %d: %v", number, err)
		}
		b := &Block{ChainID: chain.MainnetChainID, HasBody: row.BodyRLP != nil, Complete: row.BodyComplete}
		if isForeign {
			b.ChainID = foreign
		}
		b.setHeader(tb, row.HeaderRLP)
		if row.BodyRLP != nil {
			b.setBody(tb, row.BodyRLP)
		}
		if row.SlimReceiptsRLP != nil {
			b.setSlimReceipts(tb, row.SlimReceiptsRLP)
		}
		if answered {
			b.setAnswer(tb, a.Block, a.Receipts)
		}
		blocks = append(blocks, b)
	}
	if err := lines.Err(); err != nil {
		tb.Fatalf("real blocks: %v", err)
	}
	return blocks
}

func (b *Block) setBody(tb testing.TB, encoded []byte) {
	tb.Helper()
	var body []rlp.RawValue
	decodeRLP(tb, encoded, &body)
	var transactions []rlp.RawValue
	decodeRLP(tb, body[0], &transactions)
	for _, t := range transactions {
		b.addTransaction(tb, t)
	}
	b.Ommers = body[1]
	if len(body) > 2 {
		b.Withdrawals = body[2]
	}
}

// setSlimReceipts takes over rlp([[type, status or post-state, cumulative gas, logs], …]).
func (b *Block) setSlimReceipts(tb testing.TB, encoded []byte) {
	tb.Helper()
	var receipts []struct {
		Type              uint8
		StatusOrPostState []byte
		CumulativeGasUsed uint64
		Logs              []*types.Log
	}
	decodeRLP(tb, encoded, &receipts)
	b.HasReceipts = true
	for _, r := range receipts {
		receipt := chain.Receipt{Type: r.Type, CumulativeGasUsed: r.CumulativeGasUsed}
		switch {
		case len(r.StatusOrPostState) == common.HashLength:
			receipt.PostState = r.StatusOrPostState
		case len(r.StatusOrPostState) == 1:
			receipt.Status = r.StatusOrPostState[0]
		}
		b.addReceipt(receipt, r.Logs)
	}
}

type answer struct{ Block, Receipts json.RawMessage }

// realAnswers reads rpc/N.json of the archive, by N.
func realAnswers(tb testing.TB) map[uint64]answer {
	tb.Helper()
	archive := tar.NewReader(openGzip(tb, shareddata.Path(tb, "real-blocks", "rpc.tar.gz")))
	answers := make(map[uint64]answer)
	for {
		entry, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return answers
		}
		if err != nil {
			tb.Fatalf("real answers: %v", err)
		}
		number, err := strconv.ParseUint(strings.TrimSuffix(path.Base(entry.Name), ".json"), 10, 64)
		if err != nil {
			continue // the folder itself
		}
		var a answer
		if err := json.NewDecoder(archive).Decode(&a); err != nil {
			tb.Fatalf("real answer %s: %v", entry.Name, err)
		}
		answers[number] = a
	}
}

// openGzip opens a compressed file for the length of the test.
func openGzip(tb testing.TB, name string) io.Reader {
	tb.Helper()
	file, err := os.Open(name)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { file.Close() })
	r, err := gzip.NewReader(file)
	if err != nil {
		tb.Fatalf("%s: %v", name, err)
	}
	return r
}
