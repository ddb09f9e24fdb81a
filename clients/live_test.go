package clients

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/big"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/google/go-cmp/cmp"

	"github.com/leani-go/leani/clients/harness"
)

// The ways in which clients follow a chain.
var followers = []follower{
	{script: "viem", transport: "ws", blocks: everyBlock},
	{script: "viem", transport: "http", blocks: risingBlocks, first: true},
	{script: "ethers", transport: "ws", blocks: everyBlock, checks: true},
	{script: "ethers", transport: "http", blocks: changedHeights, checks: true},
	{script: "web3", transport: "ws", blocks: everyBlock},
}

// TestFollow lets each client follow a node through two reorganizations: one that replaces three blocks by a longer
// branch, and one that takes a block back before another one comes. Each has to hold the right logs after every step, be
// told of removed logs before those that replace them, and be told of no log twice.
func TestFollow(t *testing.T) {
	for _, f := range followers {
		t.Run(f.script+" over "+f.transport, func(t *testing.T) {
			c := harness.Chainlab(t)
			n := harness.Start(c, harness.Options{First: recent, Filled: filled})
			token := busiest(c.Span(older, newer))
			f.start(t, client(t, f.script, f.transport, n), token, c.Block(filled-1))
			chain := []*harness.Block{c.Block(filled), c.Block(filled + 1), c.Block(filled + 2)}
			for i, b := range chain {
				n.Apply(b)
				f.tell(b)
				f.await(chain[:i+1])
			}

			branch := chain[:1:1]
			for number := uint64(filled + 1); number <= filled+3; number++ {
				branch = append(branch, c.Fork(branch[len(branch)-1], c.Block(number), changed(token, number)))
			}
			n.ApplyBranch(branch[1:]...)
			f.tell(branch[1:]...)
			f.await(branch)

			taken := c.Fork(branch[3], c.Block(filled+4), nil)
			n.Apply(taken)
			f.tell(taken)
			f.await(append(branch[:4:4], taken))
			if f.blocks != changedHeights { // chance would decide whether it sees the lower number
				n.Undo(branch[3])
			}
			if !f.checks { // nobody tells the others of a block that is gone
				f.await(branch)
			}
			last := c.Fork(branch[3], c.Block(filled+4), changed(token, filled+4))
			n.Apply(last)
			f.tell(last)
			if f.blocks != changedHeights { // it sees the same number and does not look
				f.await(append(branch[:4:4], last))
			}
			end := c.Fork(last, c.Block(filled+5), nil)
			n.Apply(end)
			f.tell(end)
			f.await(append(branch[:4:4], last, end))
		})
	}
}

// changed makes other logs for a block: some of the token's transfers are gone, one has another value, one is new.
func changed(token common.Address, number uint64) func(*harness.Draft) {
	return func(d *harness.Draft) {
		kept := 0
		for _, r := range d.Receipts {
			r.Logs = slices.DeleteFunc(r.Logs, func(l *types.Log) bool {
				if l.Address == token && isTransfer(l) {
					kept++
				}
				return l.Address == token && isTransfer(l) && kept%2 == 0
			})
		}
		for _, r := range d.Receipts {
			for _, l := range r.Logs {
				if l.Address == token && isTransfer(l) {
					l.Data = common.BigToHash(new(big.Int).SetUint64(number)).Bytes()
					r.Logs = append(r.Logs, &types.Log{Address: token, Topics: slices.Clone(l.Topics), Data: common.BigToHash(big.NewInt(1)).Bytes()})
					return
				}
			}
		}
	}
}

// What a client is told of blocks.
const (
	everyBlock     = iota // each one that was the newest
	risingBlocks          // it asks from time to time, and tells of a number greater than the one before
	changedHeights        // the same with all numbers between
)

// follower is a client that follows a node, and what it has said so far.
type follower struct {
	script, transport string
	blocks            int
	first             bool // it begins with the newest block
	// checks tells that the client is not told of removed logs; the script checks which blocks are gone when there is a
	// new one.
	checks bool

	t       *testing.T
	session *harness.Session
	token   common.Address
	told    []object // blocks that it has to be told of
	height  uint64
	seen    int               // how many of them it has been told of
	known   map[string]object // all logs of the token by key, as they have to be told
	held    map[string]bool   // logs told and not removed
	chain   map[string]bool   // blocks of the node's chain, by hash
}

