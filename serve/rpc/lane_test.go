package rpc

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"pgregory.net/rapid"

	"github.com/leani-go/leani/api/jsonrpc"
	"github.com/leani-go/leani/chain"
)

// occupy makes the only worker of a lane busy until the returned function is called.
func occupy(t *testing.T, l *lane) (leave func()) {
	t.Helper()
	entered, left := make(chan struct{}), make(chan struct{})
	done := make(chan error)
	go func() {
		done <- l.do(context.Background(), func() error { close(entered); <-left; return nil })
	}()
	<-entered
	return func() {
		close(left)
		if err := <-done; err != nil {
			t.Errorf("occupying job: %v", err)
		}
	}
}

func TestLane(t *testing.T) { synctest.Test(t, testLane) }

func testLane(t *testing.T) {
	l := newLane(1, 1)
	defer l.close()
	failure := errors.New("failure")
	if err := l.do(context.Background(), func() error { return failure }); err != failure {
		t.Errorf("got %v, want %v", err, failure)
	}
	var p *panicError
	if err := l.do(context.Background(), func() error { panic("bug") }); !errors.As(err, &p) || p.value != "bug" {
		t.Errorf("got %v, want a panic error", err)
	}

	// A job whose context ends while it waits never runs.
	leave := occupy(t, l)
	ctx, cancel := context.WithCancel(context.Background())
	waiting := make(chan error)
	var ran atomic.Bool
	go func() { waiting <- l.do(ctx, func() error { ran.Store(true); return nil }) }()
	synctest.Wait()
	// The queue is full now.
	if err := l.do(context.Background(), func() error { return nil }); err != errLaneFull {
		t.Errorf("got %v, want %v", err, errLaneFull)
	}
	cancel()
	if err := <-waiting; err != context.Canceled {
		t.Errorf("got %v, want %v", err, context.Canceled)
	}
	// Its place is free at once, while the worker is still busy.
	go func() { waiting <- l.do(context.Background(), func() error { return failure }) }()
	synctest.Wait()
	leave()
	if err := <-waiting; err != failure {
		t.Errorf("got %v, want %v", err, failure)
	}
	if ran.Load() {
		t.Error("a job ran that its caller had withdrawn")
	}
}

// Jobs start in the order they came, whichever of them are withdrawn, and none waits while a worker
// is idle.
func TestLaneOrder(t *testing.T) { synctest.Test(t, testLaneOrder) }

func testLaneOrder(t *testing.T) {
	const jobs = 20
	l := newLane(1, jobs)
	defer l.close()
	leave := occupy(t, l)
	var order []int // appended to by the only worker
	var callers sync.WaitGroup
	for i := range jobs {
		ctx, cancel := context.WithCancel(t.Context())
		callers.Go(func() {
			err := l.do(ctx, func() error { order = append(order, i); return nil })
			if withdrawn := i%3 == 0; withdrawn != errors.Is(err, context.Canceled) {
				t.Errorf("job %d: %v", i, err)
			}
		})
		synctest.Wait()
		defer cancel()
		if i%3 == 0 {
			cancel()
		}
	}
	synctest.Wait()
	leave()
	callers.Wait()
	if want := []int{1, 2, 4, 5, 7, 8, 10, 11, 13, 14, 16, 17, 19}; !slices.Equal(order, want) {
		t.Errorf("got %v, want %v", order, want)
	}
	// As many jobs as there are idle workers come on top of the limit.
	two := newLane(2, 1)
	defer two.close()
	synctest.Wait()
	release := make(chan struct{})
	for range 3 {
		callers.Go(func() {
			if err := two.do(t.Context(), func() error { <-release; return nil }); err != nil {
				t.Error(err)
			}
		})
	}
	synctest.Wait()
	if err := two.do(t.Context(), func() error { return nil }); err != errLaneFull {
		t.Errorf("got %v, want %v", err, errLaneFull)
	}
	close(release)
	callers.Wait()
}

// Closing a lane lets the running job end and abandons the waiting one.
func TestLaneClose(t *testing.T) { synctest.Test(t, testLaneClose) }

