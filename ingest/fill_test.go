package ingest

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"github.com/leani-go/leani/chain"
	"github.com/leani-go/leani/ingest/era"
	"github.com/leani-go/leani/ingest/verify"
)

func newFakeSink(source *fakeSource) *fakeSink {
	return &fakeSink{source: source, align: 1000, pause: func(string) {}}
}

// A run is cut once its time has passed, at the next block or while nothing comes; the time of the
// next one begins with its first block.
func TestRunsAreCutInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := newFakeSource(100)
		sink := newFakeSink(source)
		gate := make(chan struct{})
		sink.pause = func(label string) {
			if label == "add" { // 200 blocks take 20 seconds
				time.Sleep(100 * time.Millisecond)
			}
		}
		source.pause = func(label string) {
			if label == "prove file-100" {
				<-gate
			}
		}
		done := make(chan error)
		go func() {
			_, err := Fill(context.Background(), Options{
				Source: source, Sink: sink.open, Ranges: []chain.Range{{From: 0, To: testBlocks}}, Workers: 2, CutAfter: 3 * time.Second,
			})
			done <- err
		}()
		time.Sleep(time.Hour) // the second file does not get proven
		synctest.Wait()
		if len(sink.added) != 100 || sink.Pending() != 0 || len(sink.sealing)+len(sink.durable) != 100 {
			t.Errorf("%d blocks added, %d of them in an open run", len(sink.added), sink.Pending())
		}
		// 31 blocks fit in a run: the first one is what starts its time.
		if sink.cuts != 4 {
			t.Errorf("%d cuts, want 4", sink.cuts)
		}
		close(gate)
		if err := <-done; err != nil || sink.problem != nil || len(sink.durable) != testBlocks {
			t.Error(err, sink.problem, len(sink.durable))
		}
	})
}

// After a cancellation the last commit may take some time, and no longer.
func TestGraceOfTheLastCommit(t *testing.T) {
	for _, c := range []struct {
		takes     time.Duration
		committed bool
	}{{5 * time.Second, true}, {DefaultSealGrace + time.Second, false}} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			source := newFakeSource()
			sink := newFakeSink(source)
			sink.pause = func(label string) {
				switch {
				case label == "add" && sink.adds == 50:
					cancel()
				case label == "close":
					select {
					case <-time.After(c.takes):
					case <-sink.ctx.Done():
					}
				}
			}
			begin := time.Now()
			result, err := Fill(ctx, Options{Source: source, Sink: sink.open, Ranges: []chain.Range{{From: 0, To: testBlocks}}})
			if !errors.Is(err, context.Canceled) || errors.Is(err, errGrace) == c.committed {
				t.Errorf("got %v", err)
			}
			if len(sink.added) != 51 || (result.Committed == 51) != c.committed {
				t.Errorf("%d blocks added, %d committed", len(sink.added), result.Committed)
			}
			if took := time.Since(begin); took > DefaultSealGrace {
				t.Errorf("took %v", took)
			}
			if c.committed && err != context.Canceled {
				t.Errorf("got %#v, want the context's error as it is", err)
			}
		})
	}
}

// Only equal hashes join a range with what is retained beside it. INV-14
func TestNeighbours(t *testing.T) {
	blocks := testChain()
	r := chain.Range{From: 40, To: 90}
	below, above := blocks[39].Hash, blocks[89].Hash // what retained blocks 39 and 90 say
	for _, c := range []struct {
		name         string
		below, above *common.Hash
		added        int
		check        verify.Check
	}{
		{"nothing retained", nil, nil, 50, 0},
		{"both join", &below, &above, 50, 0},
		{"below differs", &above, nil, 0, verify.CheckParent},
		{"above differs", &below, &below, 49, verify.CheckHash},
		{"the one above differs, none below", nil, &below, 49, verify.CheckHash},
	} {
		source := newFakeSource(60)
		sink := newFakeSink(source)
		_, err := Fill(context.Background(), Options{
			Source: source, Sink: sink.open, Ranges: []chain.Range{r},
			ExpectedParent: func(n uint64) (common.Hash, bool) {
				side := map[uint64]*common.Hash{r.From: c.below, r.To: c.above}[n]
				if side == nil {
					return common.Hash{}, false
				}
				return *side, true
			},
		})
		var check *verify.Error
		if errors.As(err, &check); (check == nil) != (c.check == 0) || check != nil && check.Check != c.check || len(sink.durable) != c.added {
			t.Errorf("%s: %d blocks committed, error %v", c.name, len(sink.durable), err)
		}
	}
}

func TestNothingToDo(t *testing.T) {
	for _, ranges := range [][]chain.Range{nil, {{From: 3, To: 3}, {From: 9, To: 2}}} {
		source := newFakeSource()
		result, err := Fill(context.Background(), Options{
			Source: source, Ranges: ranges,
			Sink: func(context.Context, func(chain.Range)) Sink { t.Error("sink opened"); return discard{} },
		})
		if err != nil || result != (Result{}) || source.opens != 0 {
			t.Error(result, err, source.opens)
		}
	}
}

func TestBadOptions(t *testing.T) {
	_, err := Fill(context.Background(), Options{Workers: -1, MemoryBytes: -5, Ranges: []chain.Range{{From: 4, To: 9}, {From: 8, To: 12}}})
	for _, want := range []string{"Source is missing", "Sink is missing", "Workers is negative: -1", "MemoryBytes is negative: -5", "[8, 12) begins before the end of [4, 9)"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not in %v", want, err)
		}
	}
}

func TestJoinRanges(t *testing.T) {
	got, err := joinRanges([]chain.Range{{From: 0, To: 0}, {From: 1, To: 4}, {From: 4, To: 6}, {From: 9, To: 9}, {From: 8, To: 9}})
	if want := []chain.Range{{From: 1, To: 6}, {From: 8, To: 9}}; err != nil || !slices.Equal(got, want) {
		t.Error(got, err)
	}
}

// holes is a source without some blocks.
type holes struct{ *fakeSource }

func (holes) Plan(context.Context, chain.Range) ([]Extent, error) {
	return nil, &era.HoleError{Missing: []chain.Range{{From: 7, To: 9}}}
}

// Blocks that the source does not have are an error before anything is done. SRC-024
func TestSourceWithoutBlocks(t *testing.T) {
	_, err := Fill(context.Background(), Options{
		Source: holes{newFakeSource()}, Ranges: []chain.Range{{From: 0, To: 9}},
		Sink: func(context.Context, func(chain.Range)) Sink { t.Error("sink opened"); return discard{} },
	})
	var hole *era.HoleError
	if !errors.As(err, &hole) {
		t.Errorf("got %v", err)
	}
}

func TestBlockErrorText(t *testing.T) {
	check := &verify.Error{Block: 7, Check: verify.CheckReceiptsRoot, Err: errors.New("got 01 want 02")}
	err := &BlockError{File: "a.ere", Block: 7, Offset: 99, Err: check}
	if got, want := err.Error(), "a.ere: block 7: offset 99: receipts root: got 01 want 02"; got != want {
		t.Errorf("got %s", got)
	}
	err.Err = ErrNoReceipts
	if got := err.Error(); !strings.HasPrefix(got, "a.ere: block 7: offset 99: the file holds no receipts") {
		t.Errorf("got %s", got)
	}
}
