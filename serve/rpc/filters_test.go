package rpc

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"github.com/leani-go/leani/api/jsonrpc"
	"github.com/leani-go/leani/chain"
)

// changingChain is a store whose chain a test changes between polls.
type changingChain struct {
	*fakeStore
	tb    testing.TB
	mu    sync.Mutex
	forks int
}

func (c *changingChain) View() (View, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.views.Add(1)
	c.open.Add(1)
	s := &fakeStore{blocks: maps.Clone(c.blocks), coverage: c.coverage, finalized: c.finalized, onCost: c.onCost, onLogs: c.onLogs, onLoad: c.onLoad}
	return countedView{&fakeView{s: s}, c.fakeStore}, nil
}

// countedView counts as a view of the store that it is a snapshot of.
type countedView struct {
	View
	store *fakeStore
}

func (v countedView) Close() {
	v.View.Close()
	v.store.open.Add(-1)
}

// replace undoes the blocks from a number on and applies n others; the logs of the new ones tell them
// apart.
func (c *changingChain) replace(from uint64, n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.forks++
	for number := range c.blocks {
		if number >= from {
			delete(c.blocks, number)
		}
	}
	parent := common.Hash{}
	if from > 0 {
		parent = c.blocks[from-1].Hash
	}
	for number := from; number < from+uint64(n); number++ {
		b := &chain.Block{HasReceipts: true}
		b.Number, b.ParentHash = number, parent
		b.Hash = common.Hash{1, byte(c.forks >> 8), byte(c.forks), byte(number >> 8), byte(number)}
		for t := range number % 3 {
			b.TransactionHashes = append(b.TransactionHashes, common.Hash{2, byte(c.forks), byte(number), byte(t)})
			b.Transactions = append(b.Transactions, nil)
			b.Logs = append(b.Logs,
				chain.Log{Address: &tokenAddress, Topics: [4]*common.Hash{&transferSig, &holderTopic}, NumTopics: 2, Data: b.Hash[:5]},
				chain.Log{Address: &quietAddress})
			b.Receipts = append(b.Receipts, chain.Receipt{LogsEnd: uint32(len(b.Logs))})
		}
		c.blocks[number], parent = b, b.Hash
	}
	c.coverage = nil
	if to := from + uint64(n); to > 0 {
		c.coverage = []chain.Range{{From: 0, To: to}}
	}
}

// filterServer is a server over a changing chain with a clock of its own.
type filterServer struct {
	*testServer
	chain *changingChain
	clock struct {
		sync.Mutex
		time.Time
	}
}

func startFilterServer(t *testing.T, blocks int, change func(*Options)) *filterServer {
	t.Helper()
	s := &filterServer{chain: &changingChain{fakeStore: &fakeStore{blocks: make(map[uint64]*chain.Block)}, tb: t}}
	if blocks > 0 {
		s.chain.replace(0, blocks)
	}
	s.clock.Time = time.Unix(1_700_000_000, 0)
	s.testServer = startServer(t, s.chain.fakeStore, func(o *Options) {
		o.Store, o.newEncoder = s.chain, nil
		o.now = func() time.Time {
			s.clock.Lock()
			defer s.clock.Unlock()
			return s.clock.Time
		}
		if change != nil {
			change(o)
		}
	})
	return s
}

func (s *filterServer) advance(d time.Duration) {
	s.clock.Lock()
	s.clock.Time = s.clock.Add(d)
	s.clock.Unlock()
}

