package ondemand

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"github.com/leani-go/leani/chain"
	"github.com/leani-go/leani/ingest"
	"github.com/leani-go/leani/ingest/era"
	"github.com/leani-go/leani/ingest/verify"
	"github.com/leani-go/leani/internal/lowpriority"
	"github.com/leani-go/leani/internal/sender"
)

// Request is what is wanted.
type Request struct {
	// Runs are the blocks: ascending, disjoint, not empty.
	Runs []chain.Range
	// Senders are recovered where they are wanted.
	Senders bool
	// Impatient fails with a *BusyError where the request would wait for a place.
	Impatient bool
}

// Reader takes the blocks of a request.
type Reader interface {
	// Begin begins with a source: whatever came from an earlier one is void.
	Begin(id string)
	// Block takes the next block, with all parts but, unless they are wanted, the senders. It is valid until Block
	// returns. A *RejectedError makes the next source begin; any other error ends the request.
	Block(b *chain.Block) error
}

// Fetcher fetches. Close closes it.
type Fetcher struct {
	options Options
	sources []*source // by priority
	files   fileCache

	places  chan *place   // those that are free
	mirrors chan struct{} // the rights to wait for mirrors in a place: fewer than places, if there are several
	waiting chan struct{}

	context  context.Context
	cancel   context.CancelFunc
	running  sync.WaitGroup
	locating chan struct{} // capacity 1

	mu sync.Mutex // of what is noted of sources, and of beginning after the end
}

// place is the memory of a request that runs.
type place struct {
	buffer    era.Buffer
	blocks    []chain.Block
	verifier  verify.Verifier
	recoverer *sender.Recoverer
	mirrors   bool // the request may wait for mirrors
}

// New makes a Fetcher. Sources are opened when they are needed.
func New(o Options) (*Fetcher, error) {
	if err := o.validate(); err != nil {
		return nil, fmt.Errorf("history on demand: %w", err)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	f := &Fetcher{
		options: o, places: make(chan *place, o.Limits.Requests), mirrors: make(chan struct{}, max(1, o.Limits.Requests-1)),
		waiting: make(chan struct{}, o.Limits.Waiting), locating: make(chan struct{}, 1),
		files: fileCache{
			idle: o.Limits.OpenFiles, copies: TemporaryFiles(o.Limits.Requests), now: o.Now, copying: make(chan struct{}, 1),
			entries: make(map[fileKey]*fileEntry),
		},
	}
	f.context, f.cancel = context.WithCancel(context.Background())
	f.files.life, f.files.longest, f.files.running, f.files.panicked = f.context, o.Limits.Time, &f.running, f.panicked
	for range o.Limits.Requests {
		f.places <- nil // made when it is needed
	}
	for range cap(f.mirrors) {
		f.mirrors <- struct{}{}
	}
	for _, s := range o.Sources {
		of := &source{Source: s, now: o.Now, turn: make(chan struct{}, 1)}
		if !s.Copied { // a copy takes disk that others wait for
			of.locate = func(name string, file ingest.File, difference error) { f.locate(s.ID, name, file, difference) }
		}
		f.sources = append(f.sources, of)
	}
	slices.SortStableFunc(f.sources, func(a, b *source) int { return cmp.Compare(a.Priority, b.Priority) })
	return f, nil
}

// begin counts one more that Close waits for, unless that has begun.
func (f *Fetcher) begin() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.context.Err() != nil {
		return false
	}
	f.running.Add(1)
	return true
}

// Close ends what runs, waits for it and closes all sources. A later Fetch fails.
func (f *Fetcher) Close() error {
	f.mu.Lock()
	f.cancel()
	f.mu.Unlock()
	f.running.Wait()
	f.files.close()
	var errs []error
	for _, s := range f.sources {
		errs = append(errs, s.close())
	}
	return errors.Join(errs...)
}

