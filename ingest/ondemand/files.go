package ondemand

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/leani-go/leani/chain"
	"github.com/leani-go/leani/ingest"
	"github.com/leani-go/leani/ingest/era"
)

// identity is what the system says about a file, and a list about its content. While it stays the same, so does what was proved.
type identity struct {
	device, inode    uint64
	bytes            int64
	written, changed time.Time // changed is zero where only the other is known
	digest           [32]byte
}

// identify asks the system about a file; symbolic links are followed.
func identify(name string) (identity, error) {
	info, err := os.Stat(name)
	if err != nil {
		return identity{}, err
	}
	id := identity{bytes: info.Size(), written: info.ModTime()}
	id.device, id.inode, id.changed = system(name)
	return id, nil
}

// of is the identity with the digest of a list.
func (i identity) of(digest [32]byte) identity {
	i.digest = digest
	return i
}

// fileCache keeps proved files open. It is safe for concurrent use.
type fileCache struct {
	idle   int // how many files are kept that nobody reads
	copies int // how many copied files may be open
	now    func() time.Time

	life     context.Context // of transfers
	longest  time.Duration   // that a transfer may take
	running  *sync.WaitGroup // counts transfers, which are begun by who is counted
	panicked func(id string, v any)
	copying  chan struct{} // capacity 1: held by the transfer that runs

	mu       sync.Mutex
	entries  map[fileKey]*fileEntry // guarded by mu
	clock    uint64                 // counts uses; guarded by mu
	transfer *transfer              // that runs, nil if none does; guarded by mu
	wanting  int                    // how many wait to begin one; guarded by mu
}

type fileKey struct {
	source *source
	name   string
}

// fileEntry is what is known of one file of a source. It is dropped when nobody has to do with it and nothing is known.
type fileEntry struct {
	turn chan struct{} // capacity 1: held by who opens and proves

	file  *provedFile // nil when it is not open; guarded by the cache's mu
	users int         // who have or want the turn; guarded by the cache's mu

	// Of the last proof that failed; guarded by turn, and by the cache's mu while there are no users.
	bad      error
	badID    identity
	badUntil time.Time // of a copied file, of which the system knows nothing
	untold   bool      // no request has met it yet
}

// provedFile is an open file whose content was proved.
type provedFile struct {
	ingest.File
	key  fileKey
	id   identity
	uses int    // guarded by the cache's mu
	used uint64 // when, by the cache's clock; guarded by its mu
	gone bool   // another file took its place; guarded by the cache's mu
}

// badFor is how long the failure of a copied file is remembered.
const badFor = time.Minute

// get gives a file that was proved against a digest, and that the caller puts back. open opens it and must not be called twice at
// a time.
func (c *fileCache) get(ctx context.Context, key fileKey, digest [32]byte, open func(context.Context) (ingest.File, error)) (*provedFile, error) {
	e := c.entry(key)
	select {
	case e.turn <- struct{}{}:
	case <-ctx.Done():
		c.leave(key, e)
		return nil, ctx.Err()
	}
	turn := true // false: the transfer has it
	defer func() {
		if turn {
			<-e.turn
			c.leave(key, e)
		}
	}()

	var id identity
	if !key.source.Copied {
		var err error
		if id, err = identify(key.name); err != nil {
			return nil, fmt.Errorf("read history: %w", err)
		}
	}
	id = id.of(digest)
	if f := c.take(e, id); f != nil {
		return f, nil
	}
	if e.bad != nil && id == e.badID && (!key.source.Copied || c.now().Before(e.badUntil)) {
		if e.untold {
			e.untold = false
			return nil, e.bad
		}
		return nil, &rememberedError{e.bad}
	}
	e.bad = nil
	if key.source.Copied {
		if err := c.enterCopying(ctx); err != nil {
			return nil, err
		}
		turn = false
		return c.copy(ctx, key, id, e, open)
	}
	f, err := c.prove(ctx, key, id, open)
	if err != nil {
		if ctx.Err() == nil && reasonOf(err) != Failed {
			e.bad, e.badID = err, id
		}
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	e.file = f
	c.clock++
	f.uses, f.used = 1, c.clock
	return f, nil
}

// rememberedError is the failure of a file that was met before.
type rememberedError struct{ err error }

func (e *rememberedError) Error() string { return e.err.Error() }
func (e *rememberedError) Unwrap() error { return e.err }

// copied plans runs with the copies of a source's files that are open, without the source, which may be busy for as long as the
// transfer of another file takes. It returns false where others are needed.
func (c *fileCache) copied(s *source, runs []chain.Range) ([]ingest.Extent, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var open []*provedFile
	for key, e := range c.entries {
		if key.source == s && s.Copied && e.file != nil {
			open = append(open, e.file)
		}
	}
	var extents []ingest.Extent
	for _, r := range runs {
		for next := r.From; next < r.To; {
			i := slices.IndexFunc(open, func(f *provedFile) bool { return f.Range().Contains(next) })
			if i < 0 {
				return nil, false
			}
			part := chain.Range{From: next, To: min(r.To, open[i].Range().To)}
			extents = append(extents, ingest.Extent{File: open[i].key.name, Range: part, Digest: open[i].id.digest})
			next = part.To
		}
	}
	return extents, true
}

func (c *fileCache) entry(key fileKey) *fileEntry {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.entries[key]
	if e == nil {
		e = &fileEntry{turn: make(chan struct{}, 1)}
		c.entries[key] = e
	}
	e.users++
	return e
}

// leave is the end of what a user has to do with an entry.
func (c *fileCache) leave(key fileKey, e *fileEntry) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e.users--
	c.drop(key, e)
}

