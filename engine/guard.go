package engine

import (
	"errors"
	"io"
	iofs "io/fs"
	"os"
	"strings"
	"sync"
	"syscall"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// guardFS lies below both tiers and makes the first failed change of the disk the last one
// that was tried; reads pass through. There is one for each tier, and they share the failure.
//
// The guard of the segment files (abandoned is nil) returns the failure. That of the database
// must not: Pebble answers a failed write by panicking in a background goroutine, by telling
// its logger that the process should end, or by trying again for ever, none of which a library
// may do to the program it is part of. So a goroutine of Pebble that fails to write waits
// where it is, and whoever waits for Pebble waits for the failure too (Engine.database). When
// the failed engine is closed, its Pebble is abandoned: from then on changes seem to succeed,
// without reaching the disk, so that it can come to its end and give its memory back.
//
// It is safe for concurrent use.
type guardFS struct {
	vfs.FS
	// failure gives the sticky failure, nil while there is none.
	failure func() error
	// fail records a failure and returns the sticky one.
	fail func(error) error
	// abandoned is closed when failed changes may seem to succeed; nil returns the failure.
	abandoned chan struct{}

	mu struct {
		sync.Mutex
		locks    []io.Closer
		released bool       // locks taken from now on are not kept
		sham     *vfs.MemFS // what an abandoned Pebble believes to have written
	}
}

var _ vfs.FS = (*guardFS)(nil)

// change runs an operation that changes the disk, unless the store has failed. An error that
// says only that a file is absent or present is an answer, not a failure. done is false for an
// operation that only seems to have succeeded.
func (g *guardFS) change(op func() error) (done bool, err error) {
	err = g.failure()
	if err == nil {
		err = op()
		if err == nil || errors.Is(err, iofs.ErrNotExist) || errors.Is(err, iofs.ErrExist) {
			return true, err
		}
		err = g.fail(err)
	}
	if g.abandoned == nil {
		return true, err
	}
	<-g.abandoned
	return false, nil
}

// noRoom tells whether an error says that the disk, or the user's share of it, is full.
func noRoom(err error) bool { return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) }

// changeSoftly is change for a file that nothing depends on before it is whole: that there is no room for
// it is an answer and no failure of the store.
func (g *guardFS) changeSoftly(op func() error) error {
	var full error
	_, err := g.change(func() error {
		err := op()
		if noRoom(err) {
			full, err = err, nil
		}
		return err
	})
	if err == nil {
		err = full
	}
	return err
}

// changeOnly is change for operations without another result.
func (g *guardFS) changeOnly(op func() error) error {
	_, err := g.change(op)
	return err
}

// create is change for operations that give a file to write.
func (g *guardFS) create(name string, op func() (vfs.File, error)) (vfs.File, error) {
	var f vfs.File
	done, err := g.change(func() (err error) {
		f, err = op()
		return err
	})
	switch {
	case err != nil:
		return nil, err
	case done:
		return &guardFile{File: f, guard: g}, nil
	default:
		return g.createSham(name)
	}
}

// createSham gives a file in memory.
func (g *guardFS) createSham(name string) (vfs.File, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.mu.sham == nil {
		g.mu.sham = vfs.NewMem()
	}
	return g.mu.sham.Create(g.FS.PathBase(name), vfs.WriteCategoryUnspecified)
}

// Open implements vfs.FS.
func (g *guardFS) Open(name string, opts ...vfs.OpenOption) (vfs.File, error) {
	g.mu.Lock()
	sham := g.mu.sham
	g.mu.Unlock()
	if sham != nil {
		if f, err := sham.Open(g.FS.PathBase(name)); err == nil {
			return f, nil
		}
	}
	return g.FS.Open(name, opts...)
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
	return g.create(name, func() (vfs.File, error) {
		if strings.HasPrefix(g.FS.PathBase(name), markerPrefix) {
			if err := syncDir(g.FS, g.FS.PathDir(name)); err != nil {
				return nil, err
			}
		}
		return g.FS.Create(name, category)
	})
}

// createTemporary makes a segment file that is being written. A full disk does not fail the store.
func (g *guardFS) createTemporary(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	var f vfs.File
	err := g.changeSoftly(func() (err error) {
		f, err = g.FS.Create(name, category)
		return err
	})
	if err != nil {
		return nil, err
	}
	return &guardFile{File: f, guard: g, temporary: true}, nil
}

