package engine

import (
	"fmt"
)

// Files that a commit replaced are deleted by one goroutine, the reaper, so that no reader
// pays for an unlink or a directory sync when it releases the last snapshot.

// reapLoop deletes retired files as they become free. Open starts it, Close ends it by closing
// closing and waits for reaperDone.
func (e *Engine) reapLoop() {
	defer close(e.reaperDone)
	for {
		select {
		case <-e.reaperWake:
		case <-e.closing:
			return
		}
		select {
		case e.commitLock <- struct{}{}:
		case <-e.closing:
			return
		}
		_ = e.reapLocked() // the store has failed and says so by itself
		e.unlockCommit()
	}
}

// wakeReaper asks the reaper to look again.
func (e *Engine) wakeReaper() {
	select {
	case e.reaperWake <- struct{}{}:
	default: // it is awake
	}
}

// reapLocked deletes the files that no snapshot holds any more: steps 8 and 9. The tombstones
// of deleted files go with the next commit. The commit lock must be held: it orders the
// deletion with Check, and guards cleared.
func (e *Engine) reapLocked() error {
	if err := e.writable(); err != nil {
		return err
	}
	return e.deleteFree()
}

// deleteFree is reapLocked for a store that is being closed as well.
func (e *Engine) deleteFree() error {
	e.mu.Lock()
	free := e.mu.deletable
	e.mu.deletable = nil
	e.mu.Unlock()
	if len(free) == 0 {
		return nil
	}
	var touched [kindSlots]bool
	for _, t := range free {
		e.handles.forget(t.key)
		path := e.layout.file(t.key.Kind, t.name())
		if err := e.fs.Remove(path); err != nil && !isNotExist(err) {
			return fmt.Errorf("delete %s: %w", path, err)
		}
		touched[t.key.Kind] = true
	}
	if err := e.syncKinds(touched); err != nil {
		return err
	}
	e.cleared = append(e.cleared, free...)
	for _, t := range free {
		e.opts.OnEvent(Event{Kind: EventDeleted, Path: e.layout.file(t.key.Kind, t.name())})
	}
	return nil
}