// Fetch gives the blocks of a request to a reader. The error is the reader's own, a *BusyError, an *Error, a *RejectedError, or
// that of a context that was cancelled.
func (f *Fetcher) Fetch(ctx context.Context, request Request, r Reader) error {
	var blocks uint64
	for _, run := range request.Runs {
		blocks += run.Len()
	}
	if limit := f.options.Limits.Blocks; blocks > limit {
		return &Error{Reason: OutOfRange, Err: fmt.Errorf("%d blocks, %d are allowed", blocks, limit)}
	}
	if !f.begin() {
		return fmt.Errorf("fetch history: the node is shutting down: %w", context.Canceled)
	}
	defer f.running.Done()
	ctx, cancel := context.WithTimeout(ctx, f.options.Limits.Time)
	defer cancel()
	defer context.AfterFunc(f.context, cancel)()
	for mirrors := false; ; mirrors = true {
		err := f.attend(ctx, request, mirrors, r)
		if !errors.Is(err, errMirrorsBusy) {
			return err
		}
		if _, err := take(ctx, f, f.mirrors, request.Impatient); err != nil {
			return err
		}
	}
}

// errMirrorsBusy says that a request would wait for a mirror in its place, while as many do so as may. Where no other source
// answers it waits outside and begins anew.
var errMirrorsBusy = errors.New("other requests wait for mirrors")

// attend runs a request in a place. The right to wait for mirrors, if it comes with one, ends with it.
func (f *Fetcher) attend(ctx context.Context, request Request, mirrors bool, r Reader) error {
	p, err := take(ctx, f, f.places, request.Impatient)
	if err != nil {
		if mirrors {
			f.mirrors <- struct{}{}
		}
		return err
	}
	if p == nil {
		p = &place{blocks: make([]chain.Block, f.options.Limits.BufferedBlocks), recoverer: sender.New(f.options.ChainID)}
	}
	p.mirrors = mirrors
	defer func() {
		if p.mirrors {
			f.mirrors <- struct{}{}
		}
		f.places <- p
	}()
	return <-lowpriority.Go(func() error { return f.run(ctx, p, request, r) })
}

// take takes one of what there is, or waits for it as one of those that may wait.
func take[T any](ctx context.Context, f *Fetcher, from <-chan T, impatient bool) (taken T, err error) {
	busy := &BusyError{f.options.Limits.Requests}
	if err := ctx.Err(); err != nil {
		return taken, ended(ctx, nil)
	}
	select {
	case taken = <-from:
		return taken, nil
	default:
	}
	if impatient {
		return taken, busy
	}
	select {
	case f.waiting <- struct{}{}:
	default:
		busy.Limit = f.options.Limits.Waiting
		return taken, busy
	}
	defer func() { <-f.waiting }()
	select {
	case taken = <-from:
		return taken, nil
	case <-ctx.Done():
		return taken, ended(ctx, nil)
	}
}

// run asks source by source.
func (f *Fetcher) run(ctx context.Context, p *place, request Request, r Reader) error {
	var failures []*ingest.Failure
	var rejected *RejectedError // of the best reason
	mirrorsBusy := false
	order := f.order()
	for i, s := range order {
		attempt, cancel := f.share(ctx, len(order)-i)
		deadline, _ := attempt.Deadline()
		brief := time.Until(deadline) < fairTime
		err := f.protected(attempt, p, s, request, r)
		late := attempt.Err() != nil
		cancel()
		p.forget()
		var own *readerError
		switch {
		case err == nil:
			return nil
		case errors.Is(err, errMirrorsBusy): // no failure of it
			mirrorsBusy = true
			continue
		case errors.As(err, &own):
			return own.err
		case ctx.Err() != nil:
			return ended(ctx, failures)
		case late:
			err = fmt.Errorf("%w: the source took its part of the time: %w", errLate, err)
		}
		failures = append(failures, &ingest.Failure{Source: s.ID, Block: request.Runs[0].From, Err: err})
		f.note(s, request, err, late && brief)
		var now *RejectedError
		if errors.As(err, &now) && (rejected == nil || now.Reason < rejected.Reason) {
			rejected = now
		}
	}
	if mirrorsBusy {
		return errMirrorsBusy
	}
	e := exhausted(failures)
	if rejected != nil && rejected.Reason == e.Reason {
		return rejected
	}
	return e
}

var errLate = errors.New("late")

// fairTime is the least time that says something about a source which is not done in it: a client may leave less.
const fairTime = 5 * time.Second

// share gives a source its part of the time: half of what is left, so that one that hangs leaves time for the next; the last
// one has all.
func (f *Fetcher) share(ctx context.Context, left int) (context.Context, context.CancelFunc) {
	deadline, ok := ctx.Deadline()
	if !ok || left == 1 {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, time.Until(deadline)/2)
}

