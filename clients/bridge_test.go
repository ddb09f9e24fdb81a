package clients

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/forkid"
	"github.com/google/go-cmp/cmp"

	"github.com/leani-go/leani/clients/harness"
)

// TestBridge is what an application needs that reads a node through viem or ethers and has nothing else: the head, full
// blocks, receipts of blocks and of transactions, new heads, and the chain's rules. web3 4 offers neither the receipts of a
// block nor the rules.
//
// ACC-010
func TestBridge(t *testing.T) {
	c := harness.Chainlab(t)
	n := harness.Start(c, harness.Options{First: recent, Filled: filled})
	each(t, n, []string{"viem", "ethers"}, func(t *testing.T, s *harness.Session) {
		b := c.Block(older)
		receipts := []any{}
		for i := range b.Receipts {
			receipts = append(receipts, wantReceipt(b, i))
		}
		say(t, s, "block", object{"number": older, "full": true}, wantBlock(b, true))
		say(t, s, "receipts", object{"block": b.Hash()}, receipts)
		say(t, s, "receipts", object{"block": hexutil.EncodeUint64(older)}, receipts)
		say(t, s, "receipt", object{"hash": b.Transactions()[0].Hash()}, receipts[0])

		var config struct {
			Current struct {
				ChainID      string
				ForkID       string
				BlobSchedule struct{ BaseFeeUpdateFraction, Max, Target string }
			}
		}
		s.Ask("config", nil, &config)
		id := forkid.NewID(c.Config, c.Block(0).Block, older, b.Time())
		current, blobs := config.Current, c.Config.BlobConfig(c.Config.LatestFork(b.Time()))
		got := []string{current.ChainID, current.ForkID, current.BlobSchedule.BaseFeeUpdateFraction, current.BlobSchedule.Max, current.BlobSchedule.Target}
		want := []string{"0x67932", data(id.Hash[:]), decimal(blobs.UpdateFraction), decimal(blobs.Max), decimal(blobs.Target)}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("config (- want, + got):\n%s", cmp.Diff(want, got))
		}

		if strings.HasSuffix(t.Name(), "http") {
			return // new heads are told over WebSocket
		}
		f := follower{script: s.Name(), transport: "ws", blocks: everyBlock, checks: strings.HasPrefix(s.Name(), "ethers")}
		newest := c.Block(filled - 1)
		f.start(t, s, busiest([]*harness.Block{newest}), newest)
		next := c.Fork(newest, c.Block(filled), nil)
		n.ApplyBranch(next)
		f.tell(next)
		f.await([]*harness.Block{next})
		n.Undo(newest) // for the next client
	})
}

// TestWait lets clients wait for a transaction that the node does not know yet. With all of history the node knows that there
// is none, and they wait. Without, it cannot know; ethers waits all the same, viem ends with the error.
func TestWait(t *testing.T) {
	for _, w := range []struct {
		script string
		first  uint64
		waits  bool
	}{{"viem", 0, true}, {"ethers", 0, true}, {"viem", recent, false}} {
		c := harness.Chainlab(t)
		n := harness.Start(c, harness.Options{First: w.first, Filled: filled})
		s := client(t, w.script, "http", n)
		const found = filled + 2
		b := c.Block(found)
		s.Tell("wait", object{"hash": b.Transactions()[0].Hash()})
		s.Expect("waiting", nil)
		n.Apply(c.Span(filled, found-1)...)
		if !w.waits {
			var got object
			if s.Expect("wait", &got); !reflect.DeepEqual(got, object{"error": unavailable(w.script, "transaction_not_retained")}) {
				t.Errorf("viem without all of history: %v", got)
			}
			s.End()
			continue
		}
		for next := uint64(found); ; next++ {
			n.Apply(c.Block(next))
			if s.Waits(500 * time.Millisecond) { // a client that asks with every block may have missed this one
				break
			}
		}
		var got json.RawMessage
		s.Expect("wait", &got)
		compare(t, w.script+" waits", got, wantReceipt(b, 0))
		s.End()
	}
}
