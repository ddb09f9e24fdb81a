package remote

import (
	"context"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
)

// Fetch writes a version of a file, in pieces over several connections. A piece that breaks off goes
// on at its first missing byte. The error is an *Error or the context's.
func (f *Folder) Fetch(ctx context.Context, file string, version Version, to io.WriterAt) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	size, step := version.Size, f.options.PieceBytes
	pieces := (size + step - 1) / step
	var (
		next  atomic.Int64
		group sync.WaitGroup
	)
	for range min(int64(f.options.Connections), pieces) {
		group.Go(func() {
			for {
				i := next.Add(1) - 1
				if i >= pieces || ctx.Err() != nil {
					return
				}
				if err := f.fetchPiece(ctx, file, version, contentRange{i * step, min(size, (i+1)*step) - 1, size}, to); err != nil {
					cancel(err)
					return
				}
			}
		})
	}
	group.Wait()
	return context.Cause(ctx)
}

func (f *Folder) fetchPiece(ctx context.Context, file string, version Version, want contentRange, to io.WriterAt) error {
	w := &offsetWriter{to, want.first}
	rest := func() contentRange { return contentRange{w.offset, want.last, want.size} }
	for {
		before := w.offset
		err := f.request(ctx, file, func() string { return rest().header() }, func(r *http.Response, body io.Reader) error {
			return f.piece(r, body, rest(), version, w)
		})
		// A server that cuts every response short is slow, not broken, as long as it gets on.
		if !Unavailable(err) || w.offset-before < f.options.PieceBytes/leastShare {
			return err
		}
	}
}

// leastShare is the part of a piece that has to come for its attempts to be counted anew.
const leastShare = 16

// FetchWhole writes a file of at most limit bytes in one go, from its start again when it breaks off,
// and returns what the server says about it. The error is an *Error or the context's.
func (f *Folder) FetchWhole(ctx context.Context, file string, limit int64, to io.WriterAt) (Version, error) {
	var version Version
	err := f.request(ctx, file, noRange, func(r *http.Response, body io.Reader) error {
		var err error
		version, err = f.whole(r, body, limit, &offsetWriter{to, 0})
		return err
	})
	return version, err
}

// offsetWriter writes from an offset on.
type offsetWriter struct {
	to     io.WriterAt
	offset int64
}

// Write writes at the offset and moves it.
func (w *offsetWriter) Write(b []byte) (int, error) {
	n, err := w.to.WriteAt(b, w.offset)
	w.offset += int64(n)
	return n, err
}
