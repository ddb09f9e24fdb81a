package rpc

import (
	"context"
	"maps"
	"math/big"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/rlp"

	"github.com/leani-go/leani/chain"
)

// fakeFeed is a feed over a fake store: what it commits it shows in the store and hands to its followers, with
// views of their own.
type fakeFeed struct {
	t     testing.TB
	store *fakeStore

	mu        sync.Mutex
	followers []*fakeFollower
	snapshots []*fakeStore
	forks     int
	waiting   atomic.Int64 // what followers say of themselves
}

func newFakeFeed(t testing.TB, store *fakeStore) *fakeFeed {
	f := &fakeFeed{t: t, store: store}
	t.Cleanup(func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		for _, s := range f.snapshots {
			if n := s.open.Load(); n != 0 {
				t.Errorf("%d views of the feed are still open", n)
			}
		}
	})
	return f
}

type fakeFollower struct {
	feed   *fakeFeed
	events chan fakeEvent
}

type fakeEvent struct {
	change Change
	view   View
	err    error
}

func (f *fakeFeed) Follow() (Follower, View, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	l := &fakeFollower{feed: f, events: make(chan fakeEvent)}
	f.followers = append(f.followers, l)
	return l, f.viewLocked(), nil
}

func (f *fakeFeed) viewLocked() View {
	s := &fakeStore{blocks: maps.Clone(f.store.blocks), coverage: slices.Clone(f.store.coverage)}
	f.snapshots = append(f.snapshots, s)
	v, _ := s.View()
	return v
}

func (l *fakeFollower) Next(ctx context.Context) (Change, View, error) {
	select {
	case e := <-l.events:
		return e.change, e.view, e.err
	case <-ctx.Done():
		return Change{}, nil, ctx.Err()
	}
}

func (l *fakeFollower) Refresh() View {
	l.feed.mu.Lock()
	defer l.feed.mu.Unlock()
	return l.feed.viewLocked()
}

func (l *fakeFollower) Waiting() int { return int(l.feed.waiting.Load()) }

func (l *fakeFollower) Close() {
	l.feed.mu.Lock()
	defer l.feed.mu.Unlock()
	l.feed.followers = slices.DeleteFunc(l.feed.followers, func(o *fakeFollower) bool { return o == l })
}

// commit makes a change, and returns when all followers have dealt with it: a follower takes the empty change
// behind it only then.
func (f *fakeFeed) commit(undo int, apply ...*chain.Block) {
	f.mu.Lock()
	var c Change
	head := f.store.coverage[len(f.store.coverage)-1].To
	for range undo {
		head--
		c.Undone = append(c.Undone, f.store.blocks[head].BlockRef)
	}
	blocks := maps.Clone(f.store.blocks)
	for _, b := range apply {
		blocks[b.Number] = b
		c.Applied = append(c.Applied, b.BlockRef)
		head = b.Number + 1
	}
	f.store.blocks = blocks
	f.store.coverage = []chain.Range{{From: 0, To: head}}
	followers := slices.Clone(f.followers)
	var events []fakeEvent
	for range followers {
		events = append(events, fakeEvent{change: c, view: f.viewLocked()}, fakeEvent{view: f.viewLocked()})
	}
	f.mu.Unlock()
	for i, l := range followers {
		l.events <- events[2*i]
		l.events <- events[2*i+1]
	}
}

// fail makes Next of all followers fail once.
func (f *fakeFeed) fail(err error) {
	f.mu.Lock()
	followers := slices.Clone(f.followers)
	f.mu.Unlock()
	for _, l := range followers {
		l.events <- fakeEvent{err: err}
	}
}

// next makes n blocks on top of the head from which the newest undo blocks are taken away. They have the
// transactions of the first blocks of the chain, and no other chain has the same ones.
func (f *fakeFeed) next(undo, n int) []*chain.Block {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.forks++
	parent := f.store.blocks[f.store.coverage[0].To-1-uint64(undo)]
	var made []*chain.Block
	for range n {
		template := f.store.blocks[(parent.Number+1)%4]
		var header types.Header
		if err := rlp.DecodeBytes(template.Header, &header); err != nil {
			f.t.Fatal(err)
		}
		header.Number, header.ParentHash = new(big.Int).SetUint64(parent.Number+1), parent.Hash
		header.Time, header.Extra = parent.Timestamp+12, []byte{byte(f.forks), byte(f.forks >> 8)}
		b := *template
		b.Header, _ = rlp.EncodeToBytes(&header)
		b.BlockRef = chain.BlockRef{Number: parent.Number + 1, Hash: header.Hash(), ParentHash: parent.Hash, Timestamp: header.Time}
		b.Logs = slices.Clone(b.Logs)
		for i := range b.Logs {
			if b.Logs[i].NumTopics > 0 {
				b.Logs[i].Data = common.LeftPadBytes([]byte{byte(b.Number), byte(f.forks)}, 32)
			}
		}
		made = append(made, &b)
		parent = &b
	}
	return made
}

// advance commits n new blocks, one after the other.
func (f *fakeFeed) advance(n int) {
	for range n {
		f.commit(0, f.next(0, 1)...)
	}
}