// start makes the client follow the transfers of a token while a block is the newest one.
func (f *follower) start(t *testing.T, s *harness.Session, token common.Address, newest *harness.Block) {
	f.t, f.session, f.token = t, s, token
	f.known, f.held = make(map[string]object), make(map[string]bool)
	if f.first {
		f.tell(newest)
	}
	f.session.Tell("watch", object{"transport": f.transport, "address": token})
	for f.next() != "watch" {
	}
}

// tell notes blocks that the node has made the newest in one step: the client may have to be told of them.
func (f *follower) tell(blocks ...*harness.Block) {
	for i, b := range blocks {
		rises := b.NumberU64() > f.height
		if f.blocks == risingBlocks {
			rises = rises && i == len(blocks)-1
		}
		if f.blocks == everyBlock || rises {
			f.told = append(f.told, wantHeader(b))
		}
	}
	f.height = blocks[len(blocks)-1].NumberU64()
}

// keys names the token's transfers in a chain.
func (f *follower) keys(chain []*harness.Block) map[string]bool {
	keys := make(map[string]bool)
	for _, b := range chain {
		for _, l := range b.Logs() {
			if l.Address == f.token && l.Topics[0] == harness.TransferTopic {
				want := wantLog(b, l)
				keys[key(want)] = true
				f.known[key(want)] = want
			}
		}
	}
	return keys
}

func key(log object) string { return fmt.Sprint(log["blockHash"], " ", log["logIndex"]) }

// await takes what the client says until it has been told of all blocks and holds exactly the logs of a chain.
func (f *follower) await(chain []*harness.Block) {
	f.t.Helper()
	want := f.keys(chain)
	f.chain = make(map[string]bool)
	for _, b := range chain {
		f.chain[low(b.Hash())] = true
	}
	for f.seen < len(f.told) || !maps.Equal(f.held, want) {
		f.next()
	}
}

// next takes one message and gives its name.
func (f *follower) next() string {
	f.t.Helper()
	name, value := f.session.Next()
	if name == "watch" {
		return name
	}
	var said object
	if err := json.Unmarshal(value, &said); err != nil {
		f.t.Fatalf("%s %s: %v", name, value, err)
	}
	switch name {
	case "block":
		f.block(said)
	case "log":
		f.log(said)
	case "gone":
		hash := said["hash"].(string)
		if f.chain[hash] {
			f.t.Fatalf("block %s is not gone", hash)
		}
		maps.DeleteFunc(f.held, func(k string, _ bool) bool { return strings.HasPrefix(k, hash) })
	default:
		f.t.Fatalf("%s %s", name, value)
	}
	return name
}

// block takes a block that the client was told of.
func (f *follower) block(said object) {
	f.t.Helper()
	if f.seen == len(f.told) {
		f.t.Fatalf("told of block %v %v too", said["number"], said["hash"])
	}
	if want := narrow(f.told[f.seen], said); !reflect.DeepEqual(want, any(said)) {
		f.t.Fatalf("block (- want, + got):\n%s", cmp.Diff(want, any(said)))
	}
	f.seen++
}

// log takes a log that the client was told.
func (f *follower) log(said object) {
	f.t.Helper()
	k := key(said)
	want, known := f.known[k]
	if !known {
		f.t.Fatalf("log %s is of no block", k)
	}
	removed := said["removed"] == true
	want = maps.Clone(want)
	if want["removed"] = removed; !reflect.DeepEqual(narrow(want, said), any(said)) {
		f.t.Fatalf("log (- want, + got):\n%s", cmp.Diff(narrow(want, said), any(said)))
	}
	if f.held[k] != removed {
		f.t.Fatalf("log %s: removed %t, held %t", k, removed, f.held[k])
	}
	if removed {
		delete(f.held, k)
		return
	}
	f.held[k] = true
	if f.checks {
		return
	}
	// Nothing of a block that is gone is held when a block that replaces it is told.
	for held := range f.held {
		if hash, _, _ := strings.Cut(held, " "); !f.chain[hash] {
			f.t.Fatalf("log %s is told while %s is still held", k, held)
		}
	}
}
