package hexenc

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// How fast the hex text of addresses, hashes, log data and call data is written.
func BenchmarkAppendBytes(b *testing.B) {
	for _, size := range []int{20, 32, 256, 4096} {
		b.Run(fmt.Sprintf("size=%d", size), func(b *testing.B) {
			random := rand.New(rand.NewPCG(1, 2))
			src := make([]byte, size)
			for i := range src {
				src[i] = byte(random.Uint32())
			}
			dst := make([]byte, 0, 2+2*size)
			b.ReportAllocs()
			b.SetBytes(int64(size))
			for b.Loop() {
				dst = AppendBytes(dst[:0], src)
			}
		})
	}
}

// How fast block numbers, indexes and gas amounts are written.
func BenchmarkAppendQuantity(b *testing.B) {
	dst := make([]byte, 0, 32)
	b.ReportAllocs()
	var v uint64
	for b.Loop() {
		v += 0x10d4f
		dst = AppendQuantity(dst[:0], v)
	}
}

// How fast filter values of a request are read.
func BenchmarkParseHash(b *testing.B) {
	text := []byte("0xd4e56740f876aef8c010b86a40d5f56745a118d0906a34e69aec8c0db1cb8fa3")
	b.ReportAllocs()
	b.SetBytes(32)
	for b.Loop() {
		if _, err := ParseHash(text); err != nil {
			b.Fatal(err)
		}
	}
}
