package rpc

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/leani-go/leani/api/jsonrpc"
	"github.com/leani-go/leani/chain"
)

// fetching counts the calls of Fetch that run.
type fetching struct {
	*fakeHistory
	running atomic.Int64
}

func (f *fetching) Fetch(ctx context.Context, r HistoryRequest, reader HistoryReader) error {
	f.running.Add(1)
	defer f.running.Add(-1)
	return f.fakeHistory.Fetch(ctx, r, reader)
}

// The retained blocks of a query with holes are queried by the rules of every query: with the place of the fetch given back, in the
// lane from laneCost on, of all parts together. (RPC-143)
func TestHistoryLogsLane(t *testing.T) {
	f := new(fetching)
	var cost uint64
	s, _ := startHistory(t, []chain.Range{{From: 5, To: 10}, {From: 20, To: 40}}, func(store *fakeStore, h *fakeHistory, o *Options) {
		f.fakeHistory, o.History = h, f
		o.LaneWorkers, o.Limits.LaneQueue = 1, 1
		store.onCost = func() (uint64, error) { return cost, nil }
		store.onLogs = func(context.Context) error {
			if n := f.running.Load(); n > 0 {
				t.Errorf("%d places are held while retained blocks are queried", n)
			}
			return nil
		}
	})
	whole := startWhole(t, nil)
	want := whole.post(logsOf(0, 39, ""))
	cost = laneCost / 2
	if got := s.post(logsOf(0, 39, "")); got != want {
		t.Errorf("got %.300s", got)
	}

	lane := s.Server.service.lane
	leave := occupy(t, lane)
	waiting := make(chan error)
	go func() { waiting <- lane.do(context.Background(), func() error { return nil }) }()
	for full := false; !full; { // until it waits, so that there is room for no other
		lane.mu.Lock()
		full = len(lane.waiting) == 1
		lane.mu.Unlock()
	}
	if got := s.post(logsOf(0, 39, "")); !strings.Contains(got, "too many heavy queries at once") {
		t.Errorf("heavy: got %.300s", got)
	}
	cost = laneCost/2 - 1
	if got := s.post(logsOf(0, 39, "")); got != want {
		t.Errorf("light: got %.300s", got)
	}
	cost = laneCost
	if got := s.post(logsOf(10, 19, "")); got != whole.post(logsOf(10, 19, "")) {
		t.Errorf("nothing retained: got %.300s", got)
	}
	leave()
	if err := <-waiting; err != nil {
		t.Error(err)
	}
}

// They have the time of every query too; when the fetch has left less the reason is its.
func TestHistoryLogsTime(t *testing.T) {
	for name, c := range map[string]struct {
		fetch, took time.Duration
		answer      string
	}{
		"a short fetch": {10 * time.Second, 40 * time.Second, `"request timed out"`},
		"a long fetch":  {50 * time.Second, 60 * time.Second, jsonrpc.ReasonHistoryTime},
	} {
		inBubble(t, func(o *Options) {
			store := o.Store.(*fakeStore)
			store.coverage = []chain.Range{{From: 4, To: 8}}
			store.onLogs = func(ctx context.Context) error {
				<-ctx.Done()
				return ctx.Err()
			}
			h := historyOf(store)
			h.before = func(context.Context, HistoryRequest) error {
				time.Sleep(c.fetch) // of the bubble
				return nil
			}
			o.History = h
		}, func(t *testing.T, s *Server) {
			client, done := serve(s)
			_ = client.Close()
			done()
			begin := time.Now()
			if got := askAlone(t, s, logsOf(2, 6, "")); !strings.Contains(got, c.answer) {
				t.Errorf("%s: got %s", name, got)
			}
			if took := time.Since(begin); took != c.took {
				t.Errorf("%s: took %v", name, took)
			}
		})
	}
}

// Fetched logs that alone are too many end the fetch, and the hint counts the retained ones before them.
func TestHistoryLogsEnough(t *testing.T) {
	limits := func(o *Options) { o.Limits.MaxLogResults = 20 }
	whole := startWhole(t, limits)
	var blocks atomic.Int64
	s, _ := startHistory(t, []chain.Range{{From: 0, To: 8}, {From: 38, To: 40}}, func(_ *fakeStore, h *fakeHistory, o *Options) {
		limits(o)
		h.sources[0].change = func(b chain.Block) []chain.Block { blocks.Add(1); return []chain.Block{b} }
	})
	call := logsOf(2, 39, "")
	if got, want := s.post(call), whole.post(call); got != want || !strings.Contains(got, "-32005") {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if n := blocks.Load(); n >= 20 { // of 30; four have twelve logs
		t.Errorf("%d blocks were fetched", n)
	}
}