// ask calls a method and returns its result, or its error as text.
func (s *filterServer) ask(method, params string) string {
	s.t.Helper()
	text := s.post(fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"%s","params":[%s]}`, method, params))
	if !json.Valid([]byte(text)) {
		s.t.Fatalf("invalid: %s", text)
	}
	text = strings.TrimPrefix(text, `{"jsonrpc":"2.0","id":1,`)
	return strings.TrimSuffix(strings.TrimPrefix(text, `"result":`), "}")
}

// toldEntry is a log as a client sees it.
type toldEntry struct {
	BlockHash   common.Hash
	BlockNumber string
	LogIndex    string
	Address     common.Address
	Removed     bool
}

// poll asks for changes of a log filter.
func (s *filterServer) poll(id string) (list []toldEntry) {
	s.t.Helper()
	text := s.ask(jsonrpc.GetFilterChanges, id)
	if err := json.Unmarshal([]byte(text), &list); err != nil {
		s.t.Fatalf("%v: %s", err, text)
	}
	return list
}

func parse(t *testing.T, text string, v any) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), v); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
}

// follower is a client that keeps the logs of the chain by what polls tell.
type follower struct{ logs []toldEntry }

// apply requires that removed logs are known, that they come before new ones, and that new logs are in
// chain order.
func (f *follower) apply(t *testing.T, changes []toldEntry) {
	t.Helper()
	added := false
	for _, l := range changes {
		if !l.Removed {
			added = true
			f.logs = append(f.logs, l)
			continue
		}
		if added {
			t.Fatal("a log is removed behind an added one")
		}
		l.Removed = false
		at := slices.Index(f.logs, l)
		if at < 0 {
			t.Fatalf("an unknown log is removed: %+v", l)
		}
		f.logs = slices.Delete(f.logs, at, at+1)
	}
}

// Whatever happens to the chain between polls, a client that starts from a query and applies
// what polls tell has the logs of the chain after every poll, bounds and criteria included, and a
// block filter tells every new block once, in order. Short answers are gone on with.
func TestFilterChangesFollowTheChain(t *testing.T) {
	for _, limit := range []int{10_000, 7} {
		t.Run(fmt.Sprint(limit), func(t *testing.T) {
			s := startFilterServer(t, 20, func(o *Options) { o.Limits.MaxLogResults = limit })
			criteria := []string{
				`{}`, `{"address":"` + tokenAddress.Hex() + `"}`, `{"topics":["` + transferSig.Hex() + `"],"fromBlock":"0x16","toBlock":"0x22"}`,
				`{"fromBlock":"latest","toBlock":"latest"}`, `{"address":"0x00000000000000000000000000000000000000cc"}`,
			}
			expected := func(i int) (want []toldEntry) {
				for _, number := range slices.Sorted(maps.Keys(s.chain.blocks)) {
					b := s.chain.blocks[number]
					for at := range b.Logs {
						token := *b.Logs[at].Address == tokenAddress
						if i == 1 && !token || i == 2 && (!token || number < 0x16 || number > 0x22) || i == 4 {
							continue
						}
						want = append(want, toldEntry{b.Hash, fmt.Sprintf("%#x", number), fmt.Sprintf("%#x", at), *b.Logs[at].Address, false})
					}
				}
				return want
			}
			ids, followers := make([]string, len(criteria)), make([]follower, len(criteria))
			for i := range criteria {
				ids[i] = s.ask(jsonrpc.NewFilter, criteria[i])
				followers[i].logs = expected(i)
			}
			blockID := s.ask(jsonrpc.NewBlockFilter, "")
			told := slices.Sorted(maps.Keys(s.chain.blocks))
			hashes := make(map[uint64]common.Hash)
			for _, number := range told {
				hashes[number] = s.chain.blocks[number].Hash
			}
			random := rand.New(rand.NewPCG(5, uint64(limit)))
			head := uint64(19)
			for range 60 {
				for range 1 + random.IntN(3) {
					from := head + 1 - random.Uint64N(5)*random.Uint64N(2)
					n := random.IntN(6)
					s.chain.replace(from, n)
					head = from + uint64(n) - 1
				}
				for i := range ids {
					for range 40 {
						changes := s.poll(ids[i])
						followers[i].apply(t, changes)
						if len(changes) == 0 {
							break
						}
					}
					if got, want := followers[i].logs, expected(i); !slices.Equal(got, want) {
						t.Fatalf("filter %s: got %+v\nwant %+v", criteria[i], got, want)
					}
				}
				for {
					var list []common.Hash
					if err := json.Unmarshal([]byte(s.ask(jsonrpc.GetFilterChanges, blockID)), &list); err != nil {
						t.Fatal(err)
					}
					if len(list) == 0 {
						break
					}
					for _, hash := range list {
						found := false
						for number, b := range s.chain.blocks {
							if b.Hash == hash {
								found = hashes[number] != hash
								hashes[number] = hash
							}
						}
						if !found {
							t.Fatalf("block %s is unknown or told twice", hash)
						}
					}
				}
				for number, b := range s.chain.blocks {
					if hashes[number] != b.Hash {
						t.Fatalf("block %d was not told", number)
					}
				}
			}
		})
	}
}

// The answer of eth_getFilterLogs is the query of the filter from the start, whatever was polled.
func TestFilterLogs(t *testing.T) {
	s := startFilterServer(t, 9, nil)
	criteria := `{"fromBlock":"0x1","address":"` + tokenAddress.Hex() + `"}`
	id := s.ask(jsonrpc.NewFilter, criteria)
	s.chain.replace(7, 5)
	s.poll(id)
	for range 2 {
		if got, want := s.ask(jsonrpc.GetFilterLogs, id), s.ask(jsonrpc.GetLogs, criteria); got != want || !strings.Contains(want, `"0xb"`) {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	if got := s.ask(jsonrpc.GetFilterLogs, s.ask(jsonrpc.NewBlockFilter, "")); !strings.Contains(got, "filter not found") {
		t.Errorf("logs of a block filter: %s", got)
	}
}

// A filter lives for five minutes after the last poll, or until it is uninstalled.
func TestFiltersExpire(t *testing.T) {
	s := startFilterServer(t, 3, nil)
	const lost = `"error":{"code":-32000,"message":"filter not found"}`
	id, other := s.ask(jsonrpc.NewFilter, `{}`), s.ask(jsonrpc.NewBlockFilter, "")
	for range 5 {
		s.advance(4 * time.Minute)
		s.poll(id)
	}
	if got := s.ask(jsonrpc.GetFilterChanges, other); got != lost {
		t.Errorf("expired: %s", got)
	}
	s.advance(filterExpiry)
	s.poll(id)
	s.advance(filterExpiry + time.Second)
	if got := s.ask(jsonrpc.UninstallFilter, id); got != "false" {
		t.Errorf("uninstall an expired filter: %s", got)
	}
	if held := s.service.filters.held; held != 0 {
		t.Errorf("%d bytes are held for no filter", held)
	}
	id = s.ask(jsonrpc.NewFilter, `{}`)
	if got := s.ask(jsonrpc.UninstallFilter, id); got != "true" {
		t.Errorf("uninstall: %s", got)
	}
	for _, unknown := range []string{id, `"0x1"`, `""`, `"0xzz"`} {
		if got := s.ask(jsonrpc.GetFilterChanges, unknown); got != lost {
			t.Errorf("%s: %s", unknown, got)
		}
	}
	seen := make(map[string]bool)
	for range 64 {
		id := s.ask(jsonrpc.NewBlockFilter, "")
		if seen[id] || len(id) != 36 || id[3] == '0' {
			t.Errorf("id %s", id)
		}
		seen[id] = true
	}
}

// Filters are bounded in number and in memory. Short of memory they forget logs of undone blocks, which
// a poll then reports instead of leaving them out, and the filter is gone.
func TestFiltersAreBounded(t *testing.T) {
	s := startFilterServer(t, 40, func(o *Options) { o.Limits.MaxFilters = 2 })
	id := s.ask(jsonrpc.NewFilter, `{}`)
	s.ask(jsonrpc.NewBlockFilter, "")
	if got := s.ask(jsonrpc.NewFilter, `{}`); !strings.Contains(got, `"reason":"filter_limit_exceeded","limit":2`) {
		t.Errorf("got %s", got)
	}
	s.ask(jsonrpc.UninstallFilter, id)
	if got := s.ask(jsonrpc.NewFilter, `{}`); strings.Contains(got, "error") {
		t.Errorf("got %s", got)
	}

	fixed := (&pollFilter{}).fixedBytes()
	s = startFilterServer(t, 40, func(o *Options) { o.Limits.FilterBytes = int(fixed) + 2000 })
	id = s.ask(jsonrpc.NewFilter, `{}`)
	if got := s.ask(jsonrpc.NewFilter, `{}`); !strings.Contains(got, "filter_memory_limit_exceeded") {
		t.Errorf("got %s", got)
	}
	s.chain.replace(39, 1) // block 38 and 39 are remembered: four logs and none
	if got := s.poll(id); len(got) != 0 {
		t.Errorf("got %+v", got)
	}
	s.chain.replace(38, 2)
	if got := s.poll(id); len(got) != 8 || !got[0].Removed || got[4].Removed {
		t.Errorf("got %+v", got)
	}
	s.chain.replace(30, 2)
	if got := s.ask(jsonrpc.GetFilterChanges, id); !strings.Contains(got, `"reason":"filter_changes_not_retained"`) {
		t.Errorf("got %s", got)
	}
	if got := s.ask(jsonrpc.GetFilterChanges, id); !strings.Contains(got, "filter not found") {
		t.Errorf("got %s", got)
	}
}

// What cannot be told exactly is an error: blocks undone below the remembered ones, and new blocks that
// are not retained.
func TestFiltersNeverLeaveOut(t *testing.T) {
	const lost = `"reason":"filter_changes_not_retained"`
	s := startFilterServer(t, 200, nil)
	deep, exact := s.ask(jsonrpc.NewFilter, `{}`), s.ask(jsonrpc.NewBlockFilter, "")
	s.chain.replace(200-rememberedBlocks, 100)
	if got := s.ask(jsonrpc.GetFilterChanges, exact); strings.Count(got, `"0x`) != 100 {
		t.Errorf("all remembered blocks undone: %.200s", got)
	}
	s.chain.replace(199-rememberedBlocks, 150)
	if got := s.ask(jsonrpc.GetFilterChanges, deep); !strings.Contains(got, lost) {
		t.Errorf("one more: %.200s", got)
	}
	gap := s.ask(jsonrpc.NewFilter, `{}`)
	s.chain.replace(221, 79)
	s.chain.coverage = []chain.Range{{From: 0, To: 230}, {From: 250, To: 300}}
	if got := s.ask(jsonrpc.GetFilterChanges, gap); !strings.Contains(got, lost) {
		t.Errorf("gap: %.200s", got)
	}
	// A block with more logs than an answer may have.
	s = startFilterServer(t, 2, func(o *Options) { o.Limits.MaxLogResults = 3 })
	id := s.ask(jsonrpc.NewFilter, `{}`)
	s.chain.replace(2, 1)
	for range 2 {
		if got := s.ask(jsonrpc.GetFilterChanges, id); !strings.Contains(got, "log_result_limit_exceeded") {
			t.Errorf("got %.200s", got)
		}
	}
	// In an empty store everything is new.
	s = startFilterServer(t, 0, nil)
	id = s.ask(jsonrpc.NewFilter, `{}`)
	if got := s.poll(id); len(got) != 0 {
		t.Errorf("got %v", got)
	}
	s.chain.replace(0, 3)
	if got := s.poll(id); len(got) != 6 {
		t.Errorf("got %v", got)
	}
}

