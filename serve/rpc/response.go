package rpc

import (
	"context"
	"sync"

	"github.com/leani-go/leani/internal/invariants"
)

// response is the body under construction. Methods append to buf and call grow before they
// append much, so that the memory comes from the pool of the right size and is accounted for.
//
// Memory beyond unmeteredBytes is reserved in one piece, the largest a response may need, the
// first time it is needed: whoever builds a response never waits for more while holding some,
// which would let two of them wait for each other.
type response struct {
	buf []byte
	// limit is how long buf may get with the call in hand.
	limit int

	memory   *memory
	reserved int64
}

// memory is what the responses of a server share. It is safe for concurrent use.
type memory struct {
	budget *budget
	// largest is how much a large response reserves: as much as any may need.
	largest int64
	// pools hold buffers by class; class i has smallBuffer<<(2i) bytes, the last one more than
	// the largest response. The garbage collector empties them when they are idle.
	pools []sync.Pool
}

// smallBuffer is the first buffer of a response. It stays with the pooled exchange.
const smallBuffer = 16 << 10

// encodeSlack is how far an encoder may run beyond what grow was asked for near the limit of
// a response before the buffer has to be replaced by one that is not pooled.
const encodeSlack = 64 << 10

func newMemory(limits *Limits) *memory {
	m := &memory{
		budget:  newBudget(int64(limits.InFlightResponseBytes)),
		largest: int64(limits.MaxResponseBytes),
	}
	classes := 1
	for size := smallBuffer; size < limits.MaxResponseBytes; size <<= 2 {
		classes++
	}
	m.pools = make([]sync.Pool, classes)
	return m
}

// classSize is the capacity of a buffer of the class.
func (m *memory) classSize(class int) int {
	if class == len(m.pools)-1 {
		return int(m.largest) + encodeSlack
	}
	return smallBuffer << (2 * class)
}

// get returns an empty buffer with room for n bytes.
func (m *memory) get(n int) []byte {
	for class := range m.pools {
		if size := m.classSize(class); size >= n {
			if pooled, ok := m.pools[class].Get().(*[]byte); ok {
				return (*pooled)[:0]
			}
			return make([]byte, 0, size)
		}
	}
	return make([]byte, 0, n)
}

// put gives a buffer back. One that has no class, because an encoder outgrew it, is left to
// the garbage collector.
func (m *memory) put(buf []byte) {
	invariants.Mangle(buf)
	for class := range m.pools {
		if m.classSize(class) == cap(buf) {
			m.pools[class].Put(&buf)
			return
		}
	}
}

// grow makes room for n more bytes. It fails when the memory of all responses together is in
// use and none comes free in time.
func (r *response) grow(ctx func() context.Context, n int) error {
	if cap(r.buf)-len(r.buf) >= n {
		return nil
	}
	need := len(r.buf) + n
	if need > unmeteredBytes {
		if err := r.reserve(ctx()); err != nil {
			return err
		}
	}
	bigger := append(r.memory.get(need), r.buf...)
	r.memory.put(r.buf)
	r.buf = bigger
	return nil
}

// reserve takes the memory of a large response from the budget, once.
func (r *response) reserve(ctx context.Context) error {
	if r.reserved > 0 {
		return nil
	}
	if err := r.memory.budget.acquire(ctx, r.memory.largest); err != nil {
		return err
	}
	r.reserved = r.memory.largest
	return nil
}

// finish gives back what was reserved beyond the memory that the finished body holds.
func (r *response) finish() {
	keep := min(int64(cap(r.buf)), r.reserved)
	if cap(r.buf) <= unmeteredBytes {
		keep = 0
	}
	r.memory.budget.release(r.reserved - keep)
	r.reserved = keep
}

// close gives everything back; the response starts anew.
func (r *response) close() {
	if cap(r.buf) > smallBuffer {
		r.memory.put(r.buf)
		r.buf = nil
	}
	r.memory.budget.release(r.reserved)
	r.buf, r.reserved = r.buf[:0], 0
}
