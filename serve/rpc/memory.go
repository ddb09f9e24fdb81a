package rpc

import (
	"context"
	"sync"
)

// budget hands out bytes of memory to requests, first come first served. It counts; it does
// not allocate. It is safe for concurrent use.
type budget struct {
	size int64

	mu struct {
		sync.Mutex
		free    int64
		waiting []*claim // oldest first
	}
}

// claim is one waiting request for bytes.
type claim struct {
	bytes   int64
	granted chan struct{} // closed under the budget's lock
}

func newBudget(size int64) *budget {
	b := &budget{size: size}
	b.mu.free = size
	return b
}

// acquire waits until n bytes are free and takes them. It fails with the context's error, and
// then took nothing. A request for more than the budget takes all of it.
//
// A caller that holds bytes must not acquire more: two of them could wait for each other.
func (b *budget) acquire(ctx context.Context, n int64) error {
	n = min(n, b.size)
	b.mu.Lock()
	if len(b.mu.waiting) == 0 && b.mu.free >= n {
		b.mu.free -= n
		b.mu.Unlock()
		return nil
	}
	c := &claim{bytes: n, granted: make(chan struct{})}
	b.mu.waiting = append(b.mu.waiting, c)
	b.mu.Unlock()

	select {
	case <-c.granted:
		return nil
	case <-ctx.Done():
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	select {
	case <-c.granted: // in the meantime
		b.mu.free += n
	default:
		for i, other := range b.mu.waiting {
			if other == c {
				b.mu.waiting = append(b.mu.waiting[:i], b.mu.waiting[i+1:]...)
				break
			}
		}
	}
	b.grantLocked()
	return ctx.Err()
}

// try takes n bytes if they are free and nobody waits.
func (b *budget) try(n int64) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.mu.waiting) > 0 || b.mu.free < n {
		return false
	}
	b.mu.free -= n
	return true
}

// contended tells whether somebody waits.
func (b *budget) contended() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.mu.waiting) > 0
}

// release gives n bytes back.
func (b *budget) release(n int64) {
	if n == 0 {
		return
	}
	b.mu.Lock()
	b.mu.free += min(n, b.size)
	b.grantLocked()
	b.mu.Unlock()
}

// grantLocked serves those who wait, in order, as far as the free bytes go.
func (b *budget) grantLocked() {
	served := 0
	for _, c := range b.mu.waiting {
		if c.bytes > b.mu.free {
			break
		}
		b.mu.free -= c.bytes
		close(c.granted)
		served++
	}
	b.mu.waiting = append(b.mu.waiting[:0], b.mu.waiting[served:]...)
}
