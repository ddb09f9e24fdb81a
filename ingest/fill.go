package ingest

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/leani-go/leani/chain"
)

// Fill reads, verifies and hands over the blocks of the given ranges, in order. It returns what was
// done, also with an error.
//
// When something fails, the blocks before are committed nevertheless and nothing of the bad block or
// after it is added. A block that cannot be taken gives a *BlockError or an *era.CorruptError; a
// file that differs from its digest an *era.DigestError (together with one of the others when a
// block shows the damage), and nothing of that file is added; a source without some of the blocks
// an *era.HoleError or its like, before anything is read. An error of the sink gives up its open
// run.
//
// When ctx is cancelled, Fill stops within a chunk, commits what was added within
// Options.SealGrace, and returns the context's error. A later call with the ranges that are still
// missing goes on from there.
func Fill(ctx context.Context, options Options) (Result, error) {
	o := options.withDefaults()
	if err := o.validate(); err != nil {
		return Result{}, fmt.Errorf("fill history: %w", err)
	}
	ranges, _ := joinRanges(o.Ranges) // valid, as checked before
	files, err := planFiles(ctx, o.Source, ranges)
	if err != nil || len(files) == 0 {
		return Result{}, err
	}
	result, _, err := fillFiles(ctx, o, ranges, files)
	return result, err
}

// fillFiles is Fill of a plan. With an error that is the fault of a file, it names that.
func fillFiles(ctx context.Context, o Options, ranges []chain.Range, files []*file) (Result, *file, error) {
	r := newRun(o, ranges, files)
	err := r.fill(ctx)
	return r.result(), r.culprit, err
}

// run is the state of one Fill.
type run struct {
	options     Options
	limits      Limits
	chunkStored int64 // stored bytes of a chunk of more than one block
	ranges      []chain.Range
	files       []*file

	culprit *file // whose fault the error is, once fill has returned; nil when it is none's

	pool  *pool
	jobs  chan job
	begun chan struct{} // a token for each file after the first that the planner began
	order chan *chunk   // closed after the last one

	mu   sync.Mutex
	done Result // guarded by mu
}

func newRun(o Options, ranges []chain.Range, files []*file) *run {
	// Each worker shall have a chunk, and the ordered stage another one.
	share := o.MemoryBytes / int64(o.Workers+1)
	stored := max(minimumChunkStoredBytes, min(chunkStoredBytes, share/costOf(1, decodedPerStored)))
	return &run{
		options:     o,
		limits:      Limits{BatchBytes: int(decodedPerStored * stored), BlockBytes: o.MaximumBlockBytes, MemoryBytes: o.MemoryBytes, Reads: NewGate(o.SourceConcurrency)},
		chunkStored: stored,
		ranges:      ranges,
		files:       files,
		pool:        newPool(o.MemoryBytes, o.ActiveChunks, share),
		jobs:        make(chan job),
		begun:       make(chan struct{}, len(files)),
		order:       make(chan *chunk, o.ActiveChunks),
	}
}

// fill runs the stages. All of them have ended when it returns.
func (r *run) fill(ctx context.Context) error {
	sinkCtx, release := sinkContext(ctx, r.options)
	defer release()
	stagesCtx, stop := context.WithCancel(ctx)
	defer stop()
	c := &committer{run: r, ctx: stagesCtx, ranges: r.ranges, sink: r.options.Sink(sinkCtx, r.committed)}

	var stages sync.WaitGroup
	stages.Go(func() { r.open(stagesCtx) })
	stages.Go(func() { r.plan(stagesCtx) })
	for range r.options.Workers {
		stages.Go(func() { r.work(stagesCtx) })
	}
	err := c.commit()
	stop()
	closeErr := c.close()
	if closeErr != nil && context.Cause(sinkCtx) == errGrace {
		closeErr = fmt.Errorf("%w: %w", errGrace, closeErr)
	}
	stages.Wait()
	if r.culprit = c.culprit; closeErr != nil { // the sink cannot go on whatever the source does
		r.culprit = nil
	}
	if c.culprit != nil && c.culprit.proveErr != nil {
		err = c.culprit.locate(ctx, err)
	}
	errs := []error{err, closeErr}
	for _, f := range r.files {
		errs = append(errs, f.close())
	}
	return join(errs)
}

var errGrace = errors.New("the last commit took too long after the cancellation")

// sinkContext makes the context of the sink, which ends some time after ctx, and the function that
// releases it. One goroutine watches ctx; release waits for it.
func sinkContext(ctx context.Context, o Options) (sinkCtx context.Context, release func()) {
	sinkCtx, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	finished := make(chan struct{})
	var watch sync.WaitGroup
	watch.Go(func() {
		select {
		case <-ctx.Done():
		case <-finished:
			return
		}
		select {
		case <-o.After(o.SealGrace):
			cancel(errGrace)
		case <-finished:
		}
	})
	return sinkCtx, func() {
		close(finished)
		watch.Wait()
		cancel(nil)
	}
}

// count notes a block that the sink took.
func (r *run) count(bytes uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.done.Blocks++
	r.done.Bytes += bytes
}

// report tells how far the run is.
func (r *run) report() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.options.Progress(r.done)
}

// committed notes blocks that became durable. The sink calls it.
func (r *run) committed(blocks chain.Range) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.done.Committed += blocks.Len()
	r.options.Progress(r.done)
}

func (r *run) result() Result {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.done
}

// join is errors.Join that leaves a single error as it is.
func join(errs []error) error {
	var present []error
	for _, err := range errs {
		if err != nil {
			present = append(present, err)
		}
	}
	if len(present) == 1 {
		return present[0]
	}
	return errors.Join(present...)
}
