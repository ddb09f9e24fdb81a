package main

import (
	"runtime/debug"

	"github.com/leani-go/leani/config"
)

// memoryPlan divides budgets.memory_bytes. What WebSockets have queued is config.OutboundBytes. The parts are what
// the packages below promise to stay under; the rest is for the code, goroutine stacks, the catalog, what commands need besides, and garbage
// that was not collected yet. docs/configuration.md has it as a table.
type memoryPlan struct {
	pageCache     int64 // pages of segment files
	pipeline      int64 // blocks between source and writer, or fetched for answers: a process that serves fills nothing
	builder       int64 // a segment file being built; there are up to three
	responses     int   // large JSON-RPC responses being built or sent; those of medium size have an eighth of it besides
	requests      int   // JSON-RPC request bodies being read
	filters       int   // JSON-RPC filters that clients poll
	subscriptions int   // addresses and topics of the subscriptions of WebSockets
	database      int64 // Pebble's block cache
	collectorGoal int64 // where the garbage collector works harder
}

const (
	mib = 1 << 20
	// recentShare is the part of the page cache that is for the decoded logs of recent blocks, where there is a
	// live source: some 500 full blocks in 32 MiB.
	recentShare = 4
	// restShare is that without one, for blocks that are left.
	restShare = 64
	// leastMemory is what is divided when the budget is smaller.
	leastMemory = config.LeastMemoryBytes
)

func planMemory(total uint64) memoryPlan {
	t := int64(min(max(total, leastMemory), 1<<50))
	return memoryPlan{
		pageCache:     t / 4,
		pipeline:      t / 8,
		builder:       t / 12,
		responses:     int(min(t/8, 1<<30)),
		requests:      int(min(t/32, 256*mib)),
		filters:       int(min(t/64, 32*mib)),
		subscriptions: int(min(t/32, 256*mib)),
		database:      max(8*mib, t/64),
		collectorGoal: t - t/8,
	}
}

// apply sets what is set for the whole process.
func (m memoryPlan) apply() { debug.SetMemoryLimit(m.collectorGoal) }
