package rpc

import (
	"context"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/ethereum/go-ethereum/common"

	"github.com/leani-go/leani/chain"
)

// blockView shows one block.
type blockView struct {
	View
	block *chain.Block
}

func (v blockView) LoadBlock(_ context.Context, _ uint64, _ chain.Parts, dst *chain.Block) error {
	*dst = *v.block
	return nil
}

// TestMatch: whatever a filter asks for, and however many values it repeats, the logs are those that it matches, in order.
func TestMatch(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	value := func() (h common.Hash) { // few values, the lower ones more often
		h[31] = byte(random.IntN(1 + random.IntN(12)))
		return h
	}
	for range 500 {
		var b chain.Block
		for range random.IntN(60) {
			h := value()
			address := common.BytesToAddress(h[:])
			l := chain.Log{Address: &address, NumTopics: uint8(random.IntN(chain.MaximumTopics + 1))}
			for i := range l.NumTopics {
				topic := value()
				l.Topics[i] = &topic
			}
			b.Logs = append(b.Logs, l)
		}
		b.Receipts = []chain.Receipt{{LogsEnd: uint32(len(b.Logs))}}
		b.TransactionHashes = []common.Hash{{1}}
		s := &section{ref: b.BlockRef, view: blockView{block: &b}}
		if err := s.loadLogs(t.Context()); err != nil {
			t.Fatal(err)
		}
		for range 20 {
			var f chain.LogFilter
			for range random.IntN(4) {
				h := value()
				f.Addresses = append(f.Addresses, common.BytesToAddress(h[:]))
			}
			for range random.IntN(chain.MaximumTopics + 1) {
				var alternatives []common.Hash
				for range random.IntN(4) {
					alternatives = append(alternatives, value())
				}
				f.Topics = append(f.Topics, alternatives)
			}
			want := []uint32{7}
			for i := range b.Logs {
				if f.Match(&b.Logs[i]) {
					want = append(want, uint32(i))
				}
			}
			if got := s.match([]uint32{7}, &f); !slices.Equal(got, want) {
				t.Fatalf("filter %v: got %d want %d", f, got, want)
			}
		}
	}
}
