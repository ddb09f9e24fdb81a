// Package lowpriority runs work on operating system threads that yield to others.
//
// Goroutines have no priority, and the scheduler of Go gives a busy one 10 ms at a time. Threads do have
// one: work that is locked to a thread with a raised nice value leaves the processor to other threads of
// the node, which keeps light requests fast beside heavy ones.
package lowpriority

import (
	"os"
	"runtime"
)

// niceValue is in the middle of the range: such a thread gets about a tenth of the time of one that
// competes with it, and all of the time that nobody else wants.
const niceValue = 10

// Go runs f on a thread of its own with low priority and delivers its result. Goroutines that f starts
// are not bound to the thread and run as usual.
func Go(f func() error) <-chan error {
	done := make(chan error, 1)
	go func() {
		// Not unlocked: the thread ends with the goroutine, as nobody else must inherit its priority.
		runtime.LockOSThread()
		lower(niceValue)
		done <- f()
	}()
	return done
}

// MakeRoom tells the scheduler of Go about threads of low priority that will be busy. It lets as many
// goroutines run as it believes to have processors, and makes the others wait for up to 10 ms, whatever
// the priorities of their threads are; told of a processor more for each such thread, it leaves the choice to
// the kernel, which knows priorities. A number that the operator set (the variable GOMAXPROCS) stays.
func MakeRoom(threads int) {
	if os.Getenv("GOMAXPROCS") == "" {
		runtime.GOMAXPROCS(runtime.GOMAXPROCS(0) + threads)
	}
}
