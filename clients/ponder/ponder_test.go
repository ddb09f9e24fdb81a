package ponder

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/google/go-cmp/cmp"

	"github.com/leani-go/leani/clients/harness"
)

func TestMain(m *testing.M) { os.Exit(harness.Main(m)) }

const (
	// filled is the number of blocks that are there when Ponder starts. Of a chain that it does not know it takes those as
	// final that are 30 below the head: that much history it reads in ranges.
	filled    = 131
	finalized = filled - 1 - 30
	// maxLogs makes the first range of Ponder, blocks 0 to 25, too large, but not the logs of any live block: Ponder
	// asks for those of one block, of all addresses, at once.
	maxLogs = "600"
)

// token has 33 transfers a block.
var token = common.HexToAddress("0x96aff19547e77db75829fd04a90bd71f9bd1f1ea")

// TestPonder lets Ponder index a token from a node: history, blocks that arrive, a longer branch that replaces some of them, a
// shorter one, and a replacement while its WebSocket is cut. At each stage its tables are exactly what the chain says.
//
// RPC-126 RPC-182
func TestPonder(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: left out with -short")
	}
	c := harness.Chainlab(t)
	harness.NodeModules(t, ".")
	n := harness.Start(c, harness.Options{Filled: filled, Settings: map[string]string{"max_log_results": maxLogs}})
	between, ws := harness.NewProxy(t, n.WebSocket)
	p := start(t, "LEANI_HTTP="+n.HTTP, "LEANI_WS="+ws, "LEANI_TOKEN="+token.Hex())
	canonical := c.Span(0, filled-1)

	p.Await("Created JSON-RPC WebSocket subscription")
	p.compare("history", canonical[:finalized+1])
	if !slices.ContainsFunc(p.Records(), func(r harness.Record) bool { return r.Message == "Updated eth_getLogs range" }) {
		t.Error("no range was too large")
	}

	// follow makes blocks the end of the chain, however many it replaces, and waits until Ponder has the last of them.
	follow := func(blocks []*harness.Block) {
		t.Helper()
		canonical = append(canonical[:blocks[0].NumberU64():blocks[0].NumberU64()], blocks...)
		p.awaitHead(blocks[len(blocks)-1])
	}
	arriving := c.Span(filled, 170)
	n.Apply(arriving...)
	follow(arriving)
	p.compare("live", canonical)

	longer := c.Branch(canonical[158], 171, token, "longer")
	n.ApplyBranch(longer...)
	follow(longer)
	p.compare("longer branch", canonical)
	n.Finalize(canonical[155])

	// The chain is shorter for a while.
	shorter := c.Branch(canonical[163], 173, token, "shorter")
	n.Apply(shorter...)
	follow(shorter)
	p.compare("shorter branch", canonical)
	p.calm(t)

	// Ponder does not hear of these, and finds out by the block that comes once it is connected again.
	between.Cut()
	p.Await("Closed JSON-RPC WebSocket connection")
	unheard := c.Branch(canonical[168], 174, token, "unheard")
	n.ApplyBranch(unheard[:4]...)
	between.Mend()
	p.Await("Created JSON-RPC WebSocket subscription")
	n.Apply(unheard[4:]...)
	follow(unheard)
	p.compare("connected again", canonical)

	// The branches become final.
	further := c.Branch(canonical[174], 220, token, "further")
	n.Apply(further...)
	follow(further)
	p.compare("end", canonical)
	if !slices.ContainsFunc(p.Records(), func(r harness.Record) bool {
		return r.Message == "Removed finalized blocks from local chain" && bytes.Contains(r.Raw, []byte(`[161,`))
	}) {
		t.Error("finality did not go over the branches")
	}

	// Most of these are gone before Ponder has asked for them, and there is no block by their hashes any more.
	hasty := c.Branch(canonical[210], 222, token, "hasty")
	n.Apply(hasty...)
	instead := c.Branch(hasty[2], 223, token, "instead")
	n.ApplyBranch(instead...)
	follow(append(hasty[:3:3], instead...))
	p.compare("in haste", canonical)
	p.Interrupt()
}

// ponder is the running indexer.
type ponder struct {
	*harness.Program
	t      *testing.T
	url    string
	client http.Client
}

// start runs the project in a folder of its own, for Ponder writes into it.
func start(t *testing.T, environment ...string) *ponder {
	t.Helper()
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	err = os.Symlink(filepath.Join(here, "node_modules"), filepath.Join(dir, "node_modules"))
	for _, name := range []string{"package.json", "ponder.config.ts", "ponder.schema.ts", "abis/erc20.ts", "src/index.ts", "src/api/index.ts"} {
		text, failed := os.ReadFile(name)
		to := filepath.Join(dir, name)
		err = errors.Join(err, failed, os.MkdirAll(filepath.Dir(to), 0o755), os.WriteFile(to, text, 0o644))
	}
	if err != nil {
		t.Fatal(err)
	}
	port := freePort(t)
	cmd := exec.Command("node", "node_modules/ponder/dist/esm/bin/ponder.js", "start", "--schema", "test",
		"--hostname", "127.0.0.1", "--port", fmt.Sprint(port), "--log-level", "debug", "--log-format", "json")
	cmd.Dir = dir
	cmd.Env = append(append(os.Environ(), environment...), "PONDER_TELEMETRY_DISABLED=true", "LEANI_DATABASE="+filepath.Join(dir, "database"))
	p := &ponder{Program: harness.StartProgram(t, "Ponder", cmd), t: t, client: http.Client{Timeout: harness.Patience}}
	var listening struct{ Port int }
	p.decode(p.Await("Created HTTP server").Raw, &listening) // not the one asked for, if another process took it
	p.url = fmt.Sprintf("http://127.0.0.1:%d/graphql", listening.Port)
	return p
}

