package rpc

import (
	"context"
	"fmt"
	"testing"
)

// How long a fee history takes besides reading the blocks: the longest one of headers alone, and one
// with rewards as wallets ask for it.
func BenchmarkFeeHistory(b *testing.B) {
	store := newFakeStore(b, 1100)
	o := Options{Store: store, Network: testNetwork()}.withDefaults()
	s := newService(o)
	b.Cleanup(s.close)
	for name, params := range map[string]string{"headers-1024": `"0x400","latest"`, "rewards-10": `"0xa","latest",[10,50,90]`} {
		b.Run(name, func(b *testing.B) {
			x := new(exchange)
			b.ReportAllocs()
			for b.Loop() {
				x.open(s, context.Background())
				x.body = fmt.Appendf(x.body, `{"jsonrpc":"2.0","id":1,"method":"eth_feeHistory","params":[%s]}`, params)
				x.run()
				if len(x.out.buf) < 200 {
					b.Fatalf("%s", x.out.buf)
				}
				b.SetBytes(int64(len(x.out.buf)))
				x.release()
			}
		})
	}
}
