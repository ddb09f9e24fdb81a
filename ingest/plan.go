package ingest

import (
	"context"
	"fmt"

	"github.com/leani-go/leani/chain"
)

// file is a file of the source with the runs of blocks that are wanted of it.
type file struct {
	name    string
	extents []chain.Range // ascending, not empty

	ready  chan struct{} // closed when it was opened, or could not be
	reader File          // nil when opening failed; valid after ready
	err    error         // of opening, valid after ready

	proven   chan struct{} // closed when the digest was compared
	proveErr error         // its result, valid after that
}

func (f *file) close() error {
	if f.reader == nil {
		return nil
	}
	err := f.reader.Close()
	f.reader = nil
	if err != nil {
		return fmt.Errorf("close %s: %w", f.name, err)
	}
	return nil
}

// PlanAll asks the source which file holds what of a range, and requires that the answer is all of it, in order.
func PlanAll(ctx context.Context, source Source, r chain.Range) ([]Extent, error) {
	extents, err := source.Plan(ctx, r)
	if err != nil {
		return nil, err
	}
	next := r.From
	for _, e := range extents {
		if e.Range.Empty() || e.Range.From != next || e.Range.To > r.To {
			return nil, fmt.Errorf("BUG: source plans %v of %s where block %d of %v is next", e.Range, e.File, next, r)
		}
		next = e.Range.To
	}
	if next != r.To {
		return nil, fmt.Errorf("BUG: source plans up to block %d of %v", next, r)
	}
	return extents, nil
}

// planFiles asks the source which file holds what, and groups the runs by file.
func planFiles(ctx context.Context, source Source, ranges []chain.Range) ([]*file, error) {
	var files []*file
	for _, r := range ranges {
		extents, err := PlanAll(ctx, source, r)
		if err != nil {
			return nil, err
		}
		for _, e := range extents {
			if n := len(files); n == 0 || files[n-1].name != e.File {
				files = append(files, &file{name: e.File, ready: make(chan struct{}), proven: make(chan struct{})})
			}
			f := files[len(files)-1]
			f.extents = append(f.extents, e.Range)
		}
	}
	return files, nil
}

// job is work for a worker: a chunk, or the digest of a file when there is none.
type job struct {
	file  *file
	chunk *chunk
}

// open is the opener. It opens the files in order, each when the planner begins with the one before,
// so that a file is there by the time it is needed, and has its digest computed. A file that is
// slow to open, because it comes over a network, holds up nothing of those before it.
func (r *run) open(ctx context.Context) {
	for i, f := range r.files {
		if i > 1 { // the first two at once
			select {
			case <-r.begun:
			case <-ctx.Done():
				return
			}
		}
		if f.reader, f.err = r.options.Source.Open(ctx, f.name, r.limits); f.err != nil {
			f.reader = nil
			close(f.proven) // there is nothing to prove
			close(f.ready)
			return
		}
		close(f.ready)
		if !r.send(ctx, job{file: f}) {
			return
		}
	}
}

// plan is the planner. It cuts the files into chunks as memory allows, and sends these to the workers
// and, in the same order, to the ordered stage.
func (r *run) plan(ctx context.Context) {
	for i, f := range r.files {
		if i > 0 {
			r.begun <- struct{}{} // has room for all files
		}
		if !r.planFile(ctx, f) {
			return
		}
	}
	close(r.order)
}

// planFile plans one file and tells whether to go on.
func (r *run) planFile(ctx context.Context, f *file) bool {
	select {
	case <-f.ready:
	case <-ctx.Done():
		return false
	}
	if f.err != nil {
		return r.planFailure(ctx, f)
	}
	for i, extent := range f.extents {
		for next := extent; !next.Empty(); {
			blocks, cost := r.cut(f, next)
			c, err := r.pool.get(ctx, cost)
			if err != nil {
				return false
			}
			next.From = blocks.To
			c.file, c.blocks = f, blocks
			c.final = next.Empty() && i+1 == len(f.extents)
			r.order <- c // has room for all chunks that are lent
			if !r.send(ctx, job{file: f, chunk: c}) {
				return false
			}
		}
	}
	return true
}

// planFailure sends the error of opening a file to the ordered stage as a chunk without blocks.
func (r *run) planFailure(ctx context.Context, f *file) bool {
	c, err := r.pool.get(ctx, 0)
	if err != nil {
		return false
	}
	c.file, c.blocks = f, chain.Range{}
	c.parts <- part{err: f.err, last: true}
	r.order <- c
	return false
}

func (r *run) send(ctx context.Context, j job) bool {
	select {
	case r.jobs <- j:
		return true
	case <-ctx.Done():
		return false
	}
}

// cut takes the next chunk from the start of a run of blocks and estimates its memory.
func (r *run) cut(f *file, next chain.Range) (blocks chain.Range, cost int64) {
	var stored, decoded, largest int64
	blocks = chain.Range{From: next.From, To: next.From}
	for blocks.To < next.To && blocks.Len() < chunkBlocks {
		s, d := f.reader.Size(blocks.To)
		if !blocks.Empty() && stored+s > r.chunkStored {
			break
		}
		stored, decoded, largest = stored+s, decoded+d, max(largest, d)
		blocks.To++
	}
	return blocks, costOf(stored, min(decoded, max(int64(r.limits.BatchBytes), largest)))
}
