package clients

import (
	"encoding/json"
	"fmt"
	"math/big"
	"os"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/consensus/misc/eip1559"
	"github.com/ethereum/go-ethereum/core/types"

	"github.com/leani-go/leani/clients/harness"
)

func TestMain(m *testing.M) { os.Exit(harness.Main(m)) }

// The scripts, one for each client.
var scripts = []string{"viem", "ethers", "web3"}

// transports are how they speak with a node.
var transports = []string{"http", "ws"}

// client starts a script against a node.
func client(t *testing.T, name, transport string, n *harness.Node) *harness.Session {
	t.Helper()
	harness.NodeModules(t, ".")
	s := harness.Script(t, ".", name+".mjs", "LEANI_HTTP="+n.HTTP, "LEANI_WS="+n.WebSocket, "LEANI_OVER="+transport)
	s.Expect("ready", nil)
	return s
}

// each runs a test with clients, over HTTP and over WebSocket.
func each(t *testing.T, n *harness.Node, clients []string, test func(*testing.T, *harness.Session)) {
	for _, name := range clients {
		for _, transport := range transports {
			t.Run(name+" over "+transport, func(t *testing.T) {
				s := client(t, name, transport, n)
				test(t, s)
				s.End()
			})
		}
	}
}

// say asks a script and compares what it says.
func say(t *testing.T, s *harness.Session, name string, value, want any) {
	t.Helper()
	var got json.RawMessage
	s.Ask(name, value, &got)
	compare(t, fmt.Sprintf("%s %v", name, value), got, want)
}

// The blocks that the tests of reading use: the older is part of history, the newer is recent. Both have transactions of
// all types, creations of contracts, and transactions that failed. Where not all of history matters it begins with recent.
const (
	recent = 640
	filled = 741
	older  = 740
	newer  = 745
)

// TestReads asks for everything there is with each client and compares it with the chain.
func TestReads(t *testing.T) {
	c := harness.Chainlab(t)
	n := harness.Start(c, harness.Options{Filled: filled})
	n.Apply(c.Span(filled, newer)...)
	each(t, n, scripts, func(t *testing.T, s *harness.Session) {
		readBlocks(t, c, s)
		readTransactions(t, c, s)
		readLogs(t, c, s)
		readFees(t, c, s)
	})
}

func readBlocks(t *testing.T, c *harness.Chain, s *harness.Session) {
	t.Helper()
	var network object
	s.Ask("network", nil, &network)
	if version, _ := network["clientVersion"].(string); !strings.HasPrefix(version, "leani/") {
		t.Errorf("client version %q", version)
	}
	delete(network, "clientVersion")
	if want := (object{"chainId": decimal(harness.ChainID), "blockNumber": decimal(newer), "netVersion": decimal(harness.ChainID), "syncing": false}); !reflect.DeepEqual(network, want) {
		t.Errorf("network %v, want %v", network, want)
	}
	for _, number := range []uint64{older, newer} {
		b := c.Block(number)
		for _, full := range []bool{false, true} {
			say(t, s, "block", object{"number": number, "full": full}, wantBlock(b, full))
			say(t, s, "block", object{"hash": b.Hash(), "full": full}, wantBlock(b, full))
		}
		say(t, s, "count", object{"number": number}, decimal(b.Transactions().Len()))
		say(t, s, "count", object{"hash": b.Hash()}, decimal(b.Transactions().Len()))
	}
	say(t, s, "block", object{"tag": "latest", "full": false}, wantBlock(c.Block(newer), false))
	say(t, s, "block", object{"tag": "earliest", "full": false}, wantBlock(c.Block(0), false))
}

func readTransactions(t *testing.T, c *harness.Chain, s *harness.Session) {
	t.Helper()
	var seen struct {
		types             [5]bool
		created, reverted bool
	}
	for _, number := range []uint64{older, newer} {
		b := c.Block(number)
		for _, i := range telling(b) {
			tx := b.Transactions()[i]
			seen.types[tx.Type()] = true
			seen.created = seen.created || tx.To() == nil
			seen.reverted = seen.reverted || b.Receipts[i].Status == types.ReceiptStatusFailed
			want := wantTransaction(b, i)
			say(t, s, "transaction", object{"hash": tx.Hash()}, want)
			say(t, s, "transaction", object{"number": number, "index": i}, want)
			say(t, s, "transaction", object{"blockHash": b.Hash(), "index": i}, want)
			say(t, s, "receipt", object{"hash": tx.Hash()}, wantReceipt(b, i))
		}
	}
	if seen.types != [5]bool{true, true, true, true, true} || !seen.created || !seen.reverted {
		t.Errorf("the blocks do not show everything: %+v", seen)
	}
}

