package clients

import (
	"encoding/json"
	"testing"

	"github.com/leani-go/leani/clients/harness"
)

// TestFilters polls filters with viem: changes, a reorganization, a filter that is gone, and a watcher that installs
// its filter anew.
func TestFilters(t *testing.T) {
	c := harness.Chainlab(t)
	n := harness.Start(c, harness.Options{First: recent, Filled: filled})
	token := busiest(c.Span(older, newer))
	s := client(t, "viem", "http", n)
	same(t, s, "filter", object{"name": "blocks"}, nil)
	same(t, s, "filter", object{"name": "logs", "address": token}, nil)
	changes := func(removed, added []*harness.Block) {
		t.Helper()
		hashes, logs := []any{}, []any{}
		for _, b := range added {
			hashes = append(hashes, low(b.Hash()))
		}
		for i, blocks := range [][]*harness.Block{removed, added} {
			for _, b := range blocks {
				for _, l := range b.Logs() {
					if l.Address == token {
						log := wantLog(b, l)
						log["removed"] = i == 0
						logs = append(logs, log)
					}
				}
			}
		}
		same(t, s, "poll", object{"name": "blocks"}, hashes)
		var got json.RawMessage
		s.Ask("poll", object{"name": "logs"}, &got)
		compare(t, "poll logs", got, logs)
	}
	changes(nil, nil)
	blocks := c.Span(filled, filled+1)
	n.Apply(blocks...)
	changes(nil, blocks)
	fork := c.Fork(blocks[0], blocks[1], changed(token, filled+1))
	n.Apply(fork)
	changes(blocks[1:], []*harness.Block{fork})
	for _, name := range []string{"blocks", "logs"} {
		same(t, s, "forget", object{"name": name}, object{"uninstalled": true, "after": failure("viem", "-32000", "filter not found", nil)})
	}

	f := follower{script: "viem", transport: "http", blocks: risingBlocks, first: true}
	f.start(t, s, token, fork)
	for f.seen < len(f.told) {
		f.next()
	}
	s.Tell("lose", nil)
	lost := false
	for name, value := s.Next(); name != "lose"; name, value = s.Next() {
		var said object
		if err := json.Unmarshal(value, &said); err == nil && name == "error" && said["code"] == "-32000" {
			lost = true
			continue
		}
		t.Fatalf("%s %s", name, value)
	}
	if !lost {
		t.Error("viem does not say that its filter was lost")
	}
	next := c.Fork(fork, c.Block(filled+2), changed(token, filled+2))
	n.Apply(next)
	f.tell(next)
	f.await([]*harness.Block{next})
	s.End()
}