// order is the sources as they are to be asked: those that could not be read lately after the others.
func (f *Fetcher) order() []*source {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := f.options.Now()
	aside := func(s *source) int {
		if !s.failed.IsZero() && now.Sub(s.failed) < asideFor {
			return 1
		}
		return 0
	}
	order := slices.Clone(f.sources)
	slices.SortStableFunc(order, func(a, b *source) int { return cmp.Compare(aside(a), aside(b)) })
	return order
}

// note logs the failure of a source, loudly where it is news and not the doing of clients. A failure for want of time that a
// client left says nothing about the source.
func (f *Fetcher) note(s *source, request Request, err error, hurried bool) {
	var (
		again *rememberedError
		hole  *era.HoleError
	)
	reason, now, text := reasonOf(err), f.options.Now(), err.Error()
	quiet := hurried || errors.As(err, &again) || reason == OverBudget
	if errors.As(err, &hole) { // which blocks are missing is the doing of clients, a mirror's file that does not tell its blocks is not
		unread := slices.DeleteFunc(slices.Clone(hole.Unread), func(err error) bool { return errors.Is(err, ingest.ErrNoReceipts) })
		quiet = quiet || !s.Copied || len(unread) == 0
		text = fmt.Sprint(unread)
	} else {
		quiet = quiet || reason == NotHeld
	}
	f.mu.Lock()
	if reason == Failed && !hurried || reason == Mismatched {
		s.failed = now
	}
	if !quiet && text == s.told && now.Sub(s.toldAt) < tellAgainAfter {
		quiet = true
	} else if !quiet {
		s.told, s.toldAt = text, now
	}
	f.mu.Unlock()
	log := f.options.Logger.Warn
	if quiet {
		log = f.options.Logger.Debug
	}
	log("history source failed on demand", "source", s.ID, "from", request.Runs[0].From, "to", request.Runs[len(request.Runs)-1].To-1,
		"reason", reason.String(), "error", err)
}

// protected is an attempt of which a panic is a failure of the source.
func (f *Fetcher) protected(ctx context.Context, p *place, s *source, request Request, r Reader) (err error) {
	defer func() {
		if v := recover(); v != nil {
			f.panicked(s.ID, v)
			err = fmt.Errorf("panic: %v", v)
		}
	}()
	return f.attempt(ctx, p, s, request, r)
}

// panicked logs a panic, which is being recovered from.
func (f *Fetcher) panicked(id string, v any) {
	f.options.Logger.Error("panic while history was read on demand", "source", id, "panic", v, "stack", string(debug.Stack()))
}

// attempt reads all blocks from one source, again when another list of its files was read meanwhile.
func (f *Fetcher) attempt(ctx context.Context, p *place, s *source, request Request, r Reader) error {
	if extents, ok := f.files.copied(s, request.Runs); ok {
		return f.read(ctx, p, s, extents, request, r)
	}
	if s.Copied && !p.mirrors {
		select {
		case <-f.mirrors:
			p.mirrors = true
		default:
			return errMirrorsBusy
		}
	}
	for {
		extents, list, err := s.plan(ctx, request.Runs)
		if err != nil {
			return err
		}
		if err = f.read(ctx, p, s, extents, request, r); err == nil || ctx.Err() != nil || !s.renew(ctx, list, err) {
			return err
		}
	}
}

// read reads all blocks as they were planned.
func (f *Fetcher) read(ctx context.Context, p *place, s *source, extents []ingest.Extent, request Request, r Reader) error {
	r.Begin(s.ID)
	st := stream{fetcher: f, place: p, request: request, reader: r}
	for _, e := range extents {
		if err := f.readFile(ctx, s, e, &st); err != nil {
			return err
		}
	}
	return nil
}

// readFile reads blocks of one file.
func (f *Fetcher) readFile(ctx context.Context, s *source, e ingest.Extent, st *stream) error {
	l := f.options.Limits
	limits := ingest.Limits{
		BatchBytes: int(l.BlockBytes), BlockBytes: l.BlockBytes, MemoryBytes: 2 * l.BlockBytes, Reads: ingest.NewGate(l.Reads),
	}
	file, err := f.files.get(ctx, fileKey{s, e.File}, e.Digest, func(ctx context.Context) (ingest.File, error) {
		return s.openFile(ctx, e.File, limits)
	})
	if err != nil {
		return err
	}
	defer f.files.put(file)
	return st.read(ctx, file, e)
}