// telling are positions of transactions of a block: of each type the first, one with an access list, the first creation of
// a contract, the first that failed.
func telling(b *harness.Block) (positions []int) {
	seen := make(map[string]bool)
	for i, tx := range b.Transactions() {
		traits := []string{fmt.Sprint(tx.Type())}
		if tx.To() == nil {
			traits = append(traits, "creation")
		}
		if len(tx.AccessList()) > 0 {
			traits = append(traits, "access list")
		}
		if b.Receipts[i].Status == types.ReceiptStatusFailed {
			traits = append(traits, "failed")
		}
		tells := false
		for _, trait := range traits {
			tells = tells || !seen[trait]
			seen[trait] = true
		}
		if tells {
			positions = append(positions, i)
		}
	}
	return positions
}

// query is a log query as scripts take it.
type query struct {
	Address   []common.Address `json:"address,omitempty"`
	Events    []string         `json:"events,omitempty"`
	From      []common.Address `json:"from,omitempty"`
	To        []common.Address `json:"to,omitempty"`
	FromBlock uint64           `json:"fromBlock,omitempty"`
	ToBlock   uint64           `json:"toBlock,omitempty"`
	BlockHash *common.Hash     `json:"blockHash,omitempty"`
}

var approvalTopic = common.HexToHash("0x8c5be1e5ebec7d5bd14f71427d1e84f3dd0314c0f7b2291e5b200ac8c7c3b925")

// find gives what a query has to find in blocks, in order.
func (q query) find(blocks []*harness.Block) []any {
	topics := map[string]common.Hash{"Transfer": harness.TransferTopic, "Approval": approvalTopic}
	anyOf := func(wanted int, match func(i int) bool) bool {
		for i := range wanted {
			if match(i) {
				return true
			}
		}
		return wanted == 0
	}
	party := func(addresses []common.Address, l *types.Log, position int) bool {
		return anyOf(len(addresses), func(i int) bool {
			return len(l.Topics) > position && l.Topics[position] == common.BytesToHash(addresses[i][:])
		})
	}
	found := []any{}
	for _, b := range blocks {
		if q.BlockHash != nil && *q.BlockHash != b.Hash() || q.BlockHash == nil && (b.NumberU64() < q.FromBlock || b.NumberU64() > q.ToBlock) {
			continue
		}
		for _, l := range b.Logs() {
			if anyOf(len(q.Address), func(i int) bool { return l.Address == q.Address[i] }) &&
				anyOf(len(q.Events), func(i int) bool { return len(l.Topics) > 0 && l.Topics[0] == topics[q.Events[i]] }) &&
				party(q.From, l, 1) && party(q.To, l, 2) {
				found = append(found, wantLog(b, l))
			}
		}
	}
	return found
}

// isTransfer tells whether a log is ERC-20's Transfer. ERC-721 has the same topic and one more.
func isTransfer(l *types.Log) bool {
	return len(l.Topics) == 3 && l.Topics[0] == harness.TransferTopic && len(l.Data) == 32
}

// busiest is the token with the most transfers in blocks.
func busiest(blocks []*harness.Block) (token common.Address) {
	transfers := make(map[common.Address]int)
	for _, b := range blocks {
		for _, l := range b.Logs() {
			if isTransfer(l) {
				if transfers[l.Address]++; transfers[l.Address] > transfers[token] {
					token = l.Address
				}
			}
		}
	}
	return token
}

// wantTransfers are the decoded transfers of a token.
func wantTransfers(blocks []*harness.Block, token common.Address) []any {
	found := []any{}
	for _, b := range blocks {
		for _, l := range b.Logs() {
			if l.Address == token && isTransfer(l) {
				found = append(found, object{
					"blockNumber": decimal(b.Number()), "logIndex": decimal(l.Index),
					"from": low(common.BytesToAddress(l.Topics[1][:])), "to": low(common.BytesToAddress(l.Topics[2][:])),
					"value": decimal(l.Topics[0].Big().SetBytes(l.Data)),
				})
			}
		}
	}
	return found
}

