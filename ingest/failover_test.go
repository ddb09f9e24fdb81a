package ingest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/leani-go/leani/chain"
	"github.com/leani-go/leani/ingest/era"
	"github.com/leani-go/leani/ingest/remote"
	"github.com/leani-go/leani/ingest/verify"
)

// candidateOf is a candidate with a fake source.
func candidateOf(id string, priority int, s *fakeSource) Candidate {
	return Candidate{ID: id, Priority: priority, Open: func(context.Context) (Source, error) { return s, nil }}
}

// sinkOfAny is a sink for the test chain, whatever source a block comes from.
func sinkOfAny(align uint64) *fakeSink {
	s := newFakeSource()
	s.files[0].proven = true
	return &fakeSink{source: s, align: align, pause: func(string) {}}
}

// drawSources makes sources that lack some files and have faults in others.
func drawSources(t *rapid.T) []*fakeSource {
	var sources []*fakeSource
	for i := range rapid.IntRange(2, 3).Draw(t, "sources") {
		label := fmt.Sprintf("source %d: ", i)
		starts := rapid.SliceOfNDistinct(rapid.Uint64Range(1, testBlocks-1), 0, 6, rapid.ID).Draw(t, label+"files")
		slices.Sort(starts)
		s := newFakeSource(starts...)
		for j := len(s.files) - 1; j >= 0; j-- {
			switch rapid.IntRange(0, 9).Draw(t, label+"file") {
			case 0:
				s.files = slices.Delete(s.files, j, j+1)
			case 1:
				s.files[j].fault = faultOpen
			case 2:
				s.files[j].fault = faultDigest
			}
		}
		for range rapid.IntRange(0, 2).Draw(t, label+"bad blocks") {
			n := rapid.Uint64Range(0, testBlocks-1).Draw(t, label+"bad block")
			s.faults[n] = fault(rapid.IntRange(1, int(blockFaults)-1).Draw(t, label+"block fault"))
		}
		sources = append(sources, s)
	}
	return sources
}

// expectation is what the good material of some sources allows.
type expectation struct {
	stop     uint64   // the first block that no source has, or the number of blocks
	failures []string // source and file of each
	supplied map[string]uint64
}

// expect reads block by block from the first source with a file that has not failed.
func expect(sources []*fakeSource, ids []string) expectation {
	e := expectation{supplied: make(map[string]uint64)}
	failed := make(map[*fakeFile]bool)
	holds := func(s *fakeSource, n uint64) *fakeFile {
		if f := s.fileOf(n); f != nil && !failed[f] {
			return f
		}
		return nil
	}
	for n := range uint64(testBlocks) {
		if !slices.ContainsFunc(sources, func(s *fakeSource) bool { return holds(s, n) != nil }) {
			return e
		}
	}
blocks:
	for n := range uint64(testBlocks) {
		e.stop = n
		for i, s := range sources {
			f := holds(s, n)
			switch {
			case f == nil:
			case f.fault != faultNone || s.faults[n] != faultNone:
				failed[f] = true
				e.failures = append(e.failures, ids[i]+"/"+f.name)
			default:
				e.supplied[ids[i]]++
				continue blocks
			}
		}
		return e
	}
	e.stop = testBlocks
	return e
}

