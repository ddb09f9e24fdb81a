package lowpriority

import "golang.org/x/sys/unix"

// lower raises the nice value of the calling thread. On Linux priorities belong to threads although the
// call speaks of processes. Failure costs latency only: a sandbox may forbid the call.
func lower(nice int) { _ = unix.Setpriority(unix.PRIO_PROCESS, unix.Gettid(), nice) }
