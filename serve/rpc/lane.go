package rpc

import (
	"context"
	"errors"
	"runtime"
	"runtime/debug"
	"slices"
	"sync"

	"github.com/leani-go/leani/internal/lowpriority"
)

// errLaneFull says that as many heavy queries wait as may.
var errLaneFull = errors.New("heavy query queue is full")

// errLaneClosed says that the server is shutting down.
var errLaneClosed = errors.New("server is shutting down")

// lane runs heavy queries on a few goroutines of its own, each on an operating system thread of
// lowered priority. A light query beside them then gets a processor at once: the
// scheduler of Go treats all goroutines alike and lets a busy one run for 10 ms, the kernel
// does not when priorities differ.
//
// The workers end at close; each then takes its thread with it, so that no other goroutine
// ever runs at the lowered priority. It is safe for concurrent use.
type lane struct {
	limit   int            // of waiting jobs, besides those for idle workers
	stop    chan struct{}  // closed by close
	workers []<-chan error // one for each worker, which delivers when it has ended

	mu      sync.Mutex
	arrived sync.Cond  // a job waits, or the lane is closed
	waiting []*laneJob // oldest first; guarded by mu
	idle    int        // workers that wait for a job; guarded by mu
	closed  bool       // guarded by mu
}

// laneJob is one piece of work. It waits until a worker takes it or its caller withdraws it.
type laneJob struct {
	run  func() error
	err  error         // valid once done is closed
	done chan struct{} // closed by the worker
}

// newLane starts the workers. The caller closes the lane.
func newLane(workers, queue int) *lane {
	l := &lane{limit: queue, stop: make(chan struct{})}
	l.arrived.L = &l.mu
	for range workers {
		l.workers = append(l.workers, lowpriority.Go(l.work))
	}
	return l
}

// defaultLaneWorkers leaves one processor to light queries, and needs one itself.
func defaultLaneWorkers() int { return max(1, runtime.GOMAXPROCS(0)-1) }

// do runs the function on a worker and returns its error; a panic comes back as *panicError.
// When the context ends before a worker is free the function never runs. Once it runs, do
// waits for it: it is the function that watches the context.
func (l *lane) do(ctx context.Context, run func() error) error {
	job := &laneJob{run: run, done: make(chan struct{})}
	if !l.enter(job) {
		return errLaneFull
	}
	var reason error
	select {
	case <-job.done:
		return job.err
	case <-ctx.Done():
		reason = ctx.Err()
	case <-l.stop:
		reason = errLaneClosed
	}
	if l.withdraw(job) {
		return reason
	}
	<-job.done
	return job.err
}

// enter makes a job wait, unless too many do.
func (l *lane) enter(job *laneJob) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.waiting) >= l.limit+l.idle {
		return false
	}
	l.waiting = append(l.waiting, job)
	l.arrived.Signal()
	return true
}

// withdraw takes a waiting job back. It returns false when a worker has it.
func (l *lane) withdraw(job *laneJob) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	i := slices.Index(l.waiting, job)
	if i < 0 {
		return false
	}
	l.waiting = slices.Delete(l.waiting, i, i+1)
	return true
}

// take waits for a job. It returns nil when the lane is closed.
func (l *lane) take() *laneJob {
	l.mu.Lock()
	defer l.mu.Unlock()
	for len(l.waiting) == 0 && !l.closed {
		l.idle++
		l.arrived.Wait()
		l.idle--
	}
	if l.closed {
		return nil
	}
	job := l.waiting[0]
	l.waiting = slices.Delete(l.waiting, 0, 1)
	return job
}

// close ends the workers after the jobs they run and waits for them. Jobs that wait are
// withdrawn by their callers.
func (l *lane) close() {
	l.mu.Lock()
	l.closed = true
	l.arrived.Broadcast()
	l.mu.Unlock()
	close(l.stop)
	for _, ended := range l.workers {
		<-ended
	}
}

// work runs jobs until the lane is closed. It does not fail.
func (l *lane) work() error {
	for {
		job := l.take()
		if job == nil {
			return nil
		}
		job.err = protect(job.run)
		close(job.done)
	}
}

// panicError is a panic turned into an error, so that it can cross goroutines and end one call
// instead of the process.
type panicError struct {
	value any
	stack []byte
}

func (e *panicError) Error() string { return "panic in a method" }

// protect runs the function and turns a panic into a *panicError.
func protect(run func() error) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = &panicError{value: v, stack: debug.Stack()}
		}
	}()
	return run()
}
