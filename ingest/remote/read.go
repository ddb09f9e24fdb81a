package remote

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
)

func noRange() string { return "" }

// Read reads a file of at most limit bytes. The error is an *Error or the context's.
func (f *Folder) Read(ctx context.Context, file string, limit int64) ([]byte, error) {
	var content bytes.Buffer
	err := f.request(ctx, file, noRange, func(r *http.Response, body io.Reader) error {
		content.Reset()
		_, err := f.whole(r, body, limit, &content)
		return err
	})
	if err != nil {
		return nil, err
	}
	return content.Bytes(), nil
}

// whole copies the body of a response for a whole file, and returns its version.
func (f *Folder) whole(r *http.Response, body io.Reader, limit int64, to io.Writer) (Version, error) {
	if r.StatusCode != http.StatusOK {
		return Version{}, f.failure(r)
	}
	if r.ContentLength > limit {
		return Version{}, fmt.Errorf("%w: %d bytes, %d are allowed", ErrTooLarge, r.ContentLength, limit)
	}
	n, err := transfer(to, io.LimitReader(body, limit+1))
	switch {
	case err != nil:
		return Version{}, err
	case n > limit:
		return Version{}, fmt.Errorf("%w: more than %d bytes", ErrTooLarge, limit)
	}
	return versionOf(r, n), nil
}

// transfer copies and tells failures of the two sides apart.
func transfer(to io.Writer, from io.Reader) (int64, error) {
	buf := make([]byte, copyBytes)
	var total int64
	for {
		n, err := from.Read(buf)
		if n > 0 {
			written, failure := to.Write(buf[:n])
			total += int64(written)
			if failure != nil {
				return total, &writeError{failure}
			}
		}
		if err == io.EOF {
			return total, nil
		}
		if err != nil {
			return total, err
		}
	}
}

// Tail reads the last bytes of a file: n of them, or all when there are less. It returns them with
// what the server says about the file. The error is an *Error or the context's; ErrNoRanges is one of
// the causes.
func (f *Folder) Tail(ctx context.Context, file string, n int64) ([]byte, Version, error) {
	var (
		content bytes.Buffer
		version Version
	)
	err := f.request(ctx, file, func() string { return fmt.Sprintf("bytes=-%d", n) }, func(r *http.Response, body io.Reader) error {
		content.Reset()
		got, err := f.part(r)
		if err != nil {
			return err
		}
		if got.last != got.size-1 || got.first != max(0, got.size-n) {
			return contradicts("asked for the last %d bytes, the server sends %d to %d of %d", n, got.first, got.last, got.size)
		}
		version = versionOf(r, got.size)
		return f.exactly(body, got.last-got.first+1, &content)
	})
	if err != nil {
		return nil, Version{}, err
	}
	return content.Bytes(), version, nil
}

// ReadRange fills b with the bytes of a file from an offset on. The file must be the given version of
// it; if not, the error has a *ChangedError as its cause.
func (f *Folder) ReadRange(ctx context.Context, file string, version Version, b []byte, offset int64) error {
	if len(b) == 0 {
		return nil
	}
	var content bytes.Buffer
	want := contentRange{offset, offset + int64(len(b)) - 1, version.Size}
	err := f.request(ctx, file, want.header, func(r *http.Response, body io.Reader) error {
		content.Reset()
		return f.piece(r, body, want, version, &content)
	})
	copy(b, content.Bytes())
	return err
}

// header asks for the run.
func (c contentRange) header() string { return fmt.Sprintf("bytes=%d-%d", c.first, c.last) }

// piece copies the body of a response that must be exactly a run of bytes of a version of a file.
func (f *Folder) piece(r *http.Response, body io.Reader, want contentRange, version Version, to io.Writer) error {
	got, err := f.part(r)
	if err != nil {
		if r.StatusCode == http.StatusRequestedRangeNotSatisfiable {
			return &ChangedError{"size", "less", fmt.Sprint(version.Size)}
		}
		return err
	}
	if err := versionOf(r, got.size).compare(version); err != nil {
		return err
	}
	if got != want {
		return contradicts("asked for bytes %d to %d, the server sends %d to %d", want.first, want.last, got.first, got.last)
	}
	return f.exactly(body, want.last-want.first+1, to)
}

// part checks that a response is a run of bytes, and says which.
func (f *Folder) part(r *http.Response) (contentRange, error) {
	switch r.StatusCode {
	case http.StatusPartialContent:
	case http.StatusOK:
		return contentRange{}, ErrNoRanges
	default:
		return contentRange{}, f.failure(r)
	}
	fields := r.Header.Values("Content-Range")
	if len(fields) != 1 {
		return contentRange{}, contradicts("a partial response has %d Content-Range fields", len(fields))
	}
	got, err := parseContentRange(fields[0])
	if err != nil {
		return contentRange{}, contradicts("Content-Range %s: %v", quote(fields[0]), err)
	}
	if n := got.last - got.first + 1; r.ContentLength >= 0 && r.ContentLength != n {
		return contentRange{}, contradicts("Content-Range %s with a Content-Length of %d", quote(fields[0]), r.ContentLength)
	}
	return got, nil
}

// exactly copies n bytes, after which the body must end.
func (f *Folder) exactly(body io.Reader, n int64, to io.Writer) error {
	got, err := transfer(to, io.LimitReader(body, n))
	if err != nil {
		return err
	}
	if got < n {
		return fmt.Errorf("%w: %d of %d bytes", io.ErrUnexpectedEOF, got, n)
	}
	var more [1]byte
	if extra, _ := body.Read(more[:]); extra > 0 {
		return contradicts("the response has more than the %d bytes that were asked for", n)
	}
	return nil
}
