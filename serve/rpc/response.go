package rpc

import (
	"context"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/leani-go/leani/internal/invariants"
)

// response is the body under construction. Methods append to buf and call grow before they
// append much, so that the memory comes from the pool of the right size and is accounted for.
//
// Memory beyond unmeteredBytes is reserved in one piece, the largest a response may need, the
// first time it is needed: whoever builds a response never waits for more while holding some of the same,
// which would let two of them wait for each other. A response of medium size is built from a share of its own, if there
// is some left, so that it does not stand in line with large ones; whoever has some of that may wait for a large piece,
// because nobody who has a large piece waits.
type response struct {
	buf []byte
	// limit is how long buf may get with the call in hand.
	limit int

	// expected is about how long the call in hand may make it, 0 where that is not known.
	expected int

	memory   *memory
	reserved int64 // of the budget of large responses
	borrowed int64 // of that of medium ones
}

// memory is what the responses of a server share. It is safe for concurrent use.
type memory struct {
	budget *budget
	// medium is for responses up to mediumBytes.
	medium *budget
	// largest is how much a large response reserves: as much as any may need.
	largest int64
	// pools hold buffers by class. The garbage collector empties them when they are idle.
	pools []sync.Pool
	sizes []int // of the buffers, by class

	// sending are the responses that are being sent and are not small.
	sending struct {
		sync.Mutex
		open map[*sending]struct{}
	}
}

// sending is a response on its way.
type sending struct {
	conn     net.Conn
	progress atomic.Int64 // when the client last took a chunk of it, in nanoseconds
}

// smallBuffer is the first buffer of a response. It stays with the pooled exchange.
const smallBuffer = 16 << 10

// encodeSlack is how far an encoder may run beyond what grow was asked for near the limit of
// a response before the buffer has to be replaced by one that is not pooled.
const encodeSlack = 64 << 10

func newMemory(limits *Limits) *memory {
	m := &memory{
		budget:  newBudget(int64(limits.InFlightResponseBytes)),
		medium:  newBudget(int64(limits.InFlightResponseBytes / mediumShare)),
		largest: int64(limits.MaxResponseBytes),
	}
	for size := smallBuffer; size < limits.MaxResponseBytes; size <<= 2 {
		m.sizes = append(m.sizes, size)
	}
	// Between the last two there is one of half the size, because a response holds its buffer until it is sent.
	if half := limits.MaxResponseBytes / 2; len(m.sizes) > 0 && half > m.sizes[len(m.sizes)-1] {
		m.sizes = append(m.sizes, half)
	}
	m.sizes = append(m.sizes, limits.MaxResponseBytes+encodeSlack)
	m.pools = make([]sync.Pool, len(m.sizes))
	m.sending.open = make(map[*sending]struct{})
	return m
}

// send notes that a response is being sent. The caller tells of its progress, and calls sent.
func (m *memory) send(conn net.Conn) *sending {
	s := &sending{conn: conn}
	s.moved()
	m.sending.Lock()
	m.sending.open[s] = struct{}{}
	m.sending.Unlock()
	return s
}

func (s *sending) moved() { s.progress.Store(time.Now().UnixNano()) }

func (m *memory) sent(s *sending) {
	m.sending.Lock()
	delete(m.sending.open, s)
	m.sending.Unlock()
}

// relieve cuts off clients that do not take their responses while others wait for the memory.
func (m *memory) relieve(now time.Time) {
	if !m.budget.contended() {
		return
	}
	m.sending.Lock()
	defer m.sending.Unlock()
	for s := range m.sending.open {
		if now.UnixNano()-s.progress.Load() >= int64(scarceTimeout) {
			_ = s.conn.SetWriteDeadline(now)
		}
	}
}

// get returns an empty buffer with room for n bytes.
func (m *memory) get(n int) []byte {
	for class := range m.pools {
		if size := m.sizes[class]; size >= n {
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
		if m.sizes[class] == cap(buf) {
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
	if need > unmeteredBytes && !r.borrow(need) {
		if err := r.reserve(ctx()); err != nil {
			return err
		}
	}
	bigger := append(r.memory.get(need), r.buf...)
	r.memory.put(r.buf)
	r.buf = bigger
	return nil
}

// borrow takes the memory of a response of n bytes from the share of medium ones, once; false where it has to be reserved. One that is
// going to be large borrows nothing: it would keep that from others while it waits.
func (r *response) borrow(n int) bool {
	switch {
	case r.reserved > 0 || n > mediumBytes || r.expected > mediumBytes:
		return false
	case r.borrowed == 0 && r.memory.medium.try(mediumBytes):
		r.borrowed = mediumBytes
	}
	return r.borrowed > 0
}

// giveBack gives back what was borrowed but for some bytes.
func (r *response) giveBack(keep int64) {
	if rest := r.borrowed - keep; rest > 0 {
		r.memory.medium.release(rest)
		r.borrowed -= rest
	}
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
	r.giveBack(0)
	return nil
}

// finish gives back what was reserved beyond the memory that the finished body holds.
func (r *response) finish() {
	held := int64(cap(r.buf))
	if held <= unmeteredBytes {
		held = 0
	}
	r.giveBack(held)
	keep := min(held, r.reserved)
	r.memory.budget.release(r.reserved - keep)
	r.reserved = keep
}

// close gives everything back; the response starts anew.
func (r *response) close() {
	if cap(r.buf) > smallBuffer {
		r.memory.put(r.buf)
		r.buf = nil
	}
	r.giveBack(0)
	r.memory.budget.release(r.reserved)
	r.buf, r.reserved = r.buf[:0], 0
}
