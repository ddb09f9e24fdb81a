package trieroot

import (
	"bytes"
	"fmt"
	"testing"
)

// BenchmarkRoot asks what the root of a Mainnet-like block's list costs, against go-ethereum.
func BenchmarkRoot(b *testing.B) {
	for _, size := range []int{110, 330} {
		values := make(list, 228)
		for i := range values {
			values[i] = bytes.Repeat([]byte{byte(i + 1)}, size)
		}
		b.Run(fmt.Sprintf("values=228/bytes=%d", size), func(b *testing.B) {
			var h Hasher
			b.ReportAllocs()
			b.SetBytes(int64(len(values) * size))
			for b.Loop() {
				h.Root(len(values), values.value)
			}
		})
		b.Run(fmt.Sprintf("go-ethereum/values=228/bytes=%d", size), func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(values) * size))
			for b.Loop() {
				values.want()
			}
		})
	}
}
