package crashfs

import (
	"os"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// FS is the file system of the machine, to be given to the program that runs on it.
func (m *Machine) FS() vfs.FS { return &machineFS{FS: m.disk, machine: m} }

// machineFS asks the machine before every operation that changes the disk.
type machineFS struct {
	vfs.FS
	machine *Machine
}

var _ vfs.FS = (*machineFS)(nil)

// Unwrap implements vfs.FS.
func (f *machineFS) Unwrap() vfs.FS { return f.FS }

func (f *machineFS) change(op, path string, do func() error) error {
	if _, err := f.machine.before(op, path); err != nil {
		return err
	}
	return do()
}

func (f *machineFS) open(op, path string, do func() (vfs.File, error)) (file vfs.File, err error) {
	err = f.change(op, path, func() error {
		file, err = do()
		return err
	})
	if err != nil {
		return nil, err
	}
	return &machineFile{File: file, machine: f.machine, path: path}, nil
}

// Create implements vfs.FS.
func (f *machineFS) Create(name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	return f.open("create", name, func() (vfs.File, error) { return f.FS.Create(name, c) })
}

// OpenReadWrite implements vfs.FS.
func (f *machineFS) OpenReadWrite(name string, c vfs.DiskWriteCategory, opts ...vfs.OpenOption) (vfs.File, error) {
	return f.open("open-write", name, func() (vfs.File, error) { return f.FS.OpenReadWrite(name, c, opts...) })
}

// ReuseForWrite implements vfs.FS.
func (f *machineFS) ReuseForWrite(oldname, newname string, c vfs.DiskWriteCategory) (vfs.File, error) {
	return f.open("reuse", oldname+" "+newname, func() (vfs.File, error) { return f.FS.ReuseForWrite(oldname, newname, c) })
}

// Open implements vfs.FS.
func (f *machineFS) Open(name string, opts ...vfs.OpenOption) (vfs.File, error) {
	file, err := f.FS.Open(name, opts...)
	if err != nil {
		return nil, err
	}
	return &machineFile{File: file, machine: f.machine, path: name}, nil
}

// OpenDir implements vfs.FS. A directory is opened to be synced.
func (f *machineFS) OpenDir(name string) (vfs.File, error) {
	file, err := f.FS.OpenDir(name)
	if err != nil {
		return nil, err
	}
	return &machineFile{File: file, machine: f.machine, path: name}, nil
}

// Link implements vfs.FS.
func (f *machineFS) Link(oldname, newname string) error {
	return f.change("link", oldname+" "+newname, func() error { return f.FS.Link(oldname, newname) })
}

// Remove implements vfs.FS.
func (f *machineFS) Remove(name string) error {
	return f.change("remove", name, func() error { return f.FS.Remove(name) })
}

// RemoveAll implements vfs.FS.
func (f *machineFS) RemoveAll(name string) error {
	return f.change("remove-all", name, func() error { return f.FS.RemoveAll(name) })
}

// Rename implements vfs.FS.
func (f *machineFS) Rename(oldname, newname string) error {
	return f.change("rename", oldname+" "+newname, func() error { return f.FS.Rename(oldname, newname) })
}

// MkdirAll implements vfs.FS.
func (f *machineFS) MkdirAll(dir string, perm os.FileMode) error {
	return f.change("mkdir", dir, func() error { return f.FS.MkdirAll(dir, perm) })
}

// machineFile is a file of the machine, open for reading, writing or syncing.
type machineFile struct {
	vfs.File
	machine *Machine
	path    string
}

func (f *machineFile) change(op string, do func() error) error {
	if _, err := f.machine.before(op, f.path); err != nil {
		return err
	}
	return do()
}

// ReadAt implements vfs.File.
func (f *machineFile) ReadAt(p []byte, off int64) (int, error) {
	if f.machine.OnRead != nil {
		if err := f.machine.OnRead(f.path, off); err != nil {
			return 0, err
		}
	}
	return f.File.ReadAt(p, off)
}

// Write implements vfs.File.
func (f *machineFile) Write(p []byte) (n int, err error) {
	half, err := f.machine.before("write", f.path)
	switch {
	case half:
		n, _ = f.File.Write(p[:len(p)/2])
		return n, err
	case err != nil:
		return 0, err
	}
	return f.File.Write(p)
}

// WriteAt implements vfs.File.
func (f *machineFile) WriteAt(p []byte, off int64) (n int, err error) {
	err = f.change("write-at", func() error {
		n, err = f.File.WriteAt(p, off)
		return err
	})
	return n, err
}

// Sync implements vfs.File.
func (f *machineFile) Sync() error { return f.change("sync", f.File.Sync) }

// SyncData implements vfs.File.
func (f *machineFile) SyncData() error { return f.change("sync-data", f.File.SyncData) }

// SyncTo implements vfs.File.
func (f *machineFile) SyncTo(length int64) (full bool, err error) {
	err = f.change("sync-to", func() error {
		full, err = f.File.SyncTo(length)
		return err
	})
	return full, err
}
