package ingest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/leani-go/leani/chain"
	"github.com/leani-go/leani/ingest/era"
	"github.com/leani-go/leani/ingest/verify"
)

func TestMain(m *testing.M) {
	panicInWorker()
	goleak.VerifyTestMain(m)
}

// otherBlock is a block that is right by itself but not part of the test chain.
func otherBlock(number uint64, parent common.Hash) chain.Block {
	return makeBlock(number, parent, rand.New(rand.NewPCG(number, 7)))
}

// schedule decides in which order everything that takes time goes on. It runs in a synctest bubble:
// when all goroutines wait, it lets one of them continue, lets the time of a run pass, or cancels.
type schedule struct {
	random *rand.Rand

	mu     sync.Mutex
	paused []pausedCall
	timers []timer
}

type pausedCall struct {
	label  string
	resume chan struct{}
}

type timer struct {
	after time.Duration
	fire  chan time.Time
}

func (s *schedule) pause(label string) {
	p := pausedCall{label, make(chan struct{})}
	s.mu.Lock()
	s.paused = append(s.paused, p)
	s.mu.Unlock()
	<-p.resume
}

func (s *schedule) after(d time.Duration) <-chan time.Time {
	t := timer{d, make(chan time.Time, 1)}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.timers = append(s.timers, t)
	return t.fire
}

// step lets one thing happen and returns false when there is nothing to happen. Its choice depends
// on what waits, not on which goroutine came first.
func (s *schedule) step() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.timers) > 0 && s.random.IntN(8) == 0 {
		slices.SortStableFunc(s.timers, func(a, b timer) int { return cmp.Compare(a.after, b.after) })
		i := s.random.IntN(len(s.timers))
		s.timers[i].fire <- time.Time{}
		s.timers = slices.Delete(s.timers, i, i+1)
		return true
	}
	if len(s.paused) == 0 {
		return false
	}
	slices.SortStableFunc(s.paused, func(a, b pausedCall) int { return cmp.Compare(a.label, b.label) })
	i := s.random.IntN(len(s.paused))
	close(s.paused[i].resume)
	s.paused = slices.Delete(s.paused, i, i+1)
	return true
}

// fillScheduled runs Fill under the schedule, and cancels it before the given step. It must be called
// in a bubble.
func fillScheduled(s *schedule, o Options, cancelAt int) (result Result, err error) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	o.After = s.after
	done := make(chan struct{})
	go func() {
		defer close(done)
		result, err = Fill(ctx, o)
	}()
	for step := 0; ; step++ {
		synctest.Wait()
		select {
		case <-done:
			return result, err
		default:
		}
		if step == cancelAt {
			cancel()
		} else if !s.step() {
			panic("deadlock: everything waits")
		}
	}
}

// scenario is a random fill.
type scenario struct {
	seed        uint64
	starts      []uint64 // of the files after the first
	ranges      []chain.Range
	options     Options
	faults      map[uint64]fault
	fileFaults  map[int]fault
	badParentAt int // position among the ends of ranges, -1 for none
	align       uint64
	failAdd     int
	failCut     int
	cancelAt    int
}

func drawScenario(t *rapid.T) scenario {
	s := scenario{
		seed:     rapid.Uint64().Draw(t, "seed"),
		align:    rapid.SampledFrom([]uint64{7, 50, 1000}).Draw(t, "align"),
		cancelAt: -1, badParentAt: -1,
		faults: make(map[uint64]fault), fileFaults: make(map[int]fault),
	}
	ascending := func(label string, count int) []uint64 {
		list := rapid.SliceOfNDistinct(rapid.Uint64Range(1, testBlocks-1), 0, count, rapid.ID).Draw(t, label)
		slices.Sort(list)
		return list
	}
	s.starts = ascending("files", 6)
	// Every second run between two cuts is a hole; the first one of these is at the start when odd.
	bounds := append(append([]uint64{0}, ascending("holes", 7)...), testBlocks)
	for i := rapid.IntRange(0, 1).Draw(t, "first"); i+1 < len(bounds); i += 2 {
		s.ranges = append(s.ranges, chain.Range{From: bounds[i], To: bounds[i+1]})
	}
	s.options = Options{
		Ranges:       s.ranges,
		Workers:      rapid.IntRange(1, 4).Draw(t, "workers"),
		ActiveChunks: rapid.IntRange(1, 9).Draw(t, "active chunks"),
		MemoryBytes:  rapid.SampledFrom([]int64{1, 300 << 10, 2 << 20, 64 << 20}).Draw(t, "memory"),
	}
	if !rapid.Bool().Draw(t, "trouble") {
		return s
	}
	switch rapid.IntRange(0, 5).Draw(t, "kind of trouble") {
	case 0, 1:
		for range rapid.IntRange(1, 2).Draw(t, "bad blocks") {
			n := rapid.Uint64Range(0, testBlocks-1).Draw(t, "bad block")
			s.faults[n] = fault(rapid.IntRange(1, int(blockFaults)-1).Draw(t, "block fault"))
		}
	case 2:
		i := rapid.IntRange(0, len(s.starts)).Draw(t, "bad file")
		s.fileFaults[i] = rapid.SampledFrom([]fault{faultOpen, faultDigest}).Draw(t, "file fault")
	case 3:
		s.badParentAt = rapid.IntRange(0, max(0, 2*len(s.ranges)-1)).Draw(t, "bad neighbour")
	case 4:
		if rapid.Bool().Draw(t, "add") {
			s.failAdd = rapid.IntRange(1, testBlocks).Draw(t, "failing add")
		} else {
			s.failCut = rapid.IntRange(1, 20).Draw(t, "failing cut")
		}
	case 5:
		s.cancelAt = rapid.IntRange(0, 400).Draw(t, "cancel at")
	}
	return s
}

