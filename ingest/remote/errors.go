package remote

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// Sentinels of this package.
var (
	// ErrNoRanges means that a server answered a request for a part of a file with all of it.
	ErrNoRanges = errors.New("the server has no byte ranges")
	// ErrStalled means that a response came to a halt, or nearly so.
	ErrStalled = errors.New("the response stalls")
	// ErrTooLarge means that a file is larger than the caller's limit.
	ErrTooLarge = errors.New("the file is larger than the limit")
)

// Error says which file of which server could not be read.
type Error struct {
	File string // scheme, host and name, without what may be secret
	Err  error
}

// Error writes file and cause.
func (e *Error) Error() string { return fmt.Sprintf("fetch %s: %v", e.File, e.Err) }

// Unwrap gives the cause.
func (e *Error) Unwrap() error { return e.Err }

// StatusError is a response that is not what was asked for.
type StatusError struct {
	Code int
	// RetryAfter is how long the server wants to be left alone; 0 when it does not say.
	RetryAfter time.Duration
}

// Error writes the code and its name.
func (e *StatusError) Error() string {
	return fmt.Sprintf("the server answers %d %s", e.Code, http.StatusText(e.Code))
}

// passing tells whether the server may well answer otherwise in a while.
func (e *StatusError) passing() bool {
	switch e.Code {
	case http.StatusRequestTimeout, http.StatusTooManyRequests:
		return true
	}
	return e.Code >= 500
}

// ChangedError means that a file is not the one that was looked at before.
type ChangedError struct {
	What      string // "size", "ETag" or "Last-Modified"
	Got, Want string
}

// Error writes both versions.
func (e *ChangedError) Error() string {
	return fmt.Sprintf("the file changed: %s: got %s, it was %s", e.What, e.Got, e.Want)
}

// ProtocolError is a response that contradicts the request or itself.
type ProtocolError struct{ Reason string }

// Error is the reason.
func (e *ProtocolError) Error() string { return e.Reason }

func contradicts(format string, args ...any) error {
	return &ProtocolError{fmt.Sprintf(format, args...)}
}

// writeError is a failure of this machine's disk.
type writeError struct{ err error }

func (e *writeError) Error() string { return fmt.Sprintf("write: %v", e.err) }
func (e *writeError) Unwrap() error { return e.err }

// redirectError is a redirect that is not followed.
type redirectError struct{ reason string }

func (e *redirectError) Error() string { return e.reason }

// repeatable tells whether the same request may do better.
func repeatable(err error) bool {
	var (
		status      *StatusError
		changed     *ChangedError
		protocol    *ProtocolError
		local       *writeError
		redirect    *redirectError
		certificate *tls.CertificateVerificationError
	)
	switch {
	case errors.As(err, &status):
		return status.passing()
	case errors.Is(err, ErrNoRanges), errors.Is(err, ErrTooLarge), errors.Is(err, errProxy),
		errors.As(err, &changed), errors.As(err, &protocol), errors.As(err, &local),
		errors.As(err, &redirect), errors.As(err, &certificate):
		return false
	}
	return true
}

// Unavailable tells whether an error says something about the server's state rather than about what
// it holds: it cannot be reached, is overloaded, or breaks off.
func Unavailable(err error) bool {
	var failure *Error
	return errors.As(err, &failure) && repeatable(failure.Err) && !errors.Is(err, context.Canceled)
}

// withoutURL is the cause of an error of the http package, whose own text has the whole URL.
func withoutURL(err error) error {
	var u *url.Error
	if errors.As(err, &u) {
		if u.Timeout() {
			return fmt.Errorf("timeout: %w", u.Err)
		}
		if strings.Contains(u.Err.Error(), "Location") { // what a redirect names may be secret
			return &redirectError{"the server redirects without a valid Location"}
		}
		return u.Err
	}
	return err
}
