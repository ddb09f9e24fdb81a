package main

import "runtime/debug"

// memoryPlan divides budgets.memory_bytes. The parts are what the packages below promise to stay
// under; the rest is for the code, goroutine stacks, the catalog, and garbage that was not collected
// yet.
type memoryPlan struct {
	pageCache     int64 // pages of segment files
	pipeline      int64 // blocks between source and writer
	responses     int   // JSON-RPC responses being built or sent
	requests      int   // JSON-RPC request bodies being read
	database      int64 // Pebble's block cache
	collectorGoal int64 // where the garbage collector works harder
}

const (
	mib = 1 << 20
	// leastMemory is what a node needs at all: two runs being built, and a response.
	leastMemory = 256 * mib
)

func planMemory(total uint64) memoryPlan {
	t := int64(min(max(total, leastMemory), 1<<50))
	return memoryPlan{
		pageCache:     t / 4,
		pipeline:      t / 8,
		responses:     int(min(t/8, 1<<30)),
		requests:      int(min(t/32, 256*mib)),
		database:      max(8*mib, t/64),
		collectorGoal: t - t/8,
	}
}

// apply sets what is set for the whole process.
func (m memoryPlan) apply() { debug.SetMemoryLimit(m.collectorGoal) }
