package subsquid

import (
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/google/go-cmp/cmp"

	"github.com/leani-go/leani/clients/harness"
)

func TestMain(m *testing.M) { os.Exit(harness.Main(m)) }

const (
	// filled is the number of blocks that are there when the processor starts.
	filled = 131
	// confirmations is how far below the head the processor takes blocks as final. It reads those in batches.
	confirmations = 20
	// maxLogs makes the ranges of ten blocks that the processor asks for too large, but no single block: it asks for the
	// logs of all addresses and picks those of its own.
	maxLogs = "1000"
)

// token has 33 transfers a block.
var token = common.HexToAddress("0x96aff19547e77db75829fd04a90bd71f9bd1f1ea")

// TestSubsquid lets a Subsquid processor follow a token at a node, over HTTP, where it polls, and over WebSocket, where it
// subscribes: history, blocks that arrive, a longer branch that replaces some of them, and a shorter one. At each
// stage its rows are exactly what the chain says.
//
// RPC-126 RPC-182
func TestSubsquid(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: left out with -short")
	}
	c := harness.Chainlab(t)
	harness.NodeModules(t, ".")
	for _, name := range []string{"http", "websocket"} {
		t.Run(name, func(t *testing.T) {
			n := harness.Start(c, harness.Options{Filled: filled, Settings: map[string]string{"max_log_results": maxLogs}})
			play(t, c, n, name == "websocket")
		})
	}
}

// play starts a processor and lets it follow what happens at a node.
func play(t *testing.T, c *harness.Chain, n *harness.Node, subscribes bool) {
	url := n.HTTP
	if subscribes {
		url = n.WebSocket
	}
	between, url := harness.NewProxy(t, url)
	p := processor{t, harness.Script(t, ".", "processor.mjs", "LEANI_RPC="+url, "LEANI_TOKEN="+strings.ToLower(token.Hex()),
		"LEANI_CONFIRMATIONS="+strconv.Itoa(confirmations))}
	p.Expect("ready", nil)
	canonical := c.Span(0, filled-1)
	if subscribes { // and hears nothing of the newest blocks before there is another
		p.Ask("subscribed", 1, nil)
		p.compare("history", canonical[:filled-confirmations], 0)
	} else {
		p.compare("history", canonical, 0)
	}

	// replaced makes blocks the end of the chain, and says how many were taken away for them.
	replaced := func(blocks []*harness.Block) int {
		first := blocks[0].NumberU64()
		gone := len(canonical) - int(first)
		canonical = append(canonical[:first:first], blocks...)
		return gone
	}
	arriving := c.Span(filled, 155)
	n.Apply(arriving...)
	undone := replaced(arriving)
	p.compare("live", canonical, undone)

	longer := c.Branch(canonical[143], 156, token, "longer")
	n.ApplyBranch(longer...)
	undone += replaced(longer)
	p.compare("longer branch", canonical, undone)
	n.Finalize(canonical[140])

	// The chain is shorter for a while. The processor looks at it again when it is not shorter any more.
	shorter := c.Branch(canonical[148], 158, token, "shorter")
	n.Apply(shorter...)
	undone += replaced(shorter)
	p.compare("shorter branch", canonical, undone)

	// The processor hears nothing of most of these.
	between.Cut()
	unheard := c.Branch(canonical[153], 160, token, "unheard")
	n.ApplyBranch(unheard[:5]...)
	between.Mend()
	if subscribes {
		p.Ask("subscribed", 2, nil)
	}
	n.Apply(unheard[5:]...)
	undone += replaced(unheard)
	p.compare("connected again", canonical, undone)

	// The branches become final.
	further := c.Branch(canonical[160], 190, token, "further")
	n.Apply(further...)
	undone += replaced(further)
	p.compare("end", canonical, undone)

	// Most of these are gone before the processor has asked for them. How many it sees is chance.
	hasty := c.Branch(canonical[180], 192, token, "hasty")
	n.Apply(hasty...)
	instead := c.Branch(hasty[2], 193, token, "instead")
	n.ApplyBranch(instead...)
	replaced(append(hasty[:3:3], instead...))
	p.compare("in haste", canonical, unknown)
	p.End()
}

// processor is the running script.
type processor struct {
	t *testing.T
	*harness.Session
}

const unknown = -1

// compare waits until the processor has the last of the blocks, and requires that its rows are what they say, and that it
// has taken back as many blocks as were replaced, unless that number is unknown.
func (p processor) compare(stage string, blocks []*harness.Block, undone int) {
	p.t.Helper()
	p.Ask("reached", blocks[len(blocks)-1].Hash(), nil)
	var rows struct {
		Heads     [][2]string
		Transfers []struct {
			Block, Timestamp, LogIndex uint64 `json:",string"`
			BlockHash, Transaction     common.Hash
			From, To                   common.Address
			Value                      string
		}
		Accounts map[common.Address]string
		Undone   int `json:",string"`
	}
	p.Ask("rows", nil, &rows)

	var heads [][2]string
	for _, b := range blocks {
		heads = append(heads, [2]string{b.Number().String(), b.Hash().Hex()})
	}
	if !slices.Equal(rows.Heads, heads) {
		p.t.Errorf("%s: blocks (- want, + got):\n%.3000s", stage, cmp.Diff(heads, rows.Heads))
	}
	var got []harness.Transfer
	for _, r := range rows.Transfers {
		got = append(got, harness.Transfer{Block: r.Block, BlockHash: r.BlockHash, Timestamp: r.Timestamp, Transaction: r.Transaction,
			LogIndex: r.LogIndex, From: r.From, To: r.To, Value: r.Value})
	}
	transfers := harness.Transfers(token, blocks)
	if !slices.Equal(got, transfers) {
		p.t.Errorf("%s: transfers (- want, + got):\n%.3000s", stage, cmp.Diff(transfers, got))
	}
	if want := harness.Balances(transfers); !cmp.Equal(rows.Accounts, want) {
		p.t.Errorf("%s: balances (- want, + got):\n%.3000s", stage, cmp.Diff(want, rows.Accounts))
	}
	if undone != unknown && rows.Undone != undone {
		p.t.Errorf("%s: %d blocks undone, want %d", stage, rows.Undone, undone)
	}
	if p.t.Failed() {
		p.t.FailNow()
	}
	p.t.Logf("%s: %d blocks, %d transfers, %d accounts, %d blocks undone", stage, len(blocks), len(transfers), len(rows.Accounts), rows.Undone)
}
