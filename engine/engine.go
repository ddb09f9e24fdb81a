package engine

import (
	"errors"
	"fmt"
	iofs "io/fs"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/leani-go/leani/keys"
)

// Engine is an open store. It is safe for concurrent use; Close is called once, when nothing
// else uses the engine any more.
type Engine struct {
	opts    Options
	fs      *guardFS // of the segment files
	dbFS    *guardFS // of the database
	layout  layout
	db      *pebble.DB
	handles *handleCache
	dirs    [kindSlots]vfs.File // open directories, to sync; nil when read-only
	// generationFile is open for writing, nil when read-only; commits write it under commitLock.
	generationFile vfs.File
	// syncedSlot is where the newest synced slot of it lies, guarded like it.
	syncedSlot int64

	identity identity
	session  string // in the names of temporary files; random per Open
	tempSeq  atomic.Uint64
	recovery Recovery
	// temporary counts the bytes of files begun and neither committed nor aborted.
	temporary atomic.Int64

	// commitLock is held by the one that changes the catalog: a commit, the deletion of
	// retired files, or Check while it compares both tiers. It is a channel of capacity 1, so
	// that waiting for it can be given up.
	commitLock chan struct{}
	// cleared are tombstones whose files are durably gone. The next batch drops them. Guarded
	// by commitLock.
	cleared []tombstone

	// reserved are profiles that no commit has stored yet.
	reserved reservations

	// mu guards the versions. It is never held during I/O.
	mu struct {
		sync.Mutex
		current   *version
		oldest    *version
		deletable []tombstone
		snapshots int
		pending   int // files begun and neither committed nor aborted
	}

	failed struct {
		sync.Mutex
		err *FailedError
	}
	failing chan struct{} // closed when failed.err is set
	opened  atomic.Bool   // Open has returned, or is about to
	closed  atomic.Bool
	closing chan struct{} // closed by Close

	closingViews sync.WaitGroup // views of the database being closed

	reaperWake chan struct{} // capacity 1
	reaperDone chan struct{} // closed by the reaper
}

// identity is what is fixed at the creation of a store.
type identity struct {
	formatVersion uint32
	epoch         [epochLength]byte
	secret        [secretLength]byte
	chainID       uint64
}

// Open opens or creates the store in Options.Dir and recovers it from whatever interrupted its
// last use. It fails with ErrLocked at once when the store is open elsewhere, with
// *NewerFormatError or *ChainError for a store that this call must not touch, and with an error
// for which corrupt.Is holds when the store is damaged; it has then changed nothing. The caller owns the
// engine and must Close it.
func Open(options Options) (*Engine, error) {
	opts := options.withDefaults()
	e := newEngine(opts)
	if err := e.open(); err != nil {
		close(e.reaperDone)
		_ = e.shutDown()
		return nil, fmt.Errorf("open store %s: %w", opts.Dir, err)
	}
	e.opened.Store(true)
	if err := e.Err(); err != nil { // in the background, without harm to what Open did
		e.logFailure(err)
	}
	if opts.ReadOnly || opts.noReaper {
		close(e.reaperDone)
	} else {
		go e.reapLoop()
	}
	return e, nil
}

// newEngine makes an engine that has opened nothing yet.
func newEngine(opts Options) *Engine {
	e := &Engine{
		opts:       opts,
		commitLock: make(chan struct{}, 1),
		closing:    make(chan struct{}),
		failing:    make(chan struct{}),
		reaperWake: make(chan struct{}, 1),
		reaperDone: make(chan struct{}),
		session:    randomSession(),
	}
	e.fs = &guardFS{FS: opts.FS, failure: e.Err, fail: e.fail}
	e.dbFS = &guardFS{FS: opts.FS, failure: e.Err, fail: e.fail, abandoned: make(chan struct{})}
	e.layout = layout{fs: e.fs, dir: opts.Dir}
	e.handles = newHandleCache(opts.FS, e.layout, opts.OpenFiles)
	return e
}

// open runs the steps of recovery; see docs/adr/0003-crash-story.md.
func (e *Engine) open() error {
	if e.opts.Dir == "" {
		return errors.New("no data directory given")
	}
	if !e.opts.ReadOnly {
		if err := e.layout.create(); err != nil {
			return err
		}
	}
	if err := e.lock(); err != nil {
		return err
	}
	if err := e.openDatabase(); err != nil {
		return err
	}
	if err := e.migrate(); err != nil {
		return err
	}
	state, err := e.loadState()
	if err != nil {
		return err
	}
	if err := e.verifyGeneration(state); err != nil {
		return err
	}
	if err := e.recover(state); err != nil {
		return err
	}
	first := &version{catalog: state.catalog, refs: 1}
	if first.view, err = e.newView(state.catalog); err != nil {
		return err
	}
	e.mu.current, e.mu.oldest = first, first
	if e.opts.ReadOnly {
		return nil
	}
	for _, kind := range keys.Kinds() {
		if e.dirs[kind], err = e.fs.OpenDir(e.layout.kind(kind)); err != nil {
			return fmt.Errorf("open directory of %s files: %w", kind, err)
		}
	}
	return e.openGenerationFile(state)
}

