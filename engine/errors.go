package engine

import (
	"errors"
	"fmt"
)

// Sentinels that callers branch on.
var (
	// ErrLocked is returned by Open when another process, or another Engine of this one, has
	// the data directory open.
	ErrLocked = errors.New("data directory is in use by another process")
	// ErrNoStore is returned by a read-only Open of a directory that holds no store.
	ErrNoStore = errors.New("no store in the data directory")
	// ErrReadOnly is returned by changes of a store opened read-only.
	ErrReadOnly = errors.New("store is open read-only")
	// ErrClosed is returned by changes of a closed store.
	ErrClosed = errors.New("store is closed")
	// ErrNotInSnapshot is returned by Snapshot.Open for a row of another snapshot.
	ErrNotInSnapshot = errors.New("file is not part of the snapshot")
	// ErrStaleEdit is returned by Commit when a row to remove is no longer live: another
	// commit replaced it first. Plan again on a new snapshot.
	ErrStaleEdit = errors.New("row to remove is not live")
	// ErrInvalidEdit is returned by Commit when the catalog after the edit would break a rule
	// of docs/formats/store.md. Nothing was changed.
	ErrInvalidEdit = errors.New("invalid edit")
)

// NewerFormatError is returned by Open for a store that a newer build wrote.
type NewerFormatError struct {
	Store, Supported uint32
}

// Error implements error.
func (e *NewerFormatError) Error() string {
	return fmt.Sprintf("store has format version %d, this build supports up to %d: use a newer build", e.Store, e.Supported)
}

// ChainError is returned by Open for a store of another chain.
type ChainError struct {
	Store, Want uint64
}

// Error implements error.
func (e *ChainError) Error() string {
	return fmt.Sprintf("store belongs to chain %d, configured is chain %d", e.Store, e.Want)
}

// FailedError is returned by every change of a store after its first failed write. Readers are
// not affected. Opening the store again recovers it.
type FailedError struct {
	// Cause is the first failure.
	Cause error
}

// Error implements error.
func (e *FailedError) Error() string {
	return fmt.Sprintf("store takes no more writes after a failure (reopen it to recover): %v", e.Cause)
}

// Unwrap gives the first failure.
func (e *FailedError) Unwrap() error { return e.Cause }
