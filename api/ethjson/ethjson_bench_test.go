package ethjson

import (
	"math/rand/v2"
	"testing"

	"github.com/leani-go/leani/chain"
	"github.com/leani-go/leani/internal/chainfixture"
)

// fullBlock is a real block of 179 transactions and 398 logs whose receipts are 470 KB of
// JSON, about those of an average lab block.
func fullBlock(b *testing.B) *chainfixture.Block {
	b.Helper()
	for _, block := range realBlocks(b).blocks {
		if block.Number == 17_686_110 {
			return block
		}
	}
	b.Fatal("block 17686110 is not among the fixtures")
	return nil
}

// What eth_getBlockByNumber costs beyond reading the block.
func BenchmarkAppendBlock(b *testing.B) {
	block := fullBlock(b)
	run(b, func(e *Encoder, dst []byte) ([]byte, error) { return e.AppendBlock(dst, &block.Block, true) })
}

// What eth_getBlockReceipts costs beyond reading the block. "cold" clears what the Encoder
// remembers about blooms before every block, "warm" repeats one block.
func BenchmarkAppendReceipts(b *testing.B) {
	block := fullBlock(b)
	b.Run("cold", func(b *testing.B) {
		run(b, func(e *Encoder, dst []byte) ([]byte, error) {
			e.memo = nil
			return e.AppendReceipts(dst, &block.Block)
		})
	})
	b.Run("warm", func(b *testing.B) {
		run(b, func(e *Encoder, dst []byte) ([]byte, error) { return e.AppendReceipts(dst, &block.Block) })
	})
}

// What a result of eth_getLogs costs beyond finding it: in chain order, and on rows scattered
// over many blocks, where nothing can be taken over from the log before.
func BenchmarkAppendLog(b *testing.B) {
	var logs []chain.FoundLog
	for _, block := range realBlocks(b).blocks {
		logs = append(logs, foundLogs(&block.Block)...)
	}
	scattered := make([]chain.FoundLog, len(logs))
	for i, at := range rand.New(rand.NewPCG(1, 2)).Perm(len(logs)) {
		scattered[i] = logs[at]
	}
	for _, c := range []struct {
		name string
		logs []chain.FoundLog
	}{{"order", logs}, {"scattered", scattered}} {
		b.Run(c.name, func(b *testing.B) {
			e := NewEncoder(chain.Mainnet())
			dst := make([]byte, 0, 1<<20)
			b.ReportAllocs()
			bytes := 0
			i := 0
			for b.Loop() {
				if len(dst) > 1<<19 {
					dst = dst[:0]
				}
				n := len(dst)
				dst = e.AppendLog(dst, &c.logs[i])
				bytes += len(dst) - n
				if i++; i == len(c.logs) {
					i = 0
				}
			}
			b.SetBytes(int64(bytes / b.N))
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "logs/s")
		})
	}
}

func run(b *testing.B, encode func(*Encoder, []byte) ([]byte, error)) {
	e := NewEncoder(chain.Mainnet())
	dst, err := encode(e, nil)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	b.SetBytes(int64(len(dst)))
	for b.Loop() {
		if dst, err = encode(e, dst[:0]); err != nil {
			b.Fatal(err)
		}
	}
}