// locate looks for the damage in a file, in the background, one file at a time, and closes it.
func (f *Fetcher) locate(id, name string, file ingest.File, difference error) {
	select {
	case f.locating <- struct{}{}:
	default: // the digest has to do
		_ = file.Close() // was only read
		return
	}
	f.running.Add(1) // the request for which this is runs
	done := lowpriority.Go(func() error {
		err := ingest.LocateDamage(f.context, name, file, difference)
		if f.context.Err() == nil {
			f.options.Logger.Warn("damage of a file of a history source", "source", id, "file", name, "error", err)
		}
		return file.Close()
	})
	go func() { // ends with the search
		defer f.running.Done()
		<-done
		<-f.locating
	}()
}

// stream is the way of blocks from one source to the reader.
type stream struct {
	fetcher *Fetcher
	place   *place
	request Request
	reader  Reader

	input  int64       // bytes of blocks so far, as stored
	run    int         // of the request
	parent common.Hash // of the next block, zero at the start of a run
}

var errNoProgress = errors.New("BUG: the source returned neither blocks nor an error")

// read reads the blocks of an extent.
func (s *stream) read(ctx context.Context, file ingest.File, e ingest.Extent) error {
	for next := e.Range; !next.Empty(); {
		if err := ctx.Err(); err != nil {
			return err
		}
		count, err := s.admit(file, next)
		if err != nil {
			return fmt.Errorf("%s: %w", e.File, err)
		}
		n, failure := file.ReadBlocks(chain.Range{From: next.From, To: next.From + uint64(count)}, &s.place.buffer, s.place.blocks[:count])
		if failure == nil && n == 0 {
			failure = errNoProgress
		}
		for i := range n {
			if err := ctx.Err(); err != nil {
				return err
			}
			number := next.From + uint64(i)
			stored, _ := file.Size(number)
			s.input += stored
			if err := s.block(&s.place.blocks[i], number); err != nil {
				return placed(e.File, err)
			}
		}
		if failure != nil {
			return placed(e.File, failure)
		}
		next.From += uint64(n)
	}
	return nil
}

// placed adds the file to an error of a source that may lack it.
func placed(file string, err error) error {
	var own *readerError
	if errors.As(err, &own) {
		return err
	}
	return fmt.Errorf("%s: %w", file, err)
}

// admit is how many of the next blocks may be read at once.
func (s *stream) admit(file ingest.File, next chain.Range) (count int, err error) {
	limit := s.fetcher.options.Limits.InputBytes
	total := s.input
	for count < len(s.place.blocks) && uint64(count) < next.Len() {
		stored, _ := file.Size(next.From + uint64(count))
		if total += stored; total > limit {
			if count == 0 {
				return 0, &budgetError{what: "stored bytes of the request", block: next.From, need: total, limit: limit}
			}
			break
		}
		count++
	}
	return count, nil
}

// block proves a block and hands it over.
func (s *stream) block(b *chain.Block, number uint64) error {
	for number >= s.request.Runs[s.run].To {
		s.run, s.parent = s.run+1, common.Hash{}
	}
	if !b.HasReceipts {
		return fmt.Errorf("block %d: %w", number, ingest.ErrNoReceipts)
	}
	if err := s.place.verifier.Block(b, verify.Expected{Number: number, ParentHash: s.parent}); err != nil {
		return err
	}
	if check := s.fetcher.options.Check; check != nil {
		if err := check(b); err != nil {
			return &ingest.RefusedError{Err: err}
		}
	}
	b.Senders = b.Senders[:0]
	if s.request.Senders {
		for i, envelope := range b.Transactions {
			from, err := s.place.recoverer.Recover(envelope)
			if err != nil {
				return &ingest.RefusedError{Err: fmt.Errorf("block %d: sender of transaction %d: %w", number, i, err)}
			}
			b.Senders = append(b.Senders, from)
		}
	}
	s.parent = b.Hash
	if err := s.reader.Block(b); err != nil {
		var rejected *RejectedError
		if errors.As(err, &rejected) {
			return err
		}
		return &readerError{err}
	}
	return nil
}

// keptBuffer is how large a buffer is kept for the next request.
const keptBuffer = 8 << 20

// forget drops a large buffer.
func (p *place) forget() {
	if p.buffer.Memory() > keptBuffer {
		p.buffer = era.Buffer{}
		clear(p.blocks)
	}
}
