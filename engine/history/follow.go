package history

import (
	"context"
	"sync"
)

// Follower gets every change of the head together with a view of the chain right after it, so that whoever is
// slow still reads the blocks of a change that a later one has undone. It belongs to one goroutine; Close is needed.
type Follower struct {
	store *Store
	wake  chan struct{} // has room for one

	mu struct {
		sync.Mutex
		queue  []followed
		lagged bool
		closed bool
	}
}

// followed is a change that has not been read yet.
type followed struct {
	change *Change
	view   *View
}

// followers are those that Extend hands changes to.
type followers struct {
	mu   sync.Mutex
	open map[*Follower]struct{}
}

// Follow gives the changes that are committed from now on, and a view of the chain before them, which the caller
// closes.
func (s *Store) Follow() (*Follower, *View, error) {
	s.extend.mu.Lock()
	defer s.extend.mu.Unlock()
	f := &Follower{store: s, wake: make(chan struct{}, 1)}
	s.followers.mu.Lock()
	defer s.followers.mu.Unlock()
	if s.followers.open == nil {
		s.followers.open = make(map[*Follower]struct{})
	}
	s.followers.open[f] = struct{}{}
	return f, s.viewOf(s.engine.Acquire()), nil
}

// Next waits for the next change that undoes or applies blocks. The change is shared and read only; the view
// shows the chain as the change left it, and the caller closes it. The error is ErrLagged, for good, when more
// changes waited than the feed is long, or the context's.
func (f *Follower) Next(ctx context.Context) (*Change, *View, error) {
	for {
		f.mu.Lock()
		switch {
		case f.mu.lagged:
			f.mu.Unlock()
			return nil, nil, ErrLagged
		case len(f.mu.queue) > 0:
			next := f.mu.queue[0]
			f.mu.queue[0] = followed{}
			f.mu.queue = f.mu.queue[1:]
			f.mu.Unlock()
			return next.change, next.view, nil
		}
		f.mu.Unlock()
		select {
		case <-f.wake:
		case <-ctx.Done():
			return nil, nil, ctx.Err()
		}
	}
}

// Refresh gives a newer view of the chain as the last change left it, so that an idle follower does not keep
// files that were replaced; nil while changes wait.
func (f *Follower) Refresh() *View {
	f.store.extend.mu.Lock()
	defer f.store.extend.mu.Unlock()
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.mu.queue) > 0 || f.mu.lagged || f.mu.closed {
		return nil
	}
	return f.store.viewOf(f.store.engine.Acquire())
}

// Waiting is how many changes have not been read; those beyond the length of the feed would be lost.
func (f *Follower) Waiting() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.mu.queue)
}

// Close ends the follower and releases the views that were not read. A second call does nothing.
func (f *Follower) Close() {
	f.store.followers.mu.Lock()
	delete(f.store.followers.open, f)
	f.store.followers.mu.Unlock()
	f.mu.Lock()
	defer f.mu.Unlock()
	f.mu.closed = true
	f.dropLocked()
}

func (f *Follower) dropLocked() {
	for _, waiting := range f.mu.queue {
		waiting.view.Close()
	}
	f.mu.queue = nil
}

// deliver hands a change to the followers. extend.mu is held, so that the views show just this change.
func (s *Store) deliver(c *Change) {
	if len(c.Undone)+len(c.Applied) == 0 {
		return
	}
	s.followers.mu.Lock()
	defer s.followers.mu.Unlock()
	for f := range s.followers.open {
		f.push(c)
	}
}

func (f *Follower) push(c *Change) {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case f.mu.closed || f.mu.lagged:
		return
	case len(f.mu.queue) == feedLength:
		f.mu.lagged = true
		f.dropLocked()
	default:
		f.mu.queue = append(f.mu.queue, followed{c, f.store.viewOf(f.store.engine.Acquire())})
	}
	select {
	case f.wake <- struct{}{}:
	default: // it is awake
	}
}