// TestFailoverModel: whatever is wrong with the files of several sources, what is stored is what the
// good ones hold, read from the first one that has it, and every failure is reported.
//
// SRC-002, SRC-007, SRC-024, INV-14
func TestFailoverModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		sources := drawSources(t)
		ids := []string{"one", "two", "three"}[:len(sources)]
		var candidates []Candidate
		for i, s := range sources {
			candidates = append(candidates, candidateOf(ids[i], 10*i, s))
		}
		slices.Reverse(candidates) // the order of the list means nothing
		want := expect(sources, ids)
		sink := sinkOfAny(rapid.SampledFrom([]uint64{7, 50, 1000}).Draw(t, "align"))
		var told []string
		var progress Result
		outcome, err := FillFrom(context.Background(), candidates, Options{
			Ranges:  []chain.Range{{From: 0, To: testBlocks}},
			Sink:    sink.open,
			Workers: rapid.IntRange(1, 4).Draw(t, "workers"),
			Progress: func(r Result) {
				if r.Blocks < progress.Blocks || r.Committed < progress.Committed {
					sink.breach("progress goes back: %+v after %+v", r, progress)
				}
				progress = r
			},
		}, func(f *Failure) { told = append(told, f.Source+"/"+f.File) })

		if sink.problem != nil {
			t.Fatal(sink.problem)
		}
		if all := numbersOf([]chain.Range{{From: 0, To: want.stop}}); !slices.Equal(sink.durable, all) || !slices.Equal(sink.added, all) {
			t.Fatalf("committed %v, want %d blocks; error %v", sink.durable, want.stop, err)
		}
		if !slices.Equal(told, want.failures) || len(outcome.Failures) != len(told) {
			t.Fatalf("failures %v, want %v", told, want.failures)
		}
		for _, id := range ids {
			if outcome.Supplied[id] != want.supplied[id] {
				t.Fatalf("supplied %v, want %v", outcome.Supplied, want.supplied)
			}
		}
		if outcome.Blocks != want.stop || outcome.Committed != want.stop {
			t.Fatalf("outcome %+v, want %d blocks", outcome.Result, want.stop)
		}
		for _, s := range sources {
			if s.open != 0 {
				t.Fatalf("%d files left open", s.open)
			}
		}
		if want.stop == testBlocks {
			if err != nil {
				t.Fatal(err)
			}
			return
		}
		var exhausted *SourcesError
		if !errors.As(err, &exhausted) || len(exhausted.Sources) != len(sources) {
			t.Fatalf("got %v", err)
		}
		if strings.Contains(err.Error(), "BUG") {
			t.Fatal(err)
		}
		for _, id := range ids {
			if !strings.Contains(err.Error(), "source "+id+": ") {
				t.Fatalf("%v does not name source %s", err, id)
			}
		}
	})
}

// unavailable is a source that stops answering.
type unavailable struct {
	*fakeSource
	opens int // until then
	plans int
}

var errUnavailable = &remote.Error{File: "https://mirror.test/a", Err: &remote.StatusError{Code: 503}}

func (u *unavailable) Open(ctx context.Context, name string, limits Limits) (File, error) {
	if u.opens--; u.opens < 0 {
		return nil, errUnavailable
	}
	return u.fakeSource.Open(ctx, name, limits)
}

func (u *unavailable) Plan(ctx context.Context, r chain.Range) ([]Extent, error) {
	if u.plans--; u.plans < 0 {
		return nil, errUnavailable
	}
	return u.fakeSource.Plan(ctx, r)
}

// A source of which three files in a row are not available is not asked for the others.
func TestSetAside(t *testing.T) {
	first := &unavailable{newFakeSource(10, 20, 30, 40, 50, 60), 2, 100}
	second := newFakeSource()
	sink := sinkOfAny(1000)
	outcome, err := FillFrom(t.Context(), []Candidate{
		{ID: "first", Open: func(context.Context) (Source, error) { return first, nil }}, candidateOf("second", 0, second),
	}, Options{Ranges: []chain.Range{{From: 0, To: testBlocks}}, Sink: sink.open}, nil)
	if err != nil || len(sink.durable) != testBlocks {
		t.Fatal(err)
	}
	// The files at 20, 30 and 40 fail; those behind them are planned only once.
	if len(outcome.Failures) != 3 || outcome.Failures[2].Block != 40 || outcome.Supplied["first"] != 20 {
		t.Errorf("%v, %v", outcome.Failures, outcome.Supplied)
	}
}

