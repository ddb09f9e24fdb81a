package remote

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"time"
)

// request makes a GET request as often as is worth it, and there is time for. The header field Range is asked for each time
// and left out when empty; use reads the response.
func (f *Folder) request(ctx context.Context, file string, ranges func() string, use func(*http.Response, io.Reader) error) error {
	for attempt := 1; ; attempt++ {
		err := f.once(ctx, file, ranges(), use)
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil:
			return ctx.Err()
		case !repeatable(err):
			return &Error{f.Name(file), err}
		case attempt == f.options.Attempts:
			if attempt > 1 {
				err = fmt.Errorf("%w (after %d attempts)", err, attempt)
			}
			return &Error{f.Name(file), err}
		}
		wait := f.backoff(attempt)
		var status *StatusError
		if errors.As(err, &status) && status.RetryAfter > 0 {
			wait = status.RetryAfter
		}
		if deadline, ok := ctx.Deadline(); ok && time.Until(deadline) <= wait { // nobody would be there to ask again
			return &Error{f.Name(file), err}
		}
		f.options.Retrying(&Error{f.Name(file), err}, wait)
		if err := sleep(ctx, wait); err != nil {
			return err
		}
	}
}

// backoff is the wait after a number of attempts.
func (f *Folder) backoff(attempts int) time.Duration {
	wait := f.options.MaximumBackoff
	if shift := attempts - 1; shift < 20 {
		wait = min(wait, f.options.Backoff<<shift)
	}
	return wait - time.Duration(f.options.Jitter()*float64(wait)/2)
}

func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// once makes a request. Its error has no URL.
func (f *Folder) once(ctx context.Context, file, ranges string, use func(*http.Response, io.Reader) error) error {
	select {
	case f.slots <- struct{}{}:
		defer func() { <-f.slots }()
	case <-ctx.Done():
		return ctx.Err()
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, f.url(file), nil)
	if err != nil {
		return contradicts("the name of the file cannot be part of a URL")
	}
	request.Header.Set("User-Agent", "leani")
	request.Header.Set("Accept-Encoding", "identity")
	if ranges != "" {
		request.Header.Set("Range", ranges)
	}
	response, err := f.client.Do(request)
	if err != nil {
		return withoutURL(err)
	}
	defer response.Body.Close()
	if coding := response.Header.Get("Content-Encoding"); coding != "" && !strings.EqualFold(coding, "identity") {
		return contradicts("the response is in content coding %s, which was not asked for", quote(coding))
	}
	w := watch(response.Body, f.options.IdleTimeout, cancel)
	defer w.timer.Stop()
	err = use(response, w)
	if err != nil && errors.Is(context.Cause(ctx), ErrStalled) {
		return context.Cause(ctx)
	}
	return err
}

// watched is a body that ends when it stalls.
type watched struct {
	body  io.Reader
	moved atomic.Int64 // bytes since the timer was set
	timer *time.Timer
}

// watch cancels with ErrStalled when a period brings less than minimumProgress bytes.
func watch(body io.Reader, period time.Duration, cancel context.CancelCauseFunc) *watched {
	w := &watched{body: body}
	started := make(chan struct{})
	w.timer = time.AfterFunc(period, func() {
		<-started
		if n := w.moved.Swap(0); n < minimumProgress {
			cancel(fmt.Errorf("%w: %d bytes in %v", ErrStalled, n, period))
			return
		}
		w.timer.Reset(period)
	})
	close(started)
	return w
}

// Read reads the body.
func (w *watched) Read(b []byte) (int, error) {
	n, err := w.body.Read(b)
	w.moved.Add(int64(n))
	return n, err
}

// failure is the error of a response with another status than wanted.
func (f *Folder) failure(r *http.Response) error {
	if r.StatusCode < 400 {
		return contradicts("the server answers %d %s", r.StatusCode, http.StatusText(r.StatusCode))
	}
	e := &StatusError{Code: r.StatusCode}
	if e.passing() {
		e.RetryAfter, _ = parseRetryAfter(r.Header.Get("Retry-After"), time.Now(), f.options.MaximumRetryAfter)
	}
	return e
}
