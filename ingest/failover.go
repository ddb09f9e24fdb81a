package ingest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"

	"github.com/ethereum/go-ethereum/common"

	"github.com/leani-go/leani/chain"
	"github.com/leani-go/leani/ingest/era"
	"github.com/leani-go/leani/ingest/remote"
)

// Candidate is one of several sources.
type Candidate struct {
	ID string // unique; errors and reports name it
	// Priority orders the candidates: the lowest number is read first, and of equal ones the one
	// that is listed first.
	Priority int
	// Open opens the source when it is needed for the first time. Where the source has a method
	// Close, that is called in the end.
	Open func(context.Context) (Source, error)
}

// Failure says why a source was given up: for a file or, when File is empty, altogether.
type Failure struct {
	Source string // id
	File   string
	Block  uint64 // the first one that was not stored then
	Err    error
}

// Error names the source, and the error, which names the file.
func (f *Failure) Error() string { return fmt.Sprintf("source %s: %v", f.Source, f.Err) }

// Unwrap gives the cause.
func (f *Failure) Unwrap() error { return f.Err }

// SourcesError says that no source is left for a block, and why not, source by source.
type SourcesError struct {
	Block   uint64
	Sources []*Failure // in the order in which they are read
}

// Error names the block and each source with its reason.
func (e *SourcesError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "no history source has block %d:", e.Block)
	for i, f := range e.Sources {
		if i > 0 {
			b.WriteByte(';')
		}
		fmt.Fprintf(&b, " %v", f)
	}
	return b.String()
}

// Unwrap gives the reasons.
func (e *SourcesError) Unwrap() []error {
	errs := make([]error, len(e.Sources))
	for i, f := range e.Sources {
		errs[i] = f
	}
	return errs
}

// Outcome is what FillFrom has done.
type Outcome struct {
	Result
	// Failures are all that went wrong with sources, in order. Blocks were read from another source
	// where there is one, so that there can be failures without an error.
	Failures []*Failure
	// Supplied are the blocks that came from each source, by id.
	Supplied map[string]uint64
}

// FillFrom is Fill from several sources; Options.Source is not used. Each block is read from the first
// candidate, by priority, that holds it. When a file of a source fails, what was committed stays, and
// the next candidate that holds the first missing block goes on from there; the file is not read
// again, and a source of which three files in a row were unavailable is read only where no other
// one is left. Failed, if not nil, is told of each failure at once.
//
// The error is that of Fill when the sink or the context is the cause, or when there is one candidate;
// otherwise it is a *SourcesError. When some blocks are in no file of any candidate, nothing is read
// at all.
func FillFrom(ctx context.Context, candidates []Candidate, options Options, failed func(*Failure)) (Outcome, error) {
	f := &failover{caller: options.withDefaults(), failed: failed, names: make(map[place]string), of: make(map[string]place)}
	f.outcome.Supplied = make(map[string]uint64)
	for _, c := range candidates {
		f.candidates = append(f.candidates, &candidate{Candidate: c, failures: make(map[string]*Failure)})
	}
	f.caller.Source = f
	if err := f.caller.validate(); err != nil {
		return f.outcome, fmt.Errorf("fill history: %w", err)
	}
	if len(candidates) == 0 {
		return f.outcome, errors.New("fill history: there is no source")
	}
	f.options = f.caller
	f.options.Sink, f.options.Progress, f.options.ExpectedParent = f.sink, f.report, f.expectedParent
	f.missing, _ = joinRanges(options.Ranges) // valid, as checked before
	err := f.run(ctx)
	for _, c := range f.candidates {
		if closer, ok := c.source.(io.Closer); ok {
			if closeErr := closer.Close(); closeErr != nil {
				err = join([]error{err, fmt.Errorf("close source %s: %w", c.ID, closeErr)})
			}
		}
	}
	return f.outcome, err
}

// candidate is a Candidate with what is known of it.
type candidate struct {
	Candidate
	source   Source
	dead     *Failure            // of the source as a whole
	failures map[string]*Failure // of its files, by the names of extents
	strikes  int                 // failures in a row for being unavailable
	refusals []refusal           // of the last plan
	unread   []string            // errors of files that were noted because blocks are missing
}

// refusal is why a candidate has not some blocks that it was asked for.
type refusal struct {
	blocks chain.Range
	why    *Failure
}

// maximumStrikes is how many of its files may be unavailable in a row before a source is set aside.
const maximumStrikes = 3

// place is a file of a candidate.
type place struct {
	of   *candidate
	file string
}

// supply is a run of blocks that a plan takes from a place.
type supply struct {
	place
	blocks chain.Range
}