// Candidates that cannot be opened or asked are named, and the others are read.
func TestDeadSources(t *testing.T) {
	dead := Candidate{ID: "dead", Open: func(context.Context) (Source, error) { return nil, errFakeOpen }}
	mute := Candidate{ID: "mute", Priority: 1, Open: func(context.Context) (Source, error) { return &unavailable{newFakeSource(), 0, 0}, nil }}
	sink := sinkOfAny(1000)
	o := Options{Ranges: []chain.Range{{From: 0, To: testBlocks}}, Sink: sink.open}
	outcome, err := FillFrom(t.Context(), []Candidate{dead, mute, candidateOf("good", 2, newFakeSource())}, o, nil)
	if err != nil || len(outcome.Failures) != 2 || outcome.Supplied["good"] != testBlocks {
		t.Errorf("%+v, %v", outcome, err)
	}
	_, err = FillFrom(t.Context(), []Candidate{mute, dead}, o, nil)
	if want := "no history source has block 0: source dead: no such file; source mute: fetch https://mirror.test/a: the server answers 503 Service Unavailable"; err == nil || err.Error() != want {
		t.Errorf("got %v", err)
	}
	if _, err = FillFrom(t.Context(), []Candidate{dead}, o, nil); err != errFakeOpen {
		t.Errorf("one candidate: got %v", err)
	}
	if _, err = FillFrom(t.Context(), nil, o, nil); err == nil {
		t.Error("no candidates")
	}
	if outcome, err = FillFrom(t.Context(), []Candidate{dead}, Options{Sink: sink.open}, nil); err != nil || outcome.Blocks != 0 {
		t.Error("nothing to do: ", err)
	}
	if _, err = FillFrom(t.Context(), []Candidate{dead}, Options{Workers: -1, Sink: sink.open}, nil); err == nil {
		t.Error("invalid options")
	}
}

