package crashfs

import (
	"sync/atomic"
	"syscall"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// Full is a disk that can run full. It counts what is written and nothing that is removed: whoever makes
// room sets it. It is safe for concurrent use.
type Full struct {
	room atomic.Int64
	hits atomic.Int64
}

// SetRoom sets how many more bytes can be written.
func (d *Full) SetRoom(bytes int64) { d.room.Store(bytes) }

// Hits counts the operations that found the disk full.
func (d *Full) Hits() int64 { return d.hits.Load() }

// take uses up to n bytes of room and tells how many of them there were.
func (d *Full) take(n int64) int64 {
	for {
		room := d.room.Load()
		got := min(n, max(room, 0))
		if d.room.CompareAndSwap(room, room-got) {
			if got < n {
				d.hits.Add(1)
			}
			return got
		}
	}
}

// On gives the file system of the disk over another one.
func (d *Full) On(fs vfs.FS) vfs.FS { return &fullFS{FS: fs, disk: d} }

// createBytes is what a new name takes.
const createBytes = 64

type fullFS struct {
	vfs.FS
	disk *Full
}

// Unwrap implements vfs.FS.
func (f *fullFS) Unwrap() vfs.FS { return f.FS }

func (f *fullFS) open(do func() (vfs.File, error)) (vfs.File, error) {
	if f.disk.take(createBytes) < createBytes {
		return nil, syscall.ENOSPC
	}
	file, err := do()
	if err != nil {
		return nil, err
	}
	return &fullFile{File: file, disk: f.disk}, nil
}

// Create implements vfs.FS.
func (f *fullFS) Create(name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	return f.open(func() (vfs.File, error) { return f.FS.Create(name, c) })
}

// OpenReadWrite implements vfs.FS.
func (f *fullFS) OpenReadWrite(name string, c vfs.DiskWriteCategory, opts ...vfs.OpenOption) (vfs.File, error) {
	return f.open(func() (vfs.File, error) { return f.FS.OpenReadWrite(name, c, opts...) })
}

// ReuseForWrite implements vfs.FS.
func (f *fullFS) ReuseForWrite(oldname, newname string, c vfs.DiskWriteCategory) (vfs.File, error) {
	return f.open(func() (vfs.File, error) { return f.FS.ReuseForWrite(oldname, newname, c) })
}

type fullFile struct {
	vfs.File
	disk *Full
}

// Write implements vfs.File: a full disk takes what there is room for.
func (f *fullFile) Write(p []byte) (int, error) {
	got := f.disk.take(int64(len(p)))
	n, err := f.File.Write(p[:got])
	if err == nil && n < len(p) {
		err = syscall.ENOSPC
	}
	return n, err
}
