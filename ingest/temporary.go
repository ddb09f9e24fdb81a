package ingest

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"
)

// ErrTemporaryDisk means that a file needs more temporary disk space than there may be.
var ErrTemporaryDisk = errors.New("the limit of temporary disk space is too small for the file")

// Temporary is disk space for files while they are read. Their names are removed as soon as they are
// made, so that nothing in them is left behind, whatever ends the process. It is safe for concurrent use.
type Temporary struct {
	dir   string
	limit int64
	file  int64 // limit of one file

	mu    sync.Mutex
	used  int64
	freed chan struct{} // closed and replaced when space becomes free
}

// NewTemporary makes files in a directory, which is made when it is needed, of at most limit bytes
// together.
func NewTemporary(dir string, limit int64) *Temporary {
	return &Temporary{dir: dir, limit: limit, file: limit, freed: make(chan struct{})}
}

// LimitFile lowers what one file may take, and returns t. It is called before the first use.
func (t *Temporary) LimitFile(bytes int64) *Temporary {
	t.file = min(bytes, t.limit)
	return t
}

// temporaryFile is a file without a name, and the space reserved for it.
type temporaryFile struct {
	*os.File
	space    *Temporary
	reserved int64
}

// create reserves space, waiting until enough is free, and makes a file.
func (t *Temporary) create(ctx context.Context, bytes int64) (*temporaryFile, error) {
	if bytes > t.file {
		return nil, fmt.Errorf("%w: %d bytes, the limit is %d", ErrTemporaryDisk, bytes, t.file)
	}
	if err := t.reserve(ctx, bytes); err != nil {
		return nil, err
	}
	file, err := t.open()
	if err != nil {
		t.free(bytes)
		return nil, fmt.Errorf("make temporary file: %w", err)
	}
	return &temporaryFile{file, t, bytes}, nil
}

func (t *Temporary) reserve(ctx context.Context, bytes int64) error {
	for {
		t.mu.Lock()
		fits, freed := t.used+bytes <= t.limit, t.freed
		if fits {
			t.used += bytes
		}
		t.mu.Unlock()
		if fits {
			return nil
		}
		select {
		case <-freed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (t *Temporary) free(bytes int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.used -= bytes
	close(t.freed)
	t.freed = make(chan struct{})
}

// open makes a file and removes its name.
func (t *Temporary) open() (*os.File, error) {
	if err := os.MkdirAll(t.dir, 0o700); err != nil {
		return nil, err
	}
	file, err := os.CreateTemp(t.dir, "fetch-*")
	if err != nil {
		return nil, err
	}
	if err := os.Remove(file.Name()); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}

// WriteAt writes. The error names the directory: the file has no name any more.
func (f *temporaryFile) WriteAt(b []byte, offset int64) (int, error) {
	n, err := f.File.WriteAt(b, offset)
	var path *fs.PathError
	if errors.As(err, &path) {
		err = &fs.PathError{Op: path.Op, Path: f.space.dir, Err: path.Err}
	}
	return n, err
}

// settle cuts the file to its size, beyond which a longer attempt may have written, and gives back what
// is reserved for more.
func (f *temporaryFile) settle(bytes int64) error {
	if err := f.Truncate(bytes); err != nil {
		return fmt.Errorf("cut temporary file: %w", err)
	}
	f.space.free(f.reserved - bytes)
	f.reserved = bytes
	return nil
}

// Close removes the file.
func (f *temporaryFile) Close() error {
	err := f.File.Close()
	f.space.free(f.reserved)
	f.reserved = 0
	return err
}
