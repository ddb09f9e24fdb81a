package engine

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"sync"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// opFS calls a hook before every operation that changes the disk, in either tier. The hook
// counts, stops the world, injects errors or writes a log.
type opFS struct {
	vfs.FS
	before func(op, path string) error
}

func (f *opFS) Unwrap() vfs.FS { return f.FS }

func (f *opFS) file(file vfs.File, err error, path string) (vfs.File, error) {
	if err != nil {
		return nil, err
	}
	return &opFile{File: file, fs: f, path: path}, nil
}

func (f *opFS) Create(name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	if err := f.before("create", name); err != nil {
		return nil, err
	}
	file, err := f.FS.Create(name, c)
	return f.file(file, err, name)
}

func (f *opFS) OpenReadWrite(name string, c vfs.DiskWriteCategory, opts ...vfs.OpenOption) (vfs.File, error) {
	if err := f.before("open-write", name); err != nil {
		return nil, err
	}
	file, err := f.FS.OpenReadWrite(name, c, opts...)
	return f.file(file, err, name)
}

func (f *opFS) ReuseForWrite(oldname, newname string, c vfs.DiskWriteCategory) (vfs.File, error) {
	if err := f.before("reuse", oldname+" "+newname); err != nil {
		return nil, err
	}
	file, err := f.FS.ReuseForWrite(oldname, newname, c)
	return f.file(file, err, newname)
}

func (f *opFS) OpenDir(name string) (vfs.File, error) {
	file, err := f.FS.OpenDir(name)
	return f.file(file, err, name)
}

func (f *opFS) Link(oldname, newname string) error {
	if err := f.before("link", oldname+" "+newname); err != nil {
		return err
	}
	return f.FS.Link(oldname, newname)
}

func (f *opFS) Remove(name string) error {
	if err := f.before("remove", name); err != nil {
		return err
	}
	return f.FS.Remove(name)
}

func (f *opFS) RemoveAll(name string) error {
	if err := f.before("remove-all", name); err != nil {
		return err
	}
	return f.FS.RemoveAll(name)
}

func (f *opFS) Rename(oldname, newname string) error {
	if err := f.before("rename", oldname+" "+newname); err != nil {
		return err
	}
	return f.FS.Rename(oldname, newname)
}

func (f *opFS) MkdirAll(dir string, perm os.FileMode) error {
	if err := f.before("mkdir", dir); err != nil {
		return err
	}
	return f.FS.MkdirAll(dir, perm)
}

type opFile struct {
	vfs.File
	fs   *opFS
	path string
}

func (f *opFile) Write(p []byte) (int, error) {
	if err := f.fs.before("write", f.path); err != nil {
		return 0, err
	}
	return f.File.Write(p)
}

func (f *opFile) WriteAt(p []byte, off int64) (int, error) {
	if err := f.fs.before("write-at", f.path); err != nil {
		return 0, err
	}
	return f.File.WriteAt(p, off)
}

func (f *opFile) Sync() error {
	if err := f.fs.before("sync", f.path); err != nil {
		return err
	}
	return f.File.Sync()
}

func (f *opFile) SyncData() error {
	if err := f.fs.before("sync-data", f.path); err != nil {
		return err
	}
	return f.File.SyncData()
}

func (f *opFile) SyncTo(n int64) (bool, error) {
	if err := f.fs.before("sync-to", f.path); err != nil {
		return false, err
	}
	return f.File.SyncTo(n)
}

var (
	errCrashed  = errors.New("the machine has crashed")
	errInjected = errors.New("injected input/output error")
)

// machine is a computer that can crash: an in-memory disk, and a stop at a chosen operation.
// It is safe for concurrent use.
type machine struct {
	disk *vfs.MemFS

	mu       sync.Mutex
	rng      *rand.Rand
	ops      int
	stopAt   int  // operation that stops the machine or fails, -1 for none
	inject   bool // the operation fails instead; later ones succeed
	stopped  bool
	survives *vfs.MemFS // the disk after the crash
	percent  int        // of unsynced data that survives, -1 for a random share
	lastOp   string     // the one that stopped the machine
	after    []string   // operations tried after an injected error
}

func newMachine(disk *vfs.MemFS, rng *rand.Rand) *machine {
	return &machine{disk: disk, rng: rng, stopAt: -1, percent: -1}
}

// fs is the file system to give to a store.
func (m *machine) fs() vfs.FS { return &opFS{FS: m.disk, before: m.before} }

func (m *machine) before(op, path string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.stopped && !m.inject {
		return errCrashed
	}
	n := m.ops
	m.ops++
	if m.stopped {
		m.after = append(m.after, op+" "+path)
		return nil
	}
	if n != m.stopAt {
		return nil
	}
	m.lastOp = op + " " + path
	if m.inject {
		m.stopped = true
		return errInjected
	}
	m.crashLocked()
	return errCrashed
}

// crashLocked stops the machine and draws what is left on its disk.
func (m *machine) crashLocked() {
	m.stopped = true
	percent := m.percent
	if percent < 0 {
		// All, nothing and a coin a block are the interesting shares.
		percent = []int{0, 100, 50, m.rng.IntN(101)}[m.rng.IntN(4)]
	}
	m.survives = m.disk.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: percent, RNG: m.rng})
}

// crash stops the machine now, if it runs, and gives the disk that is left.
func (m *machine) crash() *vfs.MemFS {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.stopped {
		m.lastOp = "between operations"
		m.crashLocked()
	}
	return m.survives
}

func (m *machine) hasStopped() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.stopped
}

func (m *machine) count() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.ops
}

// shorten makes a path of a store in dir readable in a log.
func shorten(dir, path string) string {
	return strings.ReplaceAll(path, dir+"/", "")
}

func (m *machine) String() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return fmt.Sprintf("operation %d: %s", m.stopAt, m.lastOp)
}