func testLaneClose(t *testing.T) {
	l := newLane(1, 1)
	leave := occupy(t, l)
	waiting := make(chan error)
	go func() { waiting <- l.do(context.Background(), func() error { return nil }) }()
	synctest.Wait()
	closed := make(chan struct{})
	go func() { l.close(); close(closed) }()
	if err := <-waiting; err != errLaneClosed {
		t.Errorf("got %v, want %v", err, errLaneClosed)
	}
	leave()
	<-closed
}

// Light queries run while the lane is busy; heavy ones wait for it, hold no memory beyond their
// reservation, and are refused when too many wait.
func TestHeavyAndLight(t *testing.T) {
	store := newFakeStore(t, 8)
	options := func(o *Options) { o.Store, o.LaneWorkers, o.Limits.LaneQueue = store, 1, 1 }
	inBubble(t, options, func(t *testing.T, s *Server) {
		leave := occupy(t, s.service.lane)
		call := `{"jsonrpc":"2.0","id":1,"method":"eth_getLogs","params":[{"fromBlock":"0x1"}]}`
		want := askAlone(t, s, call)

		store.onCost = func() (uint64, error) { return laneCost, nil }
		heavy := make(chan string)
		go func() { heavy <- askAlone(t, s, call) }()
		synctest.Wait()
		if got := askAlone(t, s, call); !strings.Contains(got, `{"code":-32005,"message":"rate limited: too many heavy queries at once","data":{"reason":"concurrency_limit_exceeded","limit":1}}`) {
			t.Errorf("got %s", got)
		}
		leave()
		if got := <-heavy; got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	})
}

// Heavy queries wait for response memory before they enter the lane.
func TestHeavyWaitsForMemoryFirst(t *testing.T) {
	store := newFakeStore(t, 8)
	store.onCost = func() (uint64, error) { return laneCost, nil }
	options := func(o *Options) {
		o.Store, o.LaneWorkers, o.Limits.MaxResponseBytes, o.Limits.InFlightResponseBytes = store, 1, 1<<20, 1<<20
	}
	inBubble(t, options, func(t *testing.T, s *Server) {
		b := s.service.memory.budget
		if err := b.acquire(context.Background(), 1); err != nil {
			t.Fatal(err)
		}
		done := make(chan string)
		go func() {
			done <- askAlone(t, s, `{"jsonrpc":"2.0","id":1,"method":"eth_getLogs","params":[{"fromBlock":"0x1"}]}`)
		}()
		synctest.Wait()
		if n := len(b.mu.waiting); n != 1 {
			t.Errorf("%d wait for memory", n)
		}
		if err := s.service.lane.do(context.Background(), func() error { return nil }); err != nil {
			t.Errorf("the lane is held up: %v", err)
		}
		b.release(1)
		if got := <-done; !strings.Contains(got, `"result":[{`) {
			t.Errorf("got %s", got)
		}
	})
}

// RPC-131: a block that is replaced between finding its hash and reading its logs fails the
// call; the logs of the replacement are never returned.
func TestReplacedBlock(t *testing.T) {
	store := newFakeStore(t, 8)
	store.swapHash = true
	s := startServer(t, store, nil)
	got := s.post(fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"eth_getLogs","params":[{"blockHash":"%s"}]}`, store.blocks[3].Hash))
	if want := `{"jsonrpc":"2.0","id":1,"error":{"code":-32004,"message":"Data unavailable","data":{"reason":"block_hash_not_retained","retryable":false}}}`; got != want {
		t.Errorf("got %s", got)
	}
	store.swapHash = false
	// RPC-130: by hash, the logs are those of that block.
	byHash := s.post(fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"eth_getLogs","params":[{"blockHash":"%s"}]}`, store.blocks[3].Hash))
	if byNumber := s.post(`{"jsonrpc":"2.0","id":1,"method":"eth_getLogs","params":[{"fromBlock":"0x3","toBlock":"0x3"}]}`); byHash != byNumber || !strings.Contains(byHash, `"0x3"`) {
		t.Errorf("by hash %s, by number %s", byHash, byNumber)
	}
}