// wanted are the blocks of the scenario in order.
func (s *scenario) wanted() []uint64 { return numbersOf(s.ranges) }

func numbersOf(ranges []chain.Range) (numbers []uint64) {
	for _, r := range ranges {
		for n := r.From; n < r.To; n++ {
			numbers = append(numbers, n)
		}
	}
	return numbers
}

// stop is the position in wanted of the first block that must not be added, or the number of blocks.
func (s *scenario) stop(source *fakeSource) int {
	wanted := s.wanted()
	for i, n := range wanted {
		if s.faults[n] != faultNone || source.fileOf(n).fault != faultNone {
			return i
		}
		for k, r := range s.ranges {
			if n == r.From && s.badParentAt == 2*k || n+1 == r.To && s.badParentAt == 2*k+1 {
				return i
			}
		}
	}
	return len(wanted)
}

func (s *scenario) source() *fakeSource {
	source := newFakeSource(s.starts...)
	source.faults = s.faults
	for i, f := range s.fileFaults {
		source.files[i].fault = f
	}
	return source
}

// expectedParent knows both neighbours of each range, one of them wrongly.
func (s *scenario) expectedParent(n uint64) (common.Hash, bool) {
	blocks := testChain()
	for k, r := range s.ranges {
		if n == r.From && s.badParentAt == 2*k || n == r.To && s.badParentAt == 2*k+1 {
			return common.Hash{0xbad % 256}, true
		}
	}
	if n == 0 || n > testBlocks {
		return common.Hash{}, false
	}
	return blocks[n-1].Hash, true
}

// TestFillModel runs random fills under random schedules. Whatever goes wrong, exactly the blocks
// before that point are committed, in order, equal to the source, and no file is left open; after
// that a fill of what is missing gives the rest.
//
// SRC-007, SRC-008, SRC-009, INV-14
func TestFillModel(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		s := drawScenario(rt)
		var problem error
		synctest.Test(t, func(*testing.T) { problem = s.run() })
		if problem != nil {
			rt.Fatal(problem)
		}
	})
}