// A poll that fails loses nothing: whether the store fails, the lane is full, or the answer does not fit into
// what a batch has left, the next one tells all. Heavy polls run in the lane.
func TestFailedPollsLoseNothing(t *testing.T) {
	s := startFilterServer(t, 5, func(o *Options) { o.Limits.MaxResponseBytes = 8 << 10 })
	s.chain.onCost = func() (uint64, error) { return laneCost, nil }
	var broken error
	s.chain.onLogs = func(context.Context) error { return broken }
	s.chain.onLoad = func(uint64) error { return broken }
	logsNow := func() (list []toldEntry) {
		for number := range 9 { // one by one: the limit is small
			if uint64(number) < s.chain.coverage[0].To {
				var some []toldEntry
				parse(t, s.ask(jsonrpc.GetLogs, fmt.Sprintf(`{"fromBlock":"%#x","toBlock":"%#x"}`, number, number)), &some)
				list = append(list, some...)
			}
		}
		return list
	}
	client := follower{logs: logsNow()}
	id, blocks := s.ask(jsonrpc.NewFilter, `{}`), s.ask(jsonrpc.NewBlockFilter, "")
	s.chain.replace(4, 2) // two logs go, six come
	broken = errors.New("disk gone")
	for _, id := range []string{id, blocks} {
		if got := s.ask(jsonrpc.GetFilterChanges, id); !strings.Contains(got, "-32603") {
			t.Errorf("got %s", got)
		}
	}
	broken = context.DeadlineExceeded
	if got := s.ask(jsonrpc.GetFilterChanges, id); !strings.Contains(got, "time_limit_exceeded") {
		t.Errorf("got %s", got)
	}
	broken = nil
	// Calls before it leave the poll little room, at last too little for a single block.
	s.chain.replace(6, 3)
	poll := `{"jsonrpc":"2.0","id":2,"method":"eth_getFilterChanges","params":[` + id + `]}`
	fill := `{"jsonrpc":"2.0","id":1,"method":"eth_getLogs","params":[{"fromBlock":"0x1","toBlock":"0x1"}]},`
	refused := false
	for fills := 9; fills > 0; fills-- {
		var got []struct {
			Result json.RawMessage
			Error  *struct{ Code int }
		}
		parse(t, s.post("["+strings.Repeat(fill, fills)+poll+"]"), &got)
		last := got[len(got)-1]
		if last.Error != nil {
			refused = refused || got[len(got)-2].Error == nil
			continue
		}
		var changes []toldEntry
		parse(t, string(last.Result), &changes)
		client.apply(t, changes)
	}
	for range 9 {
		client.apply(t, s.poll(id))
	}
	if !refused {
		t.Error("the poll never lacked room")
	}
	if want := logsNow(); !slices.Equal(client.logs, want) {
		t.Errorf("got %+v\nwant %+v", client.logs, want)
	}
	if got := s.ask(jsonrpc.GetFilterChanges, blocks); strings.Count(got, `"0x`) != 5 {
		t.Errorf("got %s", got)
	}
}

