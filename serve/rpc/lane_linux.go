package rpc

import "golang.org/x/sys/unix"

// lowerThreadPriority raises the nice value of the calling thread, which the goroutine has to
// be locked to. On Linux priorities belong to threads although the call speaks of processes.
// Failure costs latency only and is ignored: a sandbox may forbid the call.
func lowerThreadPriority(nice int) {
	_ = unix.Setpriority(unix.PRIO_PROCESS, unix.Gettid(), nice)
}
