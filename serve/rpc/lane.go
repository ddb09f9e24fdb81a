package rpc

import (
	"context"
	"errors"
	"runtime"
	"runtime/debug"
	"sync/atomic"

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
	jobs    chan *laneJob
	stop    chan struct{}
	workers []<-chan error // one for each worker, which delivers when it has ended
}

// laneJob is one piece of work. Its state goes from waiting to either running or abandoned.
type laneJob struct {
	run   func() error
	state atomic.Int32
	err   error         // valid once done is closed
	done  chan struct{} // closed by the worker
}

const (
	laneWaiting int32 = iota
	laneRunning
	laneAbandoned
)

// newLane starts the workers. The caller closes the lane.
func newLane(workers, queue int) *lane {
	l := &lane{jobs: make(chan *laneJob, queue), stop: make(chan struct{})}
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
	select {
	case l.jobs <- job:
	default:
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
	if job.state.CompareAndSwap(laneWaiting, laneAbandoned) {
		return reason
	}
	<-job.done
	return job.err
}

// close ends the workers after the jobs they run and waits for them. Jobs that wait are
// abandoned by their callers.
func (l *lane) close() {
	close(l.stop)
	for _, ended := range l.workers {
		<-ended
	}
}

// work runs jobs until the lane is closed. It does not fail.
func (l *lane) work() error {
	for {
		select {
		case job := <-l.jobs:
			if job.state.CompareAndSwap(laneWaiting, laneRunning) {
				job.err = protect(job.run)
				close(job.done)
			}
		case <-l.stop:
			return nil
		}
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
