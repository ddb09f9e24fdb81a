package engine

import (
	"errors"
	"fmt"
	"io"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// writeCategory labels the writes of segment files in Pebble's disk statistics.
const writeCategory vfs.DiskWriteCategory = "leani-segments"

// bytesPerSync is how much of a file may be dirty before the kernel is asked to write it out,
// so that the fsync of a large file does not stall the disk.
const bytesPerSync = 1 << 20

// errPendingUsed is returned for a file that was committed or aborted.
var errPendingUsed = errors.New("file is committed or aborted")

// errPendingSpoiled is returned for a file of which a write failed.
var errPendingSpoiled = errors.New("an earlier write of the file failed")

// PendingFile is a segment file being written. It belongs to one goroutine at a time, which
// ends it by a successful Commit or by Abort. Until then it is a *.tmp file that no reader
// sees.
type PendingFile struct {
	engine *Engine
	kind   Kind
	path   string
	file   vfs.File // nil once closed
	size   int64
	state  pendingState
	// reserved counts the bytes of this file in Engine.temporary.
	reserved int64
	spoiled  bool // a write failed
}

type pendingState uint8

const (
	pendingOpen   pendingState = iota
	pendingSealed              // synced and closed
	pendingDone                // committed or aborted
)

var _ io.Writer = (*PendingFile)(nil)

// NewFile begins a segment file.
func (e *Engine) NewFile(kind Kind) (*PendingFile, error) {
	if !kind.Valid() {
		return nil, fmt.Errorf("begin segment file: unknown kind %d", uint8(kind))
	}
	if err := e.writable(); err != nil {
		return nil, fmt.Errorf("begin %s file: %w", kind, err)
	}
	path := e.layout.file(kind, fmt.Sprintf("%s-%06d%s", e.session, e.tempSeq.Add(1), tempSuffix))
	f, err := e.fs.createTemporary(path, writeCategory)
	if err != nil {
		return nil, fmt.Errorf("begin %s file: %w", kind, err)
	}
	f = vfs.NewSyncingFile(f, vfs.SyncingFileOptions{NoSyncOnClose: true, BytesPerSync: bytesPerSync})
	e.mu.Lock()
	e.mu.pending++
	e.mu.Unlock()
	return &PendingFile{engine: e, kind: kind, path: path, file: f}, nil
}

// Write appends p. It does not keep p, but the file system may use it as scratch space. A
// write for which there is no room, on the disk or in Options.MaximumTemporaryBytes, leaves a
// file that can only be aborted; any other failed write fails the store.
func (p *PendingFile) Write(b []byte) (int, error) {
	if p.state != pendingOpen {
		return 0, fmt.Errorf("write %s: %w", p.path, errPendingUsed)
	}
	if p.spoiled {
		return 0, fmt.Errorf("write %s: %w", p.path, errPendingSpoiled)
	}
	if err := p.engine.reserve(int64(len(b))); err != nil {
		p.spoiled = true
		return 0, fmt.Errorf("write %s: %w", p.path, err)
	}
	n, err := p.file.Write(b)
	p.size += int64(n)
	p.reserved += int64(len(b))
	if err != nil {
		p.spoiled = true
		return n, fmt.Errorf("write %s: %w", p.path, err)
	}
	return n, nil
}

// Size counts the bytes written.
func (p *PendingFile) Size() int64 { return p.size }

// Path names the file for messages. It changes with the commit.
func (p *PendingFile) Path() string { return p.path }

// seal makes the content durable and closes the file: step 2.
func (p *PendingFile) seal() error {
	switch p.state {
	case pendingSealed:
		return nil
	case pendingDone:
		return fmt.Errorf("seal %s: %w", p.path, errPendingUsed)
	}
	if p.spoiled {
		return fmt.Errorf("seal %s: %w", p.path, errPendingSpoiled)
	}
	if err := p.file.Sync(); err != nil {
		p.spoiled = true
		return fmt.Errorf("sync %s: %w", p.path, err)
	}
	err := p.file.Close()
	p.file = nil
	p.state = pendingSealed
	if err != nil {
		return fmt.Errorf("close %s: %w", p.path, err)
	}
	return nil
}

// Abort gives the file up and removes it. It does nothing after a successful Commit, so that
// it can be deferred. In a failed or closed store the file stays until the next Open.
func (p *PendingFile) Abort() error {
	if p.state == pendingDone {
		return nil
	}
	p.done()
	var err error
	if p.file != nil {
		err = p.file.Close()
		p.file = nil
	}
	if p.engine.writable() != nil {
		return nil
	}
	if removeErr := p.engine.fs.Remove(p.path); removeErr != nil && !isNotExist(removeErr) {
		err = errors.Join(err, removeErr)
	}
	if err != nil {
		return fmt.Errorf("abort %s: %w", p.path, err)
	}
	return nil
}

// done ends the life of the handle.
func (p *PendingFile) done() {
	p.state = pendingDone
	p.engine.mu.Lock()
	p.engine.mu.pending--
	p.engine.mu.Unlock()
	p.engine.temporary.Add(-p.reserved)
	p.reserved = 0
}
