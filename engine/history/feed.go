package history

import (
	"context"
	"errors"
	"sync"

	"github.com/leani-go/leani/chain"
)

// Change is one committed change of the chain's head, as subscribers see it: undone blocks come before the
// applied ones.
type Change struct {
	// Generation is the commit that made the change; it rises from change to change, not by ones.
	Generation uint64
	// Undone are the undone blocks, newest first; Applied the applied ones, oldest first.
	Undone, Applied []chain.BlockRef
	// Attested and Finalized are the marks where this change moved them, else nil.
	Attested, Finalized *chain.BlockRef
}

// ErrLagged is returned to a subscriber that was slower than the feed is long. It has missed changes, and
// goes on with a new subscription from a new view.
var ErrLagged = errors.New("subscriber has fallen behind the feed")

// feedLength is how many changes a subscriber may be behind: an hour of blocks of the main network.
const feedLength = 512

// feed keeps the newest changes for any number of subscribers, each with a position of its own. Publishing
// never waits, and the memory does not depend on who reads.
type feed struct {
	mu   sync.Mutex
	ring [feedLength]*Change
	end  uint64        // number of changes published so far
	wake chan struct{} // closed by the next change; nil while nobody waits
}

func (f *feed) publish(c *Change) {
	f.mu.Lock()
	f.ring[f.end%feedLength] = c
	f.end++
	f.signalLocked()
	f.mu.Unlock()
}

func (f *feed) signalLocked() {
	if f.wake != nil {
		close(f.wake)
		f.wake = nil
	}
}

// Subscription reads the changes of a store one after the other. It belongs to one goroutine and needs no
// closing.
type Subscription struct {
	feed *feed
	next uint64
}

// Subscribe gives the changes that are committed from now on. A view that is opened afterwards shows all
// changes before, and possibly some of those that the subscription gives: their Generation tells.
func (s *Store) Subscribe() *Subscription {
	s.feed.mu.Lock()
	defer s.feed.mu.Unlock()
	return &Subscription{feed: &s.feed, next: s.feed.end}
}

// Next waits for the next change, which is shared: read only. The error is ErrLagged, for good, or the context's.
func (s *Subscription) Next(ctx context.Context) (*Change, error) {
	for {
		f := s.feed
		f.mu.Lock()
		switch {
		case f.end-s.next > feedLength:
			f.mu.Unlock()
			return nil, ErrLagged
		case s.next < f.end:
			c := f.ring[s.next%feedLength]
			s.next++
			f.mu.Unlock()
			return c, nil
		}
		if f.wake == nil {
			f.wake = make(chan struct{})
		}
		wake := f.wake
		f.mu.Unlock()
		select {
		case <-wake:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}