// failover is the state of one FillFrom. It is the Source of its fills.
type failover struct {
	options    Options // of the fills
	caller     Options // as given, with defaults
	failed     func(*Failure)
	candidates []*candidate
	outcome    Outcome

	names map[place]string // of the places of all plans, unique
	of    map[string]place // the same the other way round

	last  common.Hash // of the block that was handed over last
	after uint64      // the number of the next one, 0 when there was none

	mu      sync.Mutex
	base    Result        // of the fills before
	missing []chain.Range // not committed yet, guarded by mu
}

// run fills from one plan after the other. Every failed one takes a file out of the next.
func (f *failover) run(ctx context.Context) error {
	for first := true; ; first = false {
		missing := f.remaining()
		if len(missing) == 0 {
			return nil
		}
		plan, gap, err := f.plan(ctx, missing)
		if err != nil {
			return err
		}
		if gap != nil && (first || len(plan) == 0) {
			return f.exhausted(*gap)
		}
		switch culprit, err := f.fill(ctx, plan); {
		case culprit != nil:
			f.giveUp(f.of[culprit.name], err)
		case err != nil:
			return err
		case gap != nil:
			return f.exhausted(*gap)
		default:
			return nil
		}
	}
}

// fill runs a plan and counts what it has done.
func (f *failover) fill(ctx context.Context, plan []supply) (*file, error) {
	var (
		files  []*file
		ranges []chain.Range
	)
	for _, s := range plan {
		name := f.names[s.place]
		if n := len(files); n == 0 || files[n-1].name != name {
			files = append(files, &file{name: name, ready: make(chan struct{}), proven: make(chan struct{})})
		}
		files[len(files)-1].extents = append(files[len(files)-1].extents, s.blocks)
		ranges = append(ranges, s.blocks)
	}
	ranges, _ = joinRanges(ranges) // ascending, as they come from a plan
	result, culprit, err := fillFiles(ctx, f.options, ranges, files)

	f.mu.Lock()
	defer f.mu.Unlock()
	f.base = sum(f.base, result)
	f.outcome.Result = f.base
	for _, s := range plan {
		supplied := s.blocks.Len()
		for _, r := range f.missing {
			supplied -= r.Intersect(s.blocks).Len()
		}
		if supplied > 0 {
			f.outcome.Supplied[s.of.ID] += supplied
			s.of.strikes = 0
		}
	}
	return culprit, err
}

func sum(a, b Result) Result {
	return Result{Blocks: a.Blocks + b.Blocks, Bytes: a.Bytes + b.Bytes, Committed: a.Committed + b.Committed}
}

// giveUp takes a file out of the plans to come.
func (f *failover) giveUp(p place, err error) {
	p.of.failures[p.file] = f.note(&Failure{Source: p.of.ID, File: p.file, Err: err})
	if remote.Unavailable(err) {
		p.of.strikes++
	} else {
		p.of.strikes = 0
	}
}

// note reports a failure.
func (f *failover) note(failure *Failure) *Failure {
	if missing := f.remaining(); len(missing) > 0 {
		failure.Block = missing[0].From
	}
	f.outcome.Failures = append(f.outcome.Failures, failure)
	if f.failed != nil {
		f.failed(failure)
	}
	return failure
}

// plan takes each block from the first candidate that has it, and ends before the first block that
// none has, if there is one. The error is the context's.
func (f *failover) plan(ctx context.Context, missing []chain.Range) (plan []supply, gap *uint64, err error) {
	order := f.order()
	for _, c := range order {
		c.refusals = nil
	}
	for _, r := range missing {
		supplies := f.cover(ctx, order, r)
		if err := ctx.Err(); err != nil {
			return nil, nil, err
		}
		next := r.From
		for _, s := range supplies {
			if s.blocks.From != next {
				break
			}
			plan, next = append(plan, s), s.blocks.To
		}
		if next != r.To {
			return plan, &next, nil
		}
	}
	return plan, nil, nil
}

// cover takes the blocks of r from the first of the candidates, and those that it has not from the
// others. The result is in order and can have gaps.
func (f *failover) cover(ctx context.Context, candidates []*candidate, r chain.Range) []supply {
	if len(candidates) == 0 || r.Empty() || ctx.Err() != nil {
		return nil
	}
	c, others := candidates[0], candidates[1:]
	var supplies []supply
	next := r.From
	for _, extent := range f.ask(ctx, c, r) {
		p := place{c, extent.File}
		if failure := c.failures[extent.File]; failure != nil {
			c.refusals = append(c.refusals, refusal{extent.Range, failure})
			continue
		}
		supplies = append(supplies, f.cover(ctx, others, chain.Range{From: next, To: extent.Range.From})...)
		supplies, next = append(supplies, supply{p, extent.Range}), extent.Range.To
		f.name(p)
	}
	return append(supplies, f.cover(ctx, others, chain.Range{From: next, To: r.To})...)
}