func readLogs(t *testing.T, c *harness.Chain, s *harness.Session) {
	t.Helper()
	const first, last = older - 10, newer
	blocks := c.Span(first, last)
	token := busiest(blocks)
	transfer := firstTransfer(blocks, token)
	from, to := common.BytesToAddress(transfer.Topics[1][:]), common.BytesToAddress(transfer.Topics[2][:])
	other := common.BytesToAddress(blocks[1].Receipts[0].TxHash[:]) // of nobody
	hot, stored := c.Block(newer).Hash(), c.Block(older).Hash()
	for _, q := range []query{
		{FromBlock: older, ToBlock: newer - 4},
		{FromBlock: first, ToBlock: last, Address: []common.Address{token}},
		{FromBlock: first, ToBlock: last, Address: []common.Address{token, other}, Events: []string{"Transfer"}},
		{FromBlock: first, ToBlock: last, Address: []common.Address{token}, Events: []string{"Transfer", "Approval"}},
		{FromBlock: first, ToBlock: last, Events: []string{"Approval"}},
		{FromBlock: first, ToBlock: last, Events: []string{"Transfer"}, From: []common.Address{from}},
		{FromBlock: first, ToBlock: last, Events: []string{"Transfer"}, From: []common.Address{from, other}, To: []common.Address{other, to}},
		{FromBlock: first, ToBlock: last, Events: []string{"Transfer"}, To: []common.Address{to}},
		{FromBlock: first, ToBlock: last, Address: []common.Address{other}},
		{BlockHash: &stored},
		{BlockHash: &hot, Events: []string{"Transfer"}},
	} {
		want := q.find(blocks)
		if len(want) == 0 && (len(q.Address) != 1 || q.Address[0] != other) {
			t.Fatalf("nothing to find: %+v", q)
		}
		say(t, s, "logs", q, want)
	}
	want := wantTransfers(blocks, token)
	if len(want) < 50 {
		t.Fatalf("%d transfers", len(want))
	}
	say(t, s, "transfers", object{"address": token, "fromBlock": first, "toBlock": last}, want)
}

func firstTransfer(blocks []*harness.Block, token common.Address) *types.Log {
	for _, b := range blocks {
		for _, l := range b.Logs() {
			if l.Address == token && isTransfer(l) {
				return l
			}
		}
	}
	panic("BUG: a token without transfers")
}

func readFees(t *testing.T, c *harness.Chain, s *harness.Session) {
	t.Helper()
	const first = older - 1
	percentiles := []float64{0, 25, 50, 99}
	fees, ratios, rewards := []any{}, []any{}, []any{}
	for _, b := range c.Span(first, newer) {
		fees = append(fees, decimal(b.BaseFee()))
		ratios = append(ratios, strconv.FormatFloat(float64(b.GasUsed())/float64(b.GasLimit()), 'f', -1, 64))
		rewards = append(rewards, tips(b, percentiles))
	}
	fees = append(fees, decimal(eip1559.CalcBaseFee(c.Config, c.Block(newer).Header())))
	say(t, s, "fees", object{"blocks": newer - first + 1, "newest": newer, "percentiles": percentiles},
		object{"oldestBlock": decimal(first), "baseFeePerGas": fees, "gasUsedRatio": ratios, "reward": rewards})
}

// tips are the effective priority fees of a block at percentiles of its gas.
func tips(b *harness.Block, percentiles []float64) (out []any) {
	type paid struct {
		tip *big.Int
		gas uint64
	}
	var all []paid
	for i, tx := range b.Transactions() {
		all = append(all, paid{tx.EffectiveGasTipValue(b.BaseFee()), b.Receipts[i].GasUsed})
	}
	slices.SortStableFunc(all, func(x, y paid) int { return x.tip.Cmp(y.tip) })
	for _, p := range percentiles {
		threshold, sum, at := uint64(float64(b.GasUsed())*p/100), all[0].gas, 0
		for sum < threshold && at < len(all)-1 {
			at++
			sum += all[at].gas
		}
		out = append(out, decimal(all[at].tip))
	}
	return out
}