// A store that misses blocks it said it covers is not believed: the hole is an error.
func TestHoleInsideCoverage(t *testing.T) {
	store := newFakeStore(t, 8)
	store.onLogs = func(context.Context) error {
		return fmt.Errorf("scan: %w", &chain.NotRetainedError{Range: chain.Range{From: 4, To: 6}})
	}
	s := startServer(t, store, nil)
	got := s.post(`{"jsonrpc":"2.0","id":1,"method":"eth_getLogs","params":[{"fromBlock":"0x1"}]}`)
	if !strings.Contains(got, jsonrpc.ReasonLogRange) || !strings.Contains(got, `"missing":{"fromBlock":"0x4","toBlock":"0x5"}`) {
		t.Errorf("got %s", got)
	}
}

// Following hints always ends and always finds every log, whatever the limits: a client that
// splits its query as it is told gets what one large answer would have held.
func TestFollowingHints(t *testing.T) {
	store := newFakeStore(t, 40)
	o := Options{Store: store, Network: testNetwork(), newEncoder: stubbed(stubEncoder{})}.withDefaults()
	s := newService(o)
	defer s.close()
	rapid.Check(t, func(t *rapid.T) {
		// Block 3 has six logs of at most 90 bytes: every block fits.
		s.limits.MaxLogResults = rapid.IntRange(6, 60).Draw(t, "results")
		s.limits.MaxResponseBytes = rapid.IntRange(700, 5000).Draw(t, "bytes")
		first := rapid.Uint64Range(0, 39).Draw(t, "first")
		last := rapid.Uint64Range(first, 39).Draw(t, "last")
		want := 0
		for n := first; n <= last; n++ {
			want += len(store.blocks[n].Logs)
		}
		got := 0
		for from, to, steps := first, last, 0; from <= last; steps++ {
			if steps > 100 {
				t.Fatal("no end")
			}
			response := runBody(s, fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"eth_getLogs","params":[{"fromBlock":"%#x","toBlock":"%#x"}]}`, from, to))
			if _, hint, limited := strings.Cut(response, "Try with this block range ["); limited {
				var hinted uint64
				var end uint64
				if _, err := fmt.Sscanf(hint, "0x%x, 0x%x]", &hinted, &end); err != nil || hinted != from || end >= to {
					t.Fatalf("hint %.30s for [%#x, %#x]: %v", hint, from, to, err)
				}
				to = end
				continue
			}
			if !strings.Contains(response, `"result":[`) {
				t.Fatalf("got %s", response)
			}
			got += strings.Count(response, `"logIndex"`)
			from, to = to+1, last
		}
		if got != want {
			t.Fatalf("got %d logs, want %d", got, want)
		}
	})
}

// runBody answers a body without a transport.
func runBody(s *service, body string) string {
	x := new(exchange)
	x.open(s, context.Background())
	defer x.release()
	x.body = append(x.body, body...)
	x.run()
	return string(x.out.buf)
}

func TestFirstMissing(t *testing.T) {
	coverage := []chain.Range{{From: 2, To: 5}, {From: 7, To: 9}}
	for _, test := range []struct{ blocks, want chain.Range }{
		{chain.Range{From: 2, To: 5}, chain.Range{}},
		{chain.Range{From: 3, To: 4}, chain.Range{}},
		{chain.Range{From: 0, To: 5}, chain.Range{From: 0, To: 2}},
		{chain.Range{From: 0, To: 1}, chain.Range{From: 0, To: 1}},
		{chain.Range{From: 4, To: 8}, chain.Range{From: 5, To: 7}},
		{chain.Range{From: 4, To: 6}, chain.Range{From: 5, To: 6}},
		{chain.Range{From: 5, To: 7}, chain.Range{From: 5, To: 7}},
		{chain.Range{From: 8, To: 12}, chain.Range{From: 9, To: 12}},
		{chain.Range{From: 9, To: 10}, chain.Range{From: 9, To: 10}},
	} {
		got := firstMissing(test.blocks, coverage)
		if got != test.want && !(got.Empty() && test.want.Empty()) {
			t.Errorf("%v: got %v, want %v", test.blocks, got, test.want)
		}
	}
	if got := firstMissing(chain.Range{From: 1, To: 3}, nil); got != (chain.Range{From: 1, To: 3}) {
		t.Errorf("no coverage: got %v", got)
	}
}