// noteUnread notes, once each, the files that might hold the missing blocks and cannot be read: another source may
// have the blocks, and nobody would learn of the damage. Files without receipts are no failure.
func (f *failover) noteUnread(c *candidate, err error) {
	var hole *era.HoleError
	if !errors.As(err, &hole) {
		return
	}
	for _, unread := range hole.Unread {
		text := unread.Error()
		if errors.Is(unread, ErrNoReceipts) || slices.Contains(c.unread, text) {
			continue
		}
		c.unread = append(c.unread, text)
		f.note(&Failure{Source: c.ID, Err: unread})
	}
}

// ask asks a candidate what it has of a range. A candidate that does not answer is not asked again.
func (f *failover) ask(ctx context.Context, c *candidate, r chain.Range) []Extent {
	var err error
	if c.source == nil && c.dead == nil {
		if c.source, err = c.Open(ctx); err != nil {
			c.source = nil
			if ctx.Err() == nil {
				c.dead = f.note(&Failure{Source: c.ID, Err: err})
			}
		}
	}
	if c.source == nil {
		return nil
	}
	if c.dead != nil {
		return nil
	}
	extents, err := c.source.Plan(ctx, r)
	var holes Holes
	switch {
	case err == nil || ctx.Err() != nil:
	case errors.As(err, &holes):
		c.refusals = append(c.refusals, refusal{r, &Failure{Source: c.ID, Block: r.From, Err: err}})
		f.noteUnread(c, err)
	default:
		c.dead = f.note(&Failure{Source: c.ID, Err: err})
		return nil
	}
	return extents
}

// name gives a place a name that is unique among those of all candidates.
func (f *failover) name(p place) {
	if f.names[p] != "" {
		return
	}
	name := p.file
	if _, taken := f.of[name]; taken {
		name = fmt.Sprintf("%s of source %s", p.file, p.of.ID)
	}
	f.names[p], f.of[name] = name, p
}

// exhausted is the error when no candidate is left for a block.
func (f *failover) exhausted(block uint64) error {
	e := &SourcesError{Block: block}
	for _, c := range f.order() {
		failure := c.dead
		for _, r := range c.refusals {
			if failure == nil && r.blocks.Contains(block) && r.why.File != "" {
				failure = r.why
			}
		}
		for _, r := range c.refusals {
			if failure == nil && r.blocks.Contains(block) {
				failure = r.why
			}
		}
		if failure == nil {
			failure = &Failure{Source: c.ID, Block: block, Err: errNoAnswer}
		}
		e.Sources = append(e.Sources, failure)
	}
	if len(e.Sources) == 1 {
		return e.Sources[0].Err
	}
	return e
}

var errNoAnswer = errors.New("BUG: the source planned around a block without a word")

// order is the candidates as they are to be read.
func (f *failover) order() []*candidate {
	order := slices.Clone(f.candidates)
	aside := func(c *candidate) int {
		if c.strikes >= maximumStrikes {
			return 1
		}
		return 0
	}
	slices.SortStableFunc(order, func(a, b *candidate) int {
		return cmp.Or(cmp.Compare(aside(a), aside(b)), cmp.Compare(a.Priority, b.Priority))
	})
	return order
}

// Plan is not called: fills of a failover are planned by itself.
func (f *failover) Plan(context.Context, chain.Range) ([]Extent, error) {
	return nil, errors.New("BUG: plan of several sources")
}

// Open opens a file of the candidate that it belongs to.
func (f *failover) Open(ctx context.Context, name string, limits Limits) (File, error) {
	p := f.of[name]
	return p.of.source.Open(ctx, p.file, limits)
}

// remaining is what is not committed yet.
func (f *failover) remaining() []chain.Range {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.missing)
}

// sink makes the sink of a fill.
func (f *failover) sink(ctx context.Context, committed func(chain.Range)) Sink {
	return &followedSink{f.caller.Sink(ctx, func(r chain.Range) {
		f.mu.Lock()
		f.missing = chain.Subtract(f.missing, r)
		f.mu.Unlock()
		committed(r)
	}), f}
}

// followedSink is a sink that notes the last block, so that the next fill can go on behind it.
type followedSink struct {
	Sink
	f *failover
}

// Add hands the block over.
func (s *followedSink) Add(b *chain.Block) error {
	err := s.Sink.Add(b)
	if err == nil {
		s.f.last, s.f.after = b.Hash, b.Number+1
	}
	return err
}

// expectedParent knows the block that was handed over last, and what the caller knows.
func (f *failover) expectedParent(n uint64) (common.Hash, bool) {
	if n == f.after && n > 0 {
		return f.last, true
	}
	return f.caller.ExpectedParent(n)
}

// report adds what was done before to the progress of a fill.
func (f *failover) report(r Result) {
	f.mu.Lock()
	total := sum(f.base, r)
	f.mu.Unlock()
	f.caller.Progress(total)
}