// Parameters that no filter can have, and the filter that is refused.
func TestFilterRefusals(t *testing.T) {
	s := startFilterServer(t, 3, nil)
	for call, want := range map[[2]string]string{
		{jsonrpc.NewFilter, ``}: "-32602",
		{jsonrpc.NewFilter, `{"blockHash":"` + transferSig.Hex() + `"}`}: "-32602",
		{jsonrpc.NewFilter, `{"fromBlock":"0x2","toBlock":"0x1"}`}:       "-32602",
		{jsonrpc.NewFilter, `{"toBlock":"pending"}`}:                     "pending_block_unavailable",
		{jsonrpc.NewBlockFilter, `{}`}:                                   "-32602",
		{jsonrpc.GetFilterChanges, ``}:                                   "-32602",
		{jsonrpc.GetFilterChanges, `1`}:                                  "-32602",
		{jsonrpc.GetFilterLogs, `null`}:                                  "-32602",
		{jsonrpc.UninstallFilter, `[]`}:                                  "-32602",
		{jsonrpc.NewPendingTransactionFilter, ``}:                        `"reason":"pending_block_unavailable","retryable":false,"method":"eth_newPendingTransactionFilter"`,
	} {
		if got := s.ask(call[0], call[1]); !strings.Contains(got, want) {
			t.Errorf("%s(%s): got %s, want %s", call[0], call[1], got, want)
		}
	}
}

