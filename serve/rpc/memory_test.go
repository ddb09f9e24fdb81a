package rpc

import (
	"context"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
)

// The budget is never overdrawn, serves in order, and is whole again when all is given back.
func TestBudget(t *testing.T) {
	b := newBudget(100)
	var held atomic.Int64
	var users sync.WaitGroup
	for user := range 8 {
		users.Go(func() {
			random := rand.New(rand.NewPCG(1, uint64(user)))
			for range 300 {
				n := 1 + random.Int64N(120) // some ask for more than there is
				ctx, cancel := context.WithCancel(context.Background())
				if random.IntN(4) == 0 {
					cancel()
				}
				err := b.acquire(ctx, n)
				if err == nil {
					if sum := held.Add(min(n, 100)); sum > 100 {
						t.Errorf("%d of 100 are held", sum)
					}
					held.Add(-min(n, 100))
					b.release(n)
				}
				cancel()
			}
		})
	}
	users.Wait()
	if b.mu.free != 100 || len(b.mu.waiting) != 0 {
		t.Errorf("%d free, %d waiting", b.mu.free, len(b.mu.waiting))
	}
}

// A large claim that waits is not overtaken by small ones that would fit: it would starve.
func TestBudgetKeepsOrder(t *testing.T) { synctest.Test(t, testBudgetKeepsOrder) }

func testBudgetKeepsOrder(t *testing.T) {
	b := newBudget(10)
	background := context.Background()
	if err := b.acquire(background, 6); err != nil {
		t.Fatal(err)
	}
	large := make(chan struct{})
	go func() {
		if err := b.acquire(background, 8); err != nil {
			t.Error(err)
		}
		close(large)
	}()
	synctest.Wait()
	ctx, cancel := context.WithCancel(background)
	small := make(chan error)
	go func() { small <- b.acquire(ctx, 1) }()
	synctest.Wait()
	if n := len(b.mu.waiting); n != 2 {
		t.Errorf("%d wait", n)
	}
	cancel()
	if err := <-small; err != context.Canceled {
		t.Errorf("got %v, want %v", err, context.Canceled)
	}
	b.release(6)
	<-large
	b.release(8)
	if b.mu.free != 10 {
		t.Errorf("%d free", b.mu.free)
	}
}

// A response keeps what was written while it grows through all sizes, reserves once, gives back
// what it does not use, and starts anew after close.
func TestResponseGrows(t *testing.T) {
	l := Limits{MaxResponseBytes: 1 << 20, InFlightResponseBytes: 2 << 20}.withDefaults()
	m := newMemory(&l)
	background := context.Background
	r := response{memory: m}
	for round := range 3 {
		r.buf = m.get(smallBuffer)
		for i := 0; len(r.buf) < 900_000; i++ {
			if err := r.grow(background, 1000); err != nil {
				t.Fatal(err)
			}
			for range 1000 {
				r.buf = append(r.buf, byte(i))
			}
		}
		for i, c := range r.buf {
			if c != byte(i/1000) {
				t.Fatalf("round %d: byte %d is damaged", round, i)
			}
		}
		if m.budget.mu.free != 1<<20 {
			t.Errorf("%d free while one response is large, want one of two", m.budget.mu.free)
		}
		r.finish()
		r.close()
		if m.budget.mu.free != 2<<20 || len(r.buf) != 0 {
			t.Errorf("%d free after close", m.budget.mu.free)
		}
	}
	// A small response reserves nothing, and a reservation that was not needed is returned.
	r.buf = m.get(smallBuffer)
	if err := r.grow(background, unmeteredBytes-1); err != nil || r.reserved != 0 {
		t.Errorf("reserved %d, %v", r.reserved, err)
	}
	if err := r.reserve(background()); err != nil || r.reserved != 1<<20 {
		t.Errorf("reserved %d, %v", r.reserved, err)
	}
	r.finish()
	if r.reserved != 0 {
		t.Errorf("%d still reserved", r.reserved)
	}
	r.close()
	// No memory: growing fails with the context's error.
	ctx, cancel := context.WithCancel(background())
	cancel()
	if err := m.budget.acquire(background(), 2<<20); err != nil {
		t.Fatal(err)
	}
	if err := r.grow(func() context.Context { return ctx }, unmeteredBytes+1); err != context.Canceled {
		t.Errorf("got %v, want %v", err, context.Canceled)
	}
}

// Responses of medium size do not stand in line with large ones as long as their share lasts, and wait like them beyond it. One
// that becomes large may wait while it holds some.
func TestMediumResponses(t *testing.T) { synctest.Test(t, testMediumResponses) }

func testMediumResponses(t *testing.T) {
	l := Limits{MaxResponseBytes: 4 << 20, InFlightResponseBytes: 16 << 20}.withDefaults()
	m := newMemory(&l)
	if err := m.budget.acquire(t.Context(), 16<<20); err != nil { // large ones have everything
		t.Fatal(err)
	}
	context := func() context.Context { return t.Context() }
	list := make([]response, 3)
	for i := range list[:2] {
		list[i].memory = m
		if err := list[i].grow(context, mediumBytes); err != nil || list[i].borrowed != mediumBytes {
			t.Fatalf("response %d: %d borrowed, %v", i, list[i].borrowed, err)
		}
	}
	list[2].memory = m
	list[2].expected = 2 << 20
	if list[2].borrow(mediumBytes) {
		t.Error("a response that is going to be large borrows")
	}
	list[2].expected = 0
	var group sync.WaitGroup
	group.Go(func() { // the third one waits
		if err := list[2].grow(context, mediumBytes); err != nil || list[2].reserved != 4<<20 {
			t.Errorf("%d reserved, %v", list[2].reserved, err)
		}
	})
	synctest.Wait()
	group.Go(func() { // behind it
		if err := list[0].grow(context, 2<<20); err != nil || list[0].reserved != 4<<20 || list[0].borrowed != 0 {
			t.Errorf("%d reserved, %d borrowed, %v", list[0].reserved, list[0].borrowed, err)
		}
	})
	synctest.Wait()
	if n := len(m.budget.mu.waiting); n != 2 || m.medium.mu.free != 0 {
		t.Errorf("%d wait, %d are free", n, m.medium.mu.free)
	}
	m.budget.release(16 << 20)
	group.Wait()
	list[1].buf = append(list[1].buf, make([]byte, 100)...)
	for i := range list {
		list[i].finish()
		if held := list[i].reserved + list[i].borrowed; held < int64(cap(list[i].buf)) {
			t.Errorf("response %d holds %d for a buffer of %d", i, held, cap(list[i].buf))
		}
		list[i].close()
	}
	if m.budget.mu.free != 16<<20 || m.medium.mu.free != 2<<20 {
		t.Errorf("%d and %d are free", m.budget.mu.free, m.medium.mu.free)
	}
}
