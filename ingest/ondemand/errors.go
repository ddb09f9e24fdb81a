package ondemand

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/leani-go/leani/chain"
	"github.com/leani-go/leani/ingest"
	"github.com/leani-go/leani/ingest/archive"
	"github.com/leani-go/leani/ingest/era"
	"github.com/leani-go/leani/ingest/remote"
	"github.com/leani-go/leani/ingest/verify"
)

// Reason is why a request or one source of it failed.
type Reason uint8

// The reasons, the one that a request of several failures has first.
const (
	// TimedOut: the request took too long.
	TimedOut Reason = iota + 1
	// Failed: a source could not be read. It may be otherwise later.
	Failed
	// Mismatched: the reader found that the blocks do not fit what it has.
	Mismatched
	// Invalid: a source has other material than headers, links or digests say.
	Invalid
	// OverBudget: the blocks take more bytes than a request may.
	OverBudget
	// NotHeld: no source has all of the blocks, whole.
	NotHeld
	// OutOfRange: the request has more blocks than one may.
	OutOfRange
)

// String is a name for the log.
func (r Reason) String() string {
	names := [...]string{
		TimedOut: "timed out", Failed: "source failed", Mismatched: "does not fit retained blocks", Invalid: "invalid material",
		OverBudget: "too many bytes", NotHeld: "no source has the blocks", OutOfRange: "too many blocks",
	}
	if int(r) < len(names) && names[r] != "" {
		return names[r]
	}
	return fmt.Sprintf("reason %d", uint8(r))
}

// Error is why a request failed.
type Error struct {
	Reason Reason
	// Failures are those of the sources in the order in which they were asked; none when none was.
	Failures []*ingest.Failure
	Err      error // of the request itself; nil where Failures say all
}

// Error gives the reason and every failure.
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString(e.Reason.String())
	if e.Err != nil {
		fmt.Fprintf(&b, ": %v", e.Err)
	}
	for _, f := range e.Failures {
		fmt.Fprintf(&b, "; %v", f)
	}
	return b.String()
}

// BusyError says that as many requests wait as may.
type BusyError struct{ Limit int }

// Error gives the limit.
func (e *BusyError) Error() string { return fmt.Sprintf("%d requests wait for history", e.Limit) }

// RejectedError is what a Reader returns of a block of the wrong source: the next one is asked.
type RejectedError struct {
	Reason Reason // Mismatched or Invalid
	Err    error
}

// Error is the cause.
func (e *RejectedError) Error() string { return e.Err.Error() }

// Unwrap gives the cause.
func (e *RejectedError) Unwrap() error { return e.Err }

// budgetError says that a request needs more bytes than it may have.
type budgetError struct {
	what        string
	block       uint64
	need, limit int64
}

func (e *budgetError) Error() string {
	return fmt.Sprintf("block %d: %s: needs %d bytes, %d are allowed", e.block, e.what, e.need, e.limit)
}

// readerError carries an error of the Reader, which ends the request, past what is done about those of sources.
type readerError struct{ err error }

func (e *readerError) Error() string { return e.err.Error() }

// notFound is the HTTP status of a file that is not there.
const notFound = 404

// reasonOf is the reason of a source's error.
func reasonOf(err error) Reason {
	var (
		rejected *RejectedError
		holes    ingest.Holes
		unread   *era.HoleError
		budget   *budgetError
		lines    *archive.BudgetError
		proof    *verify.Error
		digest   *era.DigestError
		file     *era.CorruptError
		object   *archive.CorruptError
		manifest *archive.ManifestError
		place    *archive.PathError
		refused  *ingest.RefusedError
		protocol *remote.ProtocolError
		path     *fs.PathError
		status   *remote.StatusError
	)
	switch {
	case errors.As(err, &rejected):
		return rejected.Reason
	case errors.As(err, &unread):
		return reasonOfHole(unread)
	case errors.As(err, &holes), errors.Is(err, ingest.ErrNoReceipts), errors.As(err, &status) && status.Code == notFound:
		return NotHeld
	case errors.As(err, &budget), errors.As(err, &lines), errors.Is(err, era.ErrTooLarge), errors.Is(err, ingest.ErrTemporaryDisk):
		return OverBudget
	case errors.As(err, &manifest) && !errors.As(err, &path):
		return NotHeld // it is none, is of another chain, or declares too little
	case errors.As(err, &proof), errors.As(err, &digest), errors.As(err, &file), errors.As(err, &object),
		errors.As(err, &refused), errors.As(err, &place), errors.As(err, &protocol), errors.Is(err, chain.ErrNotExact),
		errors.Is(err, archive.ErrHash), errors.Is(err, archive.ErrOrder), errors.Is(err, archive.ErrChecksum):
		return Invalid
	}
	return Failed
}

// reasonOfHole is the reason of a source without some blocks: why a mirror could not be asked what a file holds, or else that it has
// none that holds them. Files of a folder that cannot be read may be anywhere in the chain.
func reasonOfHole(e *era.HoleError) Reason {
	reason := NotHeld
	for _, err := range e.Unread {
		var answer *remote.Error
		if errors.As(err, &answer) {
			reason = min(reason, reasonOf(err))
		}
	}
	return reason
}

// exhausted is the error when no source is left.
func exhausted(failures []*ingest.Failure) *Error {
	e := &Error{Reason: NotHeld, Failures: failures}
	for _, f := range failures {
		e.Reason = min(e.Reason, reasonOf(f.Err))
	}
	return e
}

// ended is the error of a request whose context has ended.
func ended(ctx context.Context, failures []*ingest.Failure) error {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return &Error{Reason: TimedOut, Failures: failures, Err: ctx.Err()}
	}
	return fmt.Errorf("fetch history: %w", ctx.Err())
}
