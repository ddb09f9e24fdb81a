package sender

import (
	"testing"

	"github.com/ethereum/go-ethereum/common"

	"github.com/leani-go/leani/internal/chainfixture"
)

// Senders a second on one core, over the transactions of real blocks.
func BenchmarkRecover(b *testing.B) {
	var envelopes [][]byte
	for _, block := range chainfixture.RealBlocks(b) {
		if block.ChainID == 1 && block.Answer != nil {
			envelopes = append(envelopes, block.Transactions...)
		}
	}
	r := New(1)
	var sink common.Address
	b.ReportAllocs()
	b.ResetTimer()
	for i := range b.N {
		var err error
		if sink, err = r.Recover(envelopes[i%len(envelopes)]); err != nil {
			b.Fatal(err)
		}
	}
	_ = sink
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "senders/s")
}
