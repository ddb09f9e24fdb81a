package chainfixture

import "testing"

// The fixtures load and have the sizes that their descriptions give.
func TestFixtures(t *testing.T) {
	for _, c := range []struct {
		name                                  string
		blocks                                []*Block
		want, bodies, complete, receipts, rpc int
	}{
		{"real", RealBlocks(t), 186, 181, 152, 69, 56},
		{"conformance", ConformanceChain(t), 55, 55, 55, 55, 55},
	} {
		var bodies, complete, receipts, rpc, transactions int
		for _, b := range c.blocks {
			count := func(n *int, is bool) {
				if is {
					*n++
				}
			}
			count(&bodies, b.HasBody)
			count(&complete, b.Complete)
			count(&receipts, b.HasReceipts)
			count(&rpc, b.Answer != nil)
			transactions += len(b.Transactions)
			if b.Answer != nil && len(b.Senders) != len(b.Transactions) {
				t.Errorf("%s block %d: got %d senders for %d transactions", c.name, b.Number, len(b.Senders), len(b.Transactions))
			}
			if b.HasReceipts && b.HasBody && len(b.Receipts) != len(b.Transactions) {
				t.Errorf("%s block %d: got %d receipts for %d transactions", c.name, b.Number, len(b.Receipts), len(b.Transactions))
			}
		}
		if len(c.blocks) != c.want || bodies != c.bodies || complete != c.complete || receipts != c.receipts || rpc != c.rpc {
			t.Errorf("%s: got %d blocks, %d bodies, %d complete, %d with receipts, %d with answers",
				c.name, len(c.blocks), bodies, complete, receipts, rpc)
		}
		t.Logf("%s: %d transactions", c.name, transactions)
	}
}
