package engine

import (
	"container/list"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/leani-go/leani/internal/corrupt"
	"github.com/leani-go/leani/keys"
)

// File is an open segment file. ReadAt is safe for concurrent use; Close is not to be called
// while a read is running.
type File struct {
	cache  *handleCache
	handle *handle
	closed atomic.Bool
}

// ReadAt implements io.ReaderAt.
func (f *File) ReadAt(p []byte, off int64) (int, error) { return f.handle.file.ReadAt(p, off) }

// Size is the size of the file in bytes.
func (f *File) Size() int64 { return f.handle.row.Size }

// Row is the catalog row of the file: read only.
func (f *File) Row() *FileRow { return f.handle.row }

// Path names the file for messages.
func (f *File) Path() string { return f.handle.path }

// Close gives the handle back. A second call does nothing. It never fails: the file is only
// read.
func (f *File) Close() error {
	if !f.closed.Swap(true) {
		f.cache.release(f.handle)
	}
	return nil
}

// handle is one open file. file, row and path are immutable; the rest is guarded by
// handleCache.mu.
type handle struct {
	file vfs.File
	row  *FileRow
	path string

	refs   int
	doomed bool          // forgotten: close with the last reference
	idle   *list.Element // in handleCache.idle while refs is 0
}

// handleCache shares open files between readers and closes the least recently used idle one
// when there are more than limit.
type handleCache struct {
	fs     vfs.FS
	layout layout
	limit  int

	mu struct {
		sync.Mutex
		open   map[keys.Segment]*handle
		idle   *list.List // of *handle, most recently used first
		closed bool
	}
}

func newHandleCache(fs vfs.FS, l layout, limit int) *handleCache {
	c := &handleCache{fs: fs, layout: l, limit: limit}
	c.mu.open = make(map[keys.Segment]*handle)
	c.mu.idle = list.New()
	return c
}

// open gives a File for a row whose file cannot be deleted meanwhile.
func (c *handleCache) open(row *FileRow) (*File, error) {
	if h, err := c.reuse(row); h != nil || err != nil {
		return c.wrap(h, err)
	}
	// The file is opened without the lock: a slow disk must not hold up readers of files that
	// are open. Two openers of one file are resolved below.
	h, err := c.load(row)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	if c.mu.closed {
		c.mu.Unlock()
		_ = h.file.Close()
		return nil, fmt.Errorf("open %s: %w", row, ErrClosed)
	}
	var surplus []vfs.File
	if other, ok := c.mu.open[row.key()]; ok {
		surplus = append(surplus, h.file)
		h = other
		c.refLocked(h)
	} else {
		h.refs = 1
		c.mu.open[row.key()] = h
		surplus = c.trimLocked()
	}
	c.mu.Unlock()
	closeAll(surplus)
	return c.wrap(h, nil)
}

func (c *handleCache) wrap(h *handle, err error) (*File, error) {
	if err != nil {
		return nil, err
	}
	return &File{cache: c, handle: h}, nil
}

func (c *handleCache) reuse(row *FileRow) (*handle, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.mu.closed {
		return nil, fmt.Errorf("open %s: %w", row, ErrClosed)
	}
	h, ok := c.mu.open[row.key()]
	if !ok {
		return nil, nil
	}
	c.refLocked(h)
	return h, nil
}

func (c *handleCache) refLocked(h *handle) {
	if h.idle != nil {
		c.mu.idle.Remove(h.idle)
		h.idle = nil
	}
	h.refs++
}

// load opens a file and compares its size with the row.
func (c *handleCache) load(row *FileRow) (*handle, error) {
	path := c.layout.file(row.Kind, row.Name())
	f, err := c.fs.Open(path)
	if err != nil {
		if isNotExist(err) {
			return nil, corrupt.New(path, errFileMissing)
		}
		return nil, fmt.Errorf("open %s: %w", row, err)
	}
	info, err := f.Stat()
	if err != nil {
		_ = f.Close()
		return nil, fmt.Errorf("open %s: %w", row, err)
	}
	if info.Size() != row.Size {
		_ = f.Close()
		return nil, corrupt.New(path, sizeError(info.Size(), row.Size))
	}
	return &handle{file: f, row: row, path: path}, nil
}

var errFileMissing = errors.New("file is missing")

func sizeError(got, want int64) error {
	return fmt.Errorf("size: got %d bytes want %d", got, want)
}

func (c *handleCache) release(h *handle) {
	c.mu.Lock()
	h.refs--
	var surplus []vfs.File
	if h.refs == 0 {
		if h.doomed || c.mu.closed {
			surplus = append(surplus, h.file)
		} else {
			h.idle = c.mu.idle.PushFront(h)
			surplus = c.trimLocked()
		}
	}
	c.mu.Unlock()
	closeAll(surplus)
}

// trimLocked takes idle handles out until the limit holds and returns their files to close.
func (c *handleCache) trimLocked() (surplus []vfs.File) {
	for len(c.mu.open) > c.limit && c.mu.idle.Len() > 0 {
		h := c.mu.idle.Remove(c.mu.idle.Back()).(*handle)
		delete(c.mu.open, h.row.key())
		surplus = append(surplus, h.file)
	}
	return surplus
}

// forget drops the handle of a file that is about to be deleted.
func (c *handleCache) forget(k keys.Segment) {
	c.mu.Lock()
	var surplus []vfs.File
	if h, ok := c.mu.open[k]; ok {
		delete(c.mu.open, k)
		if h.idle != nil {
			c.mu.idle.Remove(h.idle)
			h.idle = nil
			surplus = append(surplus, h.file)
		} else {
			h.doomed = true
		}
	}
	c.mu.Unlock()
	closeAll(surplus)
}

// close closes the idle handles and lets those in use go with their last reference.
func (c *handleCache) close() {
	c.mu.Lock()
	c.mu.closed = true
	var surplus []vfs.File
	for _, h := range c.mu.open {
		if h.idle != nil {
			surplus = append(surplus, h.file)
		}
	}
	clear(c.mu.open)
	c.mu.idle.Init()
	c.mu.Unlock()
	closeAll(surplus)
}

// openCount counts the open files, for status.
func (c *handleCache) openCount() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.mu.open)
}

// closeAll closes files that were only read: there is nothing to lose in an error.
func closeAll(files []vfs.File) {
	for _, f := range files {
		_ = f.Close()
	}
}