// A failure of the sink and a cancellation are not the fault of a source.
func TestFailoverNotOfASource(t *testing.T) {
	candidates := []Candidate{candidateOf("one", 0, newFakeSource()), candidateOf("two", 0, newFakeSource())}
	sink := sinkOfAny(1000)
	sink.failAdd = 50
	o := Options{Ranges: []chain.Range{{From: 0, To: testBlocks}}, Sink: sink.open}
	if outcome, err := FillFrom(t.Context(), candidates, o, nil); !errors.Is(err, errFakeSink) || len(outcome.Failures) != 0 {
		t.Error(outcome, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if outcome, err := FillFrom(ctx, candidates, o, nil); !errors.Is(err, context.Canceled) || len(outcome.Failures) != 0 {
		t.Error(outcome, err)
	}
}

// A source on another fork is refused where it joins what another one supplied.
func TestFailoverToAnotherFork(t *testing.T) {
	first, second, third := newFakeSource(40), newFakeSource(), newFakeSource()
	first.files[1].fault = faultDigest
	second.faults[40] = faultParent
	sink := sinkOfAny(1000)
	outcome, err := FillFrom(t.Context(), []Candidate{candidateOf("first", 0, first), candidateOf("second", 1, second), candidateOf("third", 2, third)},
		Options{Ranges: []chain.Range{{From: 0, To: testBlocks}}, Sink: sink.open}, nil)
	var digest *era.DigestError
	var check *verify.Error
	if err != nil || len(outcome.Failures) != 2 || !errors.As(outcome.Failures[0], &digest) || !errors.As(outcome.Failures[1], &check) || check.Check != verify.CheckParent {
		t.Errorf("%v, %v", outcome.Failures, err)
	}
	if outcome.Supplied["first"] != 40 || outcome.Supplied["second"] != 0 || outcome.Supplied["third"] != testBlocks-40 {
		t.Error(outcome.Supplied)
	}
}

// partial is a source that says beforehand that its material is not complete.
type partial struct{ *fakeSource }

var errPartial = errors.New("complete capabilities lack receipts")

func (partial) Plan(context.Context, chain.Range) ([]Extent, error) { return nil, errPartial }

// Material that is not complete is never taken where complete material is needed, whether a source says so
// beforehand or a file shows it.
//
// SRC-003
func TestPartialSources(t *testing.T) {
	blocks := testChain()
	without := eraFolderOf(t, map[string][]byte{
		"test-a.ere": eraFileOf(blocks[:30], true), "test-b.ere": eraFileOf(blocks[30:60], false), "test-c.ere": eraFileOf(blocks[60:], true),
	}, nil)
	sink := sinkOfAny(1000)
	candidates := []Candidate{
		{ID: "partial", Priority: 1, Open: func(context.Context) (Source, error) { return partial{newFakeSource()}, nil }},
		{ID: "without", Priority: 2, Open: func(context.Context) (Source, error) { return without, nil }},
		candidateOf("complete", 3, newFakeSource()),
	}
	o := Options{Ranges: []chain.Range{{From: 0, To: testBlocks}}, Sink: sink.open}
	outcome, err := FillFrom(t.Context(), candidates, o, nil)
	if err != nil || sink.problem != nil || len(sink.durable) != testBlocks {
		t.Fatal(outcome, err, sink.problem)
	}
	if f := outcome.Failures; len(f) != 2 || !errors.Is(f[0], errPartial) || !errors.Is(f[1], ErrNoReceipts) || f[1].Block != 30 {
		t.Error(f)
	}
	if s := outcome.Supplied; s["partial"] != 0 || s["without"] != testBlocks-30 || s["complete"] != 30 {
		t.Error(s)
	}
	sink = sinkOfAny(1000)
	o.Sink = sink.open
	if _, err := FillFrom(t.Context(), candidates[:2], o, nil); !errors.Is(err, errPartial) || !errors.Is(err, ErrNoReceipts) || len(sink.durable) != 30 {
		t.Error(len(sink.durable), err)
	}
}

// refusing is a sink that refuses a block of a source once.
type refusing struct {
	Sink
	block *uint64
}

func (r refusing) Add(b *chain.Block) error {
	if b.Number == *r.block {
		*r.block = testBlocks
		return &RefusedError{errors.New("of another chain")}
	}
	return r.Sink.Add(b)
}

// A block that the sink refuses is the fault of its source, and the run that it would be part of is given up.
func TestRefusedBlock(t *testing.T) {
	sink := sinkOfAny(7)
	bad := uint64(52)
	outcome, err := FillFrom(t.Context(), []Candidate{candidateOf("first", 1, newFakeSource(30)), candidateOf("second", 2, newFakeSource())},
		Options{Ranges: []chain.Range{{From: 0, To: testBlocks}}, Sink: func(ctx context.Context, committed func(chain.Range)) Sink {
			return refusing{sink.open(ctx, committed), &bad}
		}}, nil)
	var refused *RefusedError
	if err != nil || len(sink.durable) != testBlocks || len(outcome.Failures) != 1 || !errors.As(outcome.Failures[0], &refused) {
		t.Fatal(outcome, err, sink.durable)
	}
	if outcome.Failures[0].Block != 49 || outcome.Supplied["first"] != 49 {
		t.Error(outcome.Failures[0].Block, outcome.Supplied)
	}
}

// A sink that does not say what became durable gets every block once.
func TestSilentSink(t *testing.T) {
	blocks := 0
	outcome, err := FillFrom(t.Context(), []Candidate{candidateOf("one", 0, newFakeSource(30))}, Options{
		Ranges: []chain.Range{{From: 0, To: testBlocks}},
		Sink:   func(context.Context, func(chain.Range)) Sink { return silent{&blocks} },
	}, nil)
	if err != nil || blocks != testBlocks || outcome.Blocks != testBlocks || outcome.Committed != 0 {
		t.Error(blocks, outcome, err)
	}
}

// silent is a sink that counts blocks and says nothing.
type silent struct{ blocks *int }

func (s silent) Add(*chain.Block) error { *s.blocks++; return nil }
func (silent) Cut() error               { return nil }
func (silent) Pending() int             { return 0 }
func (silent) Close(bool) error         { return nil }
