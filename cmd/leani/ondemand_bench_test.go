package main

import (
	"fmt"
	"testing"

	"github.com/leani-go/leani/chain"
	"github.com/leani-go/leani/internal/progress"
)

// BenchmarkOnDemand compares answers about blocks that are fetched on demand from an era file, proved before, with those
// about retained ones, over HTTP.
func BenchmarkOnDemand(b *testing.B) {
	c := chainlab(b)
	for _, retained := range []bool{true, false} {
		l := newLab(b, c)
		l.onDemand()
		n := l.open(false)
		fill := c.blocks
		if !retained {
			fill.From = fill.To - 1
		}
		if err := n.fill(b.Context(), fill, func(progress.Count) {}); err != nil {
			b.Fatal(err)
		}
		asker, stop := serveWithin(b, n)
		name := map[bool]string{true: "retained", false: "on demand"}[retained]
		for _, q := range []struct {
			name string
			call [2]string
		}{
			{"block", [2]string{"eth_getBlockByNumber", `["0x190",true]`}},
			{"receipts", [2]string{"eth_getBlockReceipts", `["0x190"]`}},
			{"logs of 8 blocks", logsCall(400, 407, "")},
			{"no logs of 800 blocks", logsCall(0, 799, `,"address":"0x00000000000000000000000000000000000000ff"`)},
		} {
			body := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":%q,"params":%s}`, q.call[0], q.call[1])
			b.Run(q.name+"/"+name, func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					text, err := asker.post(body)
					if err != nil {
						b.Fatal(err)
					}
					b.SetBytes(int64(len(text)))
				}
			})
		}
		stop()
	}
}

// BenchmarkOnDemandProof measures the first answer out of a file: its digest is compared.
func BenchmarkOnDemandProof(b *testing.B) {
	c := chainlab(b)
	l := newLab(b, c)
	l.onDemand()
	n := l.open(false)
	if err := n.fill(b.Context(), chain.Range{From: 800, To: 801}, func(progress.Count) {}); err != nil {
		b.Fatal(err)
	}
	b.SetBytes(fileSize(b, c.files[0]))
	for b.Loop() {
		asker, stop := serveWithin(b, n)
		if r, err := asker.call("eth_getBlockByNumber", `["0x190",true]`); err != nil || r.Error != nil {
			b.Fatal(err, r.Error)
		}
		stop()
	}
}
