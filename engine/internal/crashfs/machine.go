package crashfs

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// ErrCrashed is the error of every operation from the crash on.
var ErrCrashed = errors.New("the machine has crashed")

// Machine is a computer that can crash.
type Machine struct {
	// StopAt is the number, from 0, of the operation that crashes the machine or fails; Never for none.
	StopAt int
	// Percent is the share of unsynced data that survives a crash; Any for a random one.
	Percent int
	// Inject, if set, gives the error with which the operation fails instead of crashing the machine.
	// Operations after it succeed. op is its name, such as "write", "sync" or "rename".
	Inject func(op string) error
	// Short lets a write that fails write half of its bytes first, as a full disk does.
	Short bool
	// OnRead, if set, is called before every read at an offset and may fail it.
	OnRead func(path string, off int64) error
	// OnChange, if set, is told every operation that changes the disk, before it happens.
	OnChange func(op, path string)

	mu       sync.Mutex
	disk     *vfs.MemFS
	rng      *rand.Rand
	ops      int
	stopped  bool
	survives *vfs.MemFS // the disk after the crash
	lastOp   string     // the operation that stopped the machine
	after    []string   // operations tried after an injected error
}

// Values of StopAt and Percent.
const (
	Never = -1
	Any   = -1
)

// New gives a machine that runs on a disk, which must be crashable, and never stops by itself. rng
// draws what a crash leaves; it may be nil for a machine that does not crash.
func New(disk *vfs.MemFS, rng *rand.Rand) *Machine {
	return &Machine{StopAt: Never, Percent: Any, disk: disk, rng: rng}
}

// before decides the fate of an operation. With a short write, half tells that half of it is to be
// done before err.
func (m *Machine) before(op, path string) (half bool, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.OnChange != nil {
		m.OnChange(op, path)
	}
	if m.stopped && m.Inject == nil {
		return false, ErrCrashed
	}
	n := m.ops
	m.ops++
	if m.stopped {
		m.after = append(m.after, op+" "+path)
		return false, nil
	}
	if n != m.StopAt {
		return false, nil
	}
	m.lastOp = op + " " + path
	if m.Inject != nil {
		m.stopped = true
		return m.Short && op == "write", m.Inject(op)
	}
	m.crashLocked()
	return false, ErrCrashed
}

// crashLocked stops the machine and draws what is left on its disk.
func (m *Machine) crashLocked() {
	m.stopped = true
	percent := m.Percent
	if percent < 0 {
		// All, nothing and a coin a block are the interesting shares.
		percent = []int{0, 100, 50, m.rng.IntN(101)}[m.rng.IntN(4)]
	}
	m.survives = m.disk.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: percent, RNG: m.rng})
}

// Crash stops the machine now, if it has not stopped, and gives the disk that is left.
func (m *Machine) Crash() *vfs.MemFS {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.survives == nil {
		if !m.stopped {
			m.lastOp = "between operations"
		}
		m.crashLocked()
	}
	return m.survives
}

// Stopped tells whether the chosen operation was reached.
func (m *Machine) Stopped() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.stopped
}

// Count is the number of operations so far.
func (m *Machine) Count() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.ops
}

// After lists the operations that were tried after an injected error.
func (m *Machine) After() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.after
}

// String says where the machine stopped.
func (m *Machine) String() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return fmt.Sprintf("operation %d of %d: %s", m.StopAt, m.ops, m.lastOp)
}
