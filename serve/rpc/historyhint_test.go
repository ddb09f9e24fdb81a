package rpc

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/leani-go/leani/api/jsonrpc"
	"github.com/leani-go/leani/chain"
)

// limited is a history that takes so many blocks a request.
type limited struct {
	*fakeHistory
	blocks uint64
}

func (l *limited) Abilities() HistoryAbilities {
	a := l.fakeHistory.Abilities()
	a.MaximumBlocks = l.blocks
	return a
}

func (l *limited) Fetch(ctx context.Context, r HistoryRequest, reader HistoryReader) error {
	var blocks uint64
	for _, run := range r.Runs {
		blocks += run.Len()
	}
	if blocks > l.blocks {
		return &HistoryError{jsonrpc.ReasonHistoryRange, errors.New("too many blocks")}
	}
	return l.fakeHistory.Fetch(ctx, r, reader)
}

// Whoever follows the ranges that are proposed when too many blocks are missing finds all logs.
func TestHistoryRangeHint(t *testing.T) {
	whole := startWhole(t, nil)
	for _, limit := range []uint64{1, 3, 7, 12} {
		s, _ := startHistory(t, []chain.Range{{From: 2, To: 6}, {From: 9, To: 10}, {From: 30, To: 40}}, func(_ *fakeStore, h *fakeHistory, o *Options) {
			o.History = &limited{h, limit}
		})
		const last = 39
		for from, refused := uint64(0), false; from <= last; {
			to := uint64(last)
			got := s.post(logsOf(from, to, ""))
			if strings.Contains(got, jsonrpc.ReasonHistoryRange) {
				refused = true
				var first, end, said uint64
				_, data, _ := strings.Cut(got, `"retryable":false,`)
				if _, err := fmt.Sscanf(data, `"from":"0x%x","to":"0x%x","limit":%d`, &first, &end, &said); err != nil || first != from || end < from || end >= last || said != limit {
					t.Fatalf("limit %d from %d: got %s: %v", limit, from, got, err)
				}
				if wider := s.post(logsOf(from, end+1, "")); !strings.Contains(wider, jsonrpc.ReasonHistoryRange) {
					t.Errorf("limit %d: the range %d to %d is not the largest", limit, from, end)
				}
				to = end
				got = s.post(logsOf(from, to, ""))
			}
			if want := whole.post(logsOf(from, to, "")); got != want {
				t.Errorf("limit %d: %d to %d: got %.300s want %.300s", limit, from, to, got, want)
			}
			if from = to + 1; from > last && !refused {
				t.Errorf("limit %d: nothing was refused", limit)
			}
		}
	}
}

// What no source has is named; a single block names itself.
func TestHistoryNobodyHasHint(t *testing.T) {
	s, _ := startHistory(t, []chain.Range{{From: 0, To: 3}, {From: 9, To: 40}}, func(_ *fakeStore, h *fakeHistory, _ *Options) { h.sources = nil })
	if got := s.post(logsOf(1, 20, "")); !strings.Contains(got, `"reason":"no_viable_historical_source","retryable":false,"missing":{"fromBlock":"0x3","toBlock":"0x8"}}`) {
		t.Errorf("got %s", got)
	}
	wantReason(t, s, callsOf(5)[0], jsonrpc.ReasonNoHistorySource, false)
}
