package segments

import (
	"bytes"
	"testing"

	"github.com/leani-go/leani/chain"
	"github.com/leani-go/leani/codec"
	"github.com/leani-go/leani/internal/chainmodel"
)

// One transaction loaded alone is what the whole block says of it, and its logs keep their indexes.
func TestLoadTransaction(t *testing.T) {
	m := chainmodel.New(77, 3)
	var blocks []*chain.Block
	for range 60 {
		blocks = append(blocks, m.Block())
	}
	raw, _ := buildPair(t, blocks, codec.None)
	d := openData(t, raw, NewCache(1<<20))
	var got chain.Block
	for _, b := range blocks {
		for i := range b.Transactions {
			if err := d.LoadTransaction(b.Number, uint32(i), chain.PartsAll, &got, nil); err != nil {
				t.Fatal(err)
			}
			if got.BlockRef != b.BlockRef || !bytes.Equal(got.Header, b.Header) || len(got.Transactions) != len(b.Transactions) || len(got.Logs) != len(b.Logs) ||
				!bytes.Equal(got.Transactions[i], b.Transactions[i]) || got.TransactionHashes[i] != b.TransactionHashes[i] {
				t.Fatalf("transaction %d of block %d differs", i, b.Number)
			}
			want := b.ReceiptLogs(i)
			if r, w := got.Receipts[i], b.Receipts[i]; r.CumulativeGasUsed != w.CumulativeGasUsed || r.Status != w.Status || r.LogsEnd != w.LogsEnd || len(got.ReceiptLogs(i)) != len(want) {
				t.Fatalf("receipt %d of block %d: got %+v want %+v", i, b.Number, r, w)
			}
			for k, l := range got.ReceiptLogs(i) {
				if *l.Address != *want[k].Address || l.NumTopics != want[k].NumTopics || !bytes.Equal(l.Data, want[k].Data) {
					t.Fatalf("log %d of transaction %d of block %d differs", k, i, b.Number)
				}
				for j := range int(l.NumTopics) {
					if *l.Topics[j] != *want[k].Topics[j] {
						t.Fatalf("topic %d of log %d of transaction %d of block %d differs", j, k, i, b.Number)
					}
				}
			}
		}
		if err := d.LoadTransaction(b.Number, uint32(len(b.Transactions)), chain.PartsAll, &got, nil); err == nil {
			t.Fatal("index beyond the last transaction accepted")
		}
	}
}