// OpenReadWrite implements vfs.FS.
func (g *guardFS) OpenReadWrite(name string, category vfs.DiskWriteCategory, opts ...vfs.OpenOption) (vfs.File, error) {
	return g.create(name, func() (vfs.File, error) { return g.FS.OpenReadWrite(name, category, opts...) })
}

// ReuseForWrite implements vfs.FS.
func (g *guardFS) ReuseForWrite(oldname, newname string, category vfs.DiskWriteCategory) (vfs.File, error) {
	return g.create(newname, func() (vfs.File, error) { return g.FS.ReuseForWrite(oldname, newname, category) })
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
	return g.changeOnly(func() error { return g.FS.Link(oldname, newname) })
}

// Remove implements vfs.FS.
func (g *guardFS) Remove(name string) error {
	return g.changeOnly(func() error { return g.FS.Remove(name) })
}

// RemoveAll implements vfs.FS.
func (g *guardFS) RemoveAll(name string) error {
	return g.changeOnly(func() error { return g.FS.RemoveAll(name) })
}

// Rename implements vfs.FS.
func (g *guardFS) Rename(oldname, newname string) error {
	return g.changeOnly(func() error { return g.FS.Rename(oldname, newname) })
}

// MkdirAll implements vfs.FS.
func (g *guardFS) MkdirAll(dir string, perm os.FileMode) error {
	return g.changeOnly(func() error { return g.FS.MkdirAll(dir, perm) })
}

// Lock implements vfs.FS. A lock that somebody else holds is no failure of the disk.
func (g *guardFS) Lock(name string) (io.Closer, error) {
	if g.failure() != nil {
		done, err := g.change(func() error { return nil })
		if done {
			return nil, err
		}
		return &onceCloser{closer: shamLock{}}, nil
	}
	l, err := g.FS.Lock(name)
	if err != nil {
		return nil, err
	}
	once := &onceCloser{closer: l}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.mu.released {
		return once, once.Close()
	}
	g.mu.locks = append(g.mu.locks, once)
	return once, nil
}

// releaseLocks releases every lock that is held, also those that an abandoned Pebble would
// release later or take too late.
func (g *guardFS) releaseLocks() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.mu.released = true
	var err error
	for _, l := range g.mu.locks {
		err = errors.Join(err, l.Close())
	}
	g.mu.locks = nil
	return err
}

// shamLock is the lock that an abandoned Pebble believes to hold.
type shamLock struct{}

// Close implements io.Closer.
func (shamLock) Close() error { return nil }

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
	guard     *guardFS
	temporary bool // made by createTemporary
}

// change runs an operation on the file.
func (f *guardFile) change(op func() error) (done bool, err error) {
	if f.temporary {
		return true, f.guard.changeSoftly(op)
	}
	return f.guard.change(op)
}

func (f *guardFile) changeOnly(op func() error) error {
	_, err := f.change(op)
	return err
}

// Write implements vfs.File.
func (f *guardFile) Write(p []byte) (n int, err error) {
	done, err := f.change(func() (err error) {
		n, err = f.File.Write(p)
		return err
	})
	if !done {
		return len(p), nil
	}
	return n, err
}

// WriteAt implements vfs.File.
func (f *guardFile) WriteAt(p []byte, off int64) (n int, err error) {
	done, err := f.guard.change(func() (err error) {
		n, err = f.File.WriteAt(p, off)
		return err
	})
	if !done {
		return len(p), nil
	}
	return n, err
}

// Sync implements vfs.File.
func (f *guardFile) Sync() error { return f.changeOnly(f.File.Sync) }

// SyncData implements vfs.File.
func (f *guardFile) SyncData() error { return f.changeOnly(f.File.SyncData) }

// SyncTo implements vfs.File.
func (f *guardFile) SyncTo(length int64) (full bool, err error) {
	_, err = f.change(func() (err error) {
		full, err = f.File.SyncTo(length)
		return err
	})
	return full, err
}

// Close implements vfs.File. The descriptor is given back also when the store has failed; an
// error of the close is one (a network file system reports a failed write there).
func (f *guardFile) Close() error {
	if err := f.File.Close(); err != nil {
		return f.changeOnly(func() error { return err })
	}
	return nil
}