// Clients that share a filter, install and uninstall ones and meet a changing chain: each change is told
// to one of them.
func TestFiltersConcurrently(t *testing.T) {
	s := startFilterServer(t, 5, nil)
	id := s.ask(jsonrpc.NewBlockFilter, "")
	var group sync.WaitGroup
	var mu sync.Mutex
	told := make(map[common.Hash]int)
	for range 4 {
		group.Go(func() {
			for range 30 {
				own := s.ask(jsonrpc.NewFilter, `{}`)
				a := s.do(http.MethodPost, fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"eth_getFilterChanges","params":[%s]}`, id))
				var got struct{ Result []common.Hash }
				if err := json.Unmarshal([]byte(a.body), &got); err != nil {
					t.Errorf("%v: %s", err, a.body)
				}
				mu.Lock()
				for _, hash := range got.Result {
					told[hash]++
				}
				mu.Unlock()
				s.ask(jsonrpc.GetFilterChanges, own)
				s.ask(jsonrpc.UninstallFilter, own)
			}
		})
	}
	for n := uint64(5); n < 60; n++ {
		s.chain.replace(n, 1)
	}
	group.Wait()
	var rest []common.Hash
	if err := json.Unmarshal([]byte(s.ask(jsonrpc.GetFilterChanges, id)), &rest); err != nil {
		t.Fatal(err)
	}
	for _, hash := range rest {
		told[hash]++
	}
	for number := uint64(5); number < 60; number++ {
		if n := told[s.chain.blocks[number].Hash]; n != 1 {
			t.Errorf("block %d was told %d times", number, n)
		}
	}
}
