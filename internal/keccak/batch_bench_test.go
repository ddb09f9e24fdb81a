package keccak

import (
	"fmt"
	"testing"

	"github.com/ethereum/go-ethereum/common"
)

// BenchmarkBatch asks what a message costs in a full batch: a topic (one permutation), a
// transaction (four) and a large contract creation.
func BenchmarkBatch(b *testing.B) {
	const messages = 256
	for _, k := range kernels() {
		for _, size := range []int{32, 500, 24_576} {
			b.Run(fmt.Sprintf("kernel=%d/bytes=%d", k, size), func(b *testing.B) {
				batch := Batch{kernel: k}
				data := make([]byte, size)
				sums := make([]common.Hash, messages)
				b.SetBytes(int64(size) * messages)
				b.ReportAllocs()
				for b.Loop() {
					for i := range sums {
						batch.Add(data, &sums[i])
					}
					batch.Flush()
				}
				permutations := float64(size/rate+1) * messages
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/permutations, "ns/permutation")
			})
		}
	}
}