func (s *scenario) run() error {
	source := s.source()
	schedule := &schedule{random: rand.New(rand.NewPCG(s.seed, 0))}
	source.pause = schedule.pause
	sink := &fakeSink{source: source, align: s.align, pause: schedule.pause, failAdd: s.failAdd, failCut: s.failCut}
	o := s.options
	o.Source, o.Sink, o.ExpectedParent = source, sink.open, s.expectedParent
	var told Result
	o.Progress = func(r Result) {
		if r.Blocks < told.Blocks || r.Bytes < told.Bytes || r.Committed < told.Committed || r.Committed > r.Blocks {
			sink.breach("progress goes back: %+v after %+v", r, told)
		}
		told = r
	}
	result, err := fillScheduled(schedule, o, s.cancelAt)

	wanted := s.wanted()
	stop := s.stop(source)
	switch {
	case sink.problem != nil:
		return sink.problem
	case !slices.Equal(sink.added, wanted[:len(sink.added)]) || len(sink.added) > stop:
		return fmt.Errorf("added %v, want the first %d of %v", sink.added, stop, wanted)
	case !slices.Equal(sink.durable, wanted[:len(sink.durable)]):
		return fmt.Errorf("committed %v, want the start of %v", sink.durable, wanted)
	case result.Blocks != uint64(len(sink.added)) || result.Committed != uint64(len(sink.durable)):
		return fmt.Errorf("result %+v, want %d blocks added and %d committed", result, len(sink.added), len(sink.durable))
	case told.Blocks > result.Blocks || err == nil && told != result:
		return fmt.Errorf("last progress %+v, result %+v", told, result)
	case source.open != 0 || source.opens > len(source.files):
		return fmt.Errorf("%d files left open of %d opened", source.open, source.opens)
	case source.busiest > s.options.Workers:
		return fmt.Errorf("%d reads at a time by %d workers", source.busiest, s.options.Workers)
	case len(wanted) > 0 && sink.closed != 1 || len(wanted) == 0 && sink.closed != 0:
		return fmt.Errorf("sink closed %d times", sink.closed)
	}
	for _, f := range source.files {
		if f.proofs > 1 {
			return fmt.Errorf("%s proven %d times", f.name, f.proofs)
		}
	}
	switch {
	case errors.Is(err, errFakeSink):
		if s.failAdd == 0 && s.failCut == 0 {
			return fmt.Errorf("got %v", err)
		}
	case errors.Is(err, errGrace) && errors.Is(err, context.Canceled) && s.cancelAt >= 0: // not all of it is durable
	case len(sink.durable) != len(sink.added):
		return fmt.Errorf("%d blocks added, %d of them committed, error %v", len(sink.added), len(sink.durable), err)
	case errors.Is(err, context.Canceled):
		if s.cancelAt < 0 {
			return fmt.Errorf("got %v", err)
		}
	case len(sink.added) != stop:
		return fmt.Errorf("added %d blocks, want %d; error %v", len(sink.added), stop, err)
	case stop == len(wanted):
		if err != nil {
			return fmt.Errorf("all blocks are good, got %v", err)
		}
	default:
		if problem := s.checkError(source, wanted[stop], err); problem != nil {
			return problem
		}
	}
	return s.resume(sink.durable)
}

// checkError compares an error with what is wrong with a block.
func (s *scenario) checkError(source *fakeSource, n uint64, err error) error {
	file := source.fileOf(n)
	var (
		corrupt *era.CorruptError
		block   *BlockError
		check   *verify.Error
		digest  *era.DigestError
	)
	errors.As(err, &check)
	ok := false
	switch kind := s.faults[n]; {
	case file.fault == faultOpen:
		ok = errors.Is(err, errFakeOpen)
	case file.fault == faultDigest:
		ok = errors.As(err, &digest) && digest.File == file.name
	case kind == faultCorrupt:
		ok = errors.As(err, &corrupt) && corrupt.Block == n && corrupt.File == file.name
	default:
		ok = errors.As(err, &block) && block.Block == n && block.File == file.name && block.Offset/1000 == int64(n)
		switch kind {
		case faultRead:
			ok = ok && errors.Is(err, errFakeRead)
		case faultNoReceipts:
			ok = ok && errors.Is(err, ErrNoReceipts)
		case faultReceipts:
			ok = ok && check != nil && check.Check == verify.CheckTransactionsRoot
		case faultParent:
			ok = ok && check != nil && check.Check == verify.CheckParent
		case faultNumber:
			ok = ok && check != nil && check.Check == verify.CheckNumber
		default: // a neighbour
			ok = ok && check != nil && (check.Check == verify.CheckParent || check.Check == verify.CheckHash)
		}
	}
	if !ok {
		return fmt.Errorf("block %d (block fault %d, file fault %d): got error %v", n, s.faults[n], file.fault, err)
	}
	return nil
}

// resume fills what is missing after the given blocks, without trouble.
func (s *scenario) resume(have []uint64) error {
	source := newFakeSource(s.starts...)
	sink := &fakeSink{source: source, align: s.align, pause: func(string) {}}
	missing := slices.DeleteFunc(s.wanted(), func(n uint64) bool { return slices.Contains(have, n) })
	o := s.options
	o.Source, o.Sink, o.Ranges = source, sink.open, nil
	for _, n := range missing {
		o.Ranges = append(o.Ranges, chain.Range{From: n, To: n + 1})
	}
	if _, err := Fill(context.Background(), o); err != nil || sink.problem != nil {
		return fmt.Errorf("resumed fill: %w", errors.Join(err, sink.problem))
	}
	if !slices.Equal(sink.durable, missing) {
		return fmt.Errorf("resumed fill: committed %v, want %v", sink.durable, missing)
	}
	return nil
}
