package bloom

import (
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
)

// BenchmarkMemo asks what a value costs that the table holds, and one that it does not.
func BenchmarkMemo(b *testing.B) {
	for _, c := range []struct {
		name   string
		values int
	}{{"known", 1 << 10}, {"unknown", 1 << 20}} {
		b.Run(c.name, func(b *testing.B) {
			topics := make([]common.Hash, c.values)
			for i := range topics {
				topics[i] = common.Hash{0: byte(i), 10: byte(i >> 8), 20: byte(i >> 16), 31: 1}
			}
			var m Memo
			var bloom types.Bloom
			i := 0
			b.ReportAllocs()
			for b.Loop() {
				m.AddTopic(&bloom, &topics[i&(len(topics)-1)])
				i++
			}
			m.Flush()
		})
	}
}
