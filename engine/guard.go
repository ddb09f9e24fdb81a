package engine

import (
	"errors"
	"io"
	iofs "io/fs"
	"os"
	"strings"
	"sync"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// guardFS lies below both tiers and makes the first failed change of the disk the last one
// that was tried; reads pass through. There is one for each tier, and they share the failure.
//
// Pebble answers a failed write by panicking in a background goroutine, by telling its logger
// that the process should end, or by trying again for ever: none of which a library may do to
// the program it is part of. So the guard of the database never returns from a failed write:
// the goroutine stops there, with what it holds, until the process ends. Whoever waits for
// Pebble waits for the failure too (Engine.database), and a failed engine abandons its Pebble
// instead of closing it. What that costs, some goroutines, descriptors and buffers, is paid
// once for each failure of a disk.
//
// It is safe for concurrent use.
type guardFS struct {
	vfs.FS
	// failure gives the sticky failure, nil while there is none.
	failure func() error
	// fail records a failure and returns the sticky one.
	fail func(error) error
	// stop makes failed changes never return.
	stop bool

	mu struct {
		sync.Mutex
		locks []io.Closer
	}
}

var _ vfs.FS = (*guardFS)(nil)

// change runs an operation that changes the disk, unless the store has failed. An error that
// says only that a file is absent or present is an answer, not a failure.
func (g *guardFS) change(op func() error) error {
	err := g.failure()
	if err == nil {
		err = op()
		if err == nil || errors.Is(err, iofs.ErrNotExist) || errors.Is(err, iofs.ErrExist) {
			return err
		}
		err = g.fail(err)
	}
	if g.stop {
		select {}
	}
	return err
}

// create is change for operations that give a file to write.
func (g *guardFS) create(op func() (vfs.File, error)) (vfs.File, error) {
	var f vfs.File
	err := g.change(func() (err error) {
		f, err = op()
		return err
	})
	if err != nil {
		return nil, err
	}
	return &guardFile{File: f, guard: g}, nil
}

// markerPrefix begins the names of the empty files by which Pebble says which manifest and
// which format are in force.
const markerPrefix = "marker."

// Create implements vfs.FS.
//
// Pebble makes a new manifest and the marker that names it durable by one sync of their
// directory. A file system that writes directory entries out of order could keep the marker
// and lose the manifest, and the database would not open again. So what lies in the directory
// is synced before a marker appears.
func (g *guardFS) Create(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	return g.create(func() (vfs.File, error) {
		if strings.HasPrefix(g.FS.PathBase(name), markerPrefix) {
			if err := syncDir(g.FS, g.FS.PathDir(name)); err != nil {
				return nil, err
			}
		}
		return g.FS.Create(name, category)
	})
}

// OpenReadWrite implements vfs.FS.
func (g *guardFS) OpenReadWrite(name string, category vfs.DiskWriteCategory, opts ...vfs.OpenOption) (vfs.File, error) {
	return g.create(func() (vfs.File, error) { return g.FS.OpenReadWrite(name, category, opts...) })
}

// ReuseForWrite implements vfs.FS.
func (g *guardFS) ReuseForWrite(oldname, newname string, category vfs.DiskWriteCategory) (vfs.File, error) {
	return g.create(func() (vfs.File, error) { return g.FS.ReuseForWrite(oldname, newname, category) })
}

// OpenDir implements vfs.FS. The directory is opened to be synced.
func (g *guardFS) OpenDir(name string) (vfs.File, error) {
	f, err := g.FS.OpenDir(name)
	if err != nil {
		return nil, err
	}
	return &guardFile{File: f, guard: g}, nil
}

// Link implements vfs.FS.
func (g *guardFS) Link(oldname, newname string) error {
	return g.change(func() error { return g.FS.Link(oldname, newname) })
}

// Remove implements vfs.FS.
func (g *guardFS) Remove(name string) error {
	return g.change(func() error { return g.FS.Remove(name) })
}

// RemoveAll implements vfs.FS.
func (g *guardFS) RemoveAll(name string) error {
	return g.change(func() error { return g.FS.RemoveAll(name) })
}

// Rename implements vfs.FS.
func (g *guardFS) Rename(oldname, newname string) error {
	return g.change(func() error { return g.FS.Rename(oldname, newname) })
}

// MkdirAll implements vfs.FS.
func (g *guardFS) MkdirAll(dir string, perm os.FileMode) error {
	return g.change(func() error { return g.FS.MkdirAll(dir, perm) })
}

// Lock implements vfs.FS. A lock that somebody else holds is no failure of the disk.
func (g *guardFS) Lock(name string) (io.Closer, error) {
	l, err := g.FS.Lock(name)
	if err != nil {
		return nil, err
	}
	once := &onceCloser{closer: l}
	g.mu.Lock()
	g.mu.locks = append(g.mu.locks, once)
	g.mu.Unlock()
	return once, nil
}

// releaseLocks releases every lock that is still held, for a store whose database cannot be
// closed in order any more.
func (g *guardFS) releaseLocks() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	var err error
	for _, l := range g.mu.locks {
		err = errors.Join(err, l.Close())
	}
	g.mu.locks = nil
	return err
}

// Unwrap implements vfs.FS.
func (g *guardFS) Unwrap() vfs.FS { return g.FS }

// onceCloser closes its closer once.
type onceCloser struct {
	once   sync.Once
	closer io.Closer
	err    error
}

// Close implements io.Closer.
func (c *onceCloser) Close() error {
	c.once.Do(func() { c.err = c.closer.Close() })
	return c.err
}

// guardFile is a file open for writing, or a directory open for syncing.
type guardFile struct {
	vfs.File
	guard *guardFS
}

// Write implements vfs.File.
func (f *guardFile) Write(p []byte) (n int, err error) {
	err = f.guard.change(func() error {
		n, err = f.File.Write(p)
		return err
	})
	return n, err
}

// WriteAt implements vfs.File.
func (f *guardFile) WriteAt(p []byte, off int64) (n int, err error) {
	err = f.guard.change(func() error {
		n, err = f.File.WriteAt(p, off)
		return err
	})
	return n, err
}

// Sync implements vfs.File.
func (f *guardFile) Sync() error { return f.guard.change(f.File.Sync) }

// SyncData implements vfs.File.
func (f *guardFile) SyncData() error { return f.guard.change(f.File.SyncData) }

// SyncTo implements vfs.File.
func (f *guardFile) SyncTo(length int64) (full bool, err error) {
	err = f.guard.change(func() error {
		full, err = f.File.SyncTo(length)
		return err
	})
	return full, err
}

// Close implements vfs.File. The descriptor is given back also when the store has failed; an
// error of the close is one (a network file system reports a failed write there).
func (f *guardFile) Close() error {
	if err := f.File.Close(); err != nil {
		return f.guard.change(func() error { return err })
	}
	return nil
}