// lock takes the exclusive lock of the directory.
func (e *Engine) lock() error {
	_, err := e.fs.Lock(e.layout.lock())
	switch {
	case err == nil:
		return nil
	case isNotExist(err):
		return ErrNoStore
	case isHeld(err):
		return fmt.Errorf("%w (%w)", ErrLocked, err)
	default:
		return fmt.Errorf("lock data directory: %w", err)
	}
}

// heldHere is what Pebble's file system says of a lock that this process has. It is text: there is no
// sentinel, and the kernel, which would let a process lock a file twice, is not asked.
const heldHere = "lock held by current process"

// isHeld tells a lock that somebody has from one that could not be asked for. POSIX lets fcntl refuse a
// held lock with either of EAGAIN and EACCES; the latter about the lock file itself comes with its path.
func isHeld(err error) bool {
	var path *iofs.PathError
	if errors.As(err, &path) {
		return false
	}
	return errors.Is(err, syscall.EAGAIN) || errors.Is(err, syscall.EWOULDBLOCK) || errors.Is(err, syscall.EACCES) ||
		strings.Contains(err.Error(), heldHere)
}

// Err is nil while the store takes changes, and the first failure afterwards: the status to
// show to the operator.
func (e *Engine) Err() error {
	e.failed.Lock()
	defer e.failed.Unlock()
	if e.failed.err == nil {
		return nil
	}
	return e.failed.err
}

// fail makes the store failed and returns the first failure.
func (e *Engine) fail(err error) error {
	e.failed.Lock()
	if e.failed.err != nil {
		defer e.failed.Unlock()
		return e.failed.err
	}
	var failed *FailedError
	if !errors.As(err, &failed) {
		failed = &FailedError{Cause: err}
	}
	e.failed.err = failed
	close(e.failing)
	e.failed.Unlock()
	if e.opened.Load() { // before, Open returns it
		e.logFailure(err)
	}
	e.opts.OnEvent(Event{Kind: EventFailed, Err: err})
	return failed
}

// logFailure writes a line: errors of Pebble print stack traces when a handler formats them itself.
func (e *Engine) logFailure(err error) {
	e.opts.Logger.Error("store takes no more writes: reopen it to recover", "cause", err.Error())
}

// writable tells why the store takes no changes, nil if it does.
func (e *Engine) writable() error {
	if e.closed.Load() {
		return ErrClosed
	}
	if e.opts.ReadOnly {
		return ErrReadOnly
	}
	return e.Err()
}

// ChainID is the EIP-155 chain id of the store.
func (e *Engine) ChainID() uint64 { return e.identity.chainID }

// Epoch is the random name of the store, fixed at creation: it tells a store from another one
// that was created in the same place.
func (e *Engine) Epoch() [16]byte { return e.identity.epoch }

// FormatVersion is the version of the store's format.
func (e *Engine) FormatVersion() uint32 { return e.identity.formatVersion }

// Recovery tells what Open had to clean up.
func (e *Engine) Recovery() Recovery { return e.recovery }

// Close stops the background work and closes the store. Snapshots must be released and files
// begun must be committed or aborted before; if not, Close closes all the same and says so: a
// forgotten file is removed by the next Open. The error of a failed store is its first
// failure.
func (e *Engine) Close() error {
	if e.closed.Swap(true) {
		return ErrClosed
	}
	err := e.shutDown()
	e.mu.Lock()
	snapshots, pending := e.mu.snapshots, e.mu.pending
	e.mu.Unlock()
	if snapshots > 0 {
		err = errors.Join(err, fmt.Errorf("%d snapshots were not released", snapshots))
	}
	if pending > 0 {
		err = errors.Join(err, fmt.Errorf("%d files were neither committed nor aborted", pending))
	}
	if err != nil {
		return fmt.Errorf("close store %s: %w", e.opts.Dir, err)
	}
	return nil
}

// shutDown releases what Open acquired, as far as it came.
func (e *Engine) shutDown() error {
	close(e.closing)
	<-e.reaperDone
	e.commitLock <- struct{}{} // the last commit is over; nobody gets the lock any more
	if !e.opts.ReadOnly && !e.opts.noReaper && e.Err() == nil {
		_ = e.deleteFree() // what is left is deleted by the next Open
	}
	e.handles.close()
	e.closeAllViews()
	err := e.Err()
	for _, d := range e.dirs {
		if d != nil {
			err = errors.Join(err, d.Close())
		}
	}
	if e.generationFile != nil {
		err = errors.Join(err, e.generationFile.Close())
	}
	if closeErr := e.closeDatabase(); err == nil {
		err = closeErr
	}
	lockErr := errors.Join(e.dbFS.releaseLocks(), e.fs.releaseLocks())
	if err == nil {
		err = lockErr
	}
	return err
}
