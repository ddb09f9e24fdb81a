package ondemand

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/leani-go/leani/ingest"
	"github.com/leani-go/leani/internal/lowpriority"
)

// transfer is the making of a copy. It goes on when the time of the request that began it is over, for the next one, until another
// copy is wanted: a mirror that needs longer for a file than its part of a request would never be of use.
type transfer struct {
	cancel context.CancelFunc
	left   bool // nobody waits for it; guarded by the cache's mu
}

// transferred is what comes of a transfer.
type transferred struct {
	file *provedFile
	err  error
}

// transferContext is the context of a transfer with the deadline of the request that began it: a mirror that would be asked again after
// that is not waited for.
type transferContext struct {
	context.Context
	request context.Context
}

func (c transferContext) Deadline() (time.Time, bool) { return c.request.Deadline() }

// enterCopying waits until a copy may be made, which is one at a time, so that the room which is made for it is there. A transfer for
// which nobody waits makes way.
func (c *fileCache) enterCopying(ctx context.Context) error {
	c.mu.Lock()
	c.wanting++
	if c.transfer != nil && c.transfer.left {
		c.transfer.cancel()
	}
	c.mu.Unlock()
	defer func() {
		c.mu.Lock()
		c.wanting--
		c.mu.Unlock()
	}()
	select {
	case c.copying <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// copy makes a copy and proves it. It takes over the turn of the entry, and its use, and the right to copy.
func (c *fileCache) copy(ctx context.Context, key fileKey, id identity, e *fileEntry, open func(context.Context) (ingest.File, error)) (*provedFile, error) {
	c.trim(c.idle, c.copies-1)
	life, cancel := context.WithTimeout(c.life, c.longest)
	t := &transfer{cancel: cancel}
	c.mu.Lock()
	c.transfer = t
	c.mu.Unlock()
	done := make(chan transferred, 1)
	c.running.Add(1)
	lowpriority.Go(func() error {
		defer c.running.Done()
		defer cancel()
		f, err := c.proveCopy(transferContext{life, ctx}, key, id, open)
		if err != nil && life.Err() == nil && reasonOf(err) != Failed {
			e.bad, e.badID, e.badUntil = err, id, c.now().Add(badFor)
		}
		c.mu.Lock()
		c.transfer = nil
		if e.untold = t.left; f != nil {
			e.file = f
			c.clock++
			if f.used = c.clock; !t.left {
				f.uses = 1
			}
		}
		done <- transferred{f, err}
		c.mu.Unlock()
		<-c.copying
		<-e.turn
		c.leave(key, e)
		c.trim(c.idle, c.copies)
		return nil
	})
	select {
	case r := <-done:
		return r.file, r.err
	case <-ctx.Done():
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	select {
	case r := <-done: // at the last moment
		return r.file, r.err
	default:
	}
	t.left = true
	if c.wanting > 0 || !errors.Is(ctx.Err(), context.DeadlineExceeded) { // who has gone has no use for it
		cancel()
	}
	return nil, fmt.Errorf("the copy of %s is not finished: %w", key.name, ctx.Err())
}

// proveCopy opens and proves a file; a panic is a failure of the source.
func (c *fileCache) proveCopy(ctx context.Context, key fileKey, id identity, open func(context.Context) (ingest.File, error)) (f *provedFile, err error) {
	defer func() {
		if v := recover(); v != nil {
			c.panicked(key.source.ID, v)
			f, err = nil, fmt.Errorf("panic: %v", v)
		}
	}()
	return c.prove(ctx, key, id, open)
}