// drop forgets an entry that says nothing. mu is held.
func (c *fileCache) drop(key fileKey, e *fileEntry) {
	if e.users == 0 && e.file == nil && (e.bad == nil || key.source.Copied && !c.now().Before(e.badUntil)) {
		delete(c.entries, key)
	}
}

// take gives the open file of an entry if it is still the one with the identity.
func (c *fileCache) take(e *fileEntry, id identity) *provedFile {
	c.mu.Lock()
	defer c.mu.Unlock()
	f := e.file
	switch {
	case f == nil:
		return nil
	case f.id == id:
		c.clock++
		f.uses++
		f.used = c.clock
		return f
	}
	e.file, f.gone = nil, true
	if f.uses == 0 {
		_ = f.Close() // was only read
	}
	return nil
}

// prove opens and proves a file.
func (c *fileCache) prove(ctx context.Context, key fileKey, id identity, open func(context.Context) (ingest.File, error)) (*provedFile, error) {
	file, err := open(ctx)
	if err != nil {
		return nil, err
	}
	if err = file.Prove(ctx); err == nil && !key.source.Copied {
		var after identity
		if after, err = identify(key.name); err == nil && after.of(id.digest) != id {
			err = fmt.Errorf("%s was changed while it was proved", key.name)
		}
	}
	if err == nil {
		return &provedFile{File: file, key: key, id: id}, nil
	}
	var digest *era.DigestError
	if errors.As(err, &digest) && ctx.Err() == nil && key.source.locate != nil {
		key.source.locate(key.name, file, err) // closes it
		return nil, err
	}
	return nil, errors.Join(err, file.Close())
}

// put gives a file back.
func (c *fileCache) put(f *provedFile) {
	c.mu.Lock()
	f.uses--
	if f.gone && f.uses == 0 {
		_ = f.Close() // was only read
	}
	c.mu.Unlock()
	c.trim(c.idle, c.copies)
}

// trim closes files that nobody reads, those first that were not read for longest, until at most idle of them are left,
// and at most copies copied files in all.
func (c *fileCache) trim(idle, copies int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for {
		var oldest, oldestCopy *fileEntry
		unused, copied := 0, 0
		for key, e := range c.entries {
			f := e.file
			if f == nil {
				c.drop(key, e)
				continue
			}
			if key.source.Copied {
				copied++
			}
			if f.uses > 0 {
				continue
			}
			unused++
			if oldest == nil || f.used < oldest.file.used {
				oldest = e
			}
			if key.source.Copied && (oldestCopy == nil || f.used < oldestCopy.file.used) {
				oldestCopy = e
			}
		}
		victim := oldest
		switch {
		case copied > copies && oldestCopy != nil:
			victim = oldestCopy
		case unused <= idle || oldest == nil:
			return
		}
		_ = victim.file.Close() // was only read
		victim.file = nil
	}
}

// close closes all files. Nobody reads any more.
func (c *fileCache) close() { c.trim(0, 0) }