// freePort is a port that is likely to be free in a moment.
func freePort(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	return l.Addr().(*net.TCPAddr).Port
}

// calm requires that Ponder had nothing to complain of so far that has to do with the node.
func (p *ponder) calm(t *testing.T) {
	t.Helper()
	const warning = 40
	others := []string{"Port in use", "No new block received within expected time"} // the test was busy
	for _, r := range p.Records() {
		if r.Level >= warning && !slices.Contains(others, r.Message) {
			t.Errorf("Ponder complains: %s", r.Raw)
		}
	}
}

// query asks Ponder's GraphQL, and decodes the member of the answer that has the name.
func (p *ponder) query(query, name string, into any) {
	p.t.Helper()
	body, err := json.Marshal(map[string]string{"query": query})
	if err != nil {
		p.t.Fatal(err)
	}
	response, err := p.client.Post(p.url, "application/json", bytes.NewReader(body))
	if err != nil {
		p.t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		p.t.Fatal(err)
	}
	var answer struct {
		Data   map[string]json.RawMessage
		Errors json.RawMessage
	}
	p.decode(text, &answer)
	if answer.Errors != nil || answer.Data[name] == nil {
		p.t.Fatalf("%s: %s", query, text)
	}
	p.decode(answer.Data[name], into)
}

func (p *ponder) decode(text []byte, into any) {
	p.t.Helper()
	if err := json.Unmarshal(text, into); err != nil {
		p.t.Fatalf("%v in %.2000s", err, text)
	}
}

// table reads all rows of a table.
func table[Row any](p *ponder, name, members, order string) (rows []Row) {
	p.t.Helper()
	for cursor := "null"; ; {
		var page struct {
			Items    []Row
			PageInfo struct {
				HasNextPage bool
				EndCursor   string
			}
		}
		p.query(fmt.Sprintf(`{ %s(limit: 1000, orderBy: %q, after: %s) { items { %s } pageInfo { hasNextPage endCursor } } }`, name, order, cursor, members), name, &page)
		rows = append(rows, page.Items...)
		if !page.PageInfo.HasNextPage {
			return rows
		}
		cursor = fmt.Sprintf("%q", page.PageInfo.EndCursor)
	}
}

// awaitHead waits until Ponder has indexed a block, the first one of its number since it was waited for the last time.
func (p *ponder) awaitHead(b *harness.Block) {
	p.t.Helper()
	p.Await("Indexed block", fmt.Sprintf(`"number":%d,`, b.NumberU64())) // asking all the time would slow Ponder down
	p.Until(fmt.Sprintf("block %d %s is indexed", b.NumberU64(), b.Hash()), func() bool {
		var head *struct{ Hash common.Hash }
		p.query(fmt.Sprintf(`{ head(number: %d) { hash } }`, b.NumberU64()), "head", &head)
		return head != nil && head.Hash == b.Hash()
	})
}

// compare requires that the tables hold what a chain of blocks says, and nothing else.
func (p *ponder) compare(stage string, blocks []*harness.Block) {
	p.t.Helper()
	type head struct {
		Number uint64
		Hash   common.Hash
	}
	var want []head
	for _, b := range blocks {
		want = append(want, head{b.NumberU64(), b.Hash()})
	}
	if got := table[head](p, "heads", "number hash", "number"); !slices.Equal(got, want) {
		p.t.Errorf("%s: blocks (- want, + got):\n%.3000s", stage, cmp.Diff(want, got))
	}

	transfers := harness.Transfers(token, blocks)
	var got []harness.Transfer
	for _, r := range table[struct {
		Block                  uint64
		BlockHash, Transaction common.Hash
		Timestamp              uint64 `json:",string"`
		LogIndex               uint64
		From, To               common.Address
		Value                  string
	}](p, "transfers", "block blockHash timestamp transaction logIndex from to value", "id") {
		got = append(got, harness.Transfer{Block: r.Block, BlockHash: r.BlockHash, Timestamp: r.Timestamp, Transaction: r.Transaction,
			LogIndex: r.LogIndex, From: r.From, To: r.To, Value: r.Value})
	}
	if !slices.Equal(got, transfers) {
		p.t.Errorf("%s: transfers (- want, + got):\n%.3000s", stage, cmp.Diff(transfers, got))
	}

	balances := make(map[common.Address]string)
	for _, r := range table[struct {
		Address common.Address
		Balance string
	}](p, "accounts", "address balance", "address") {
		balances[r.Address] = r.Balance
	}
	if want := harness.Balances(transfers); !cmp.Equal(balances, want) {
		p.t.Errorf("%s: balances (- want, + got):\n%.3000s", stage, cmp.Diff(want, balances))
	}
	if p.t.Failed() {
		p.t.FailNow()
	}
	p.t.Logf("%s: %d blocks, %d transfers, %d accounts", stage, len(blocks), len(transfers), len(balances))
}
