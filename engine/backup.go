package engine

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/leani-go/leani/keys"
)

// A backup is a data directory of its own: it can be opened, verified and restored. Its segment files are hard
// links where the file system allows it, and its database is written anew, row by row, from a snapshot. See
// docs/adr/0009-backup.md.

// BackupOptions configure Backup and Restore.
type BackupOptions struct {
	// Copy makes copies of segment files where hard links would do. Links take no space; copies survive
	// damage of the disk blocks that links share.
	Copy bool
	// Verify, if set, says what is wrong with the content of a file of the copy, as CheckOptions.File does. The first
	// problem ends the copy with ErrUnsound. Without it names and sizes alone are sure.
	Verify func(ctx context.Context, row *FileRow, f *File) error
	// OnFile is told after each segment file how many bytes it has; it may be nil.
	OnFile func(size int64)
}

// BackupReport says what a backup holds.
type BackupReport struct {
	Generation uint64
	Files      int
	Bytes      int64 // of the segment files
	Copied     int   // files that were copied, not linked
	Rows       int   // of the database
}

// ErrTargetExists is returned when a backup or a restored store would replace what is there.
var ErrTargetExists = errors.New("the target is not empty")

// ErrUnsound is returned for a copy of which a file is damaged: the original is, or the disk of the copy.
var ErrUnsound = errors.New("a file of the copy is damaged")

// ErrTargetWithin is returned when a backup would lie in the store that it is of, where it would count as damage.
var ErrTargetWithin = errors.New("the target lies in the data directory")

// partialSuffix marks a directory that a backup or a restore is filling.
const partialSuffix = ".partial"

// Backup writes everything that is committed at this moment to a new directory: database, segment files and
// generation file agree with each other. Commits go on meanwhile; files that are replaced stay until the
// backup is done. It appears under its name when it is complete and durable; a crash leaves a directory with
// the suffix ".partial" beside it, which the next Backup to the same name replaces.
//
// The error is ErrTargetExists when there is something at dir, ErrTargetWithin when it is in the store, and ErrUnsound for what
// BackupOptions.Verify finds. An error of the target's disk does not fail the
// store.
func (e *Engine) Backup(ctx context.Context, dir string, opts BackupOptions) (BackupReport, error) {
	report, err := e.backup(ctx, dir, opts)
	if err != nil {
		return BackupReport{}, fmt.Errorf("back up to %s: %w", dir, err)
	}
	return report, nil
}

func (e *Engine) backup(ctx context.Context, dir string, opts BackupOptions) (BackupReport, error) {
	fs := e.opts.FS
	for d := dir; ; d = fs.PathDir(d) {
		if d == e.layout.dir {
			return BackupReport{}, ErrTargetWithin
		}
		if d == fs.PathDir(d) {
			break
		}
	}
	if _, err := fs.Stat(dir); err == nil {
		return BackupReport{}, ErrTargetExists
	} else if !isNotExist(err) {
		return BackupReport{}, err
	}
	partial := dir + partialSuffix
	if err := fs.RemoveAll(partial); err != nil {
		return BackupReport{}, err
	}
	changed, err := mkdirAll(fs, fs.PathDir(dir))
	if err != nil {
		return BackupReport{}, err
	}
	for _, d := range changed {
		if err := syncDir(fs, d); err != nil {
			return BackupReport{}, err
		}
	}
	report, err := e.writeCopy(ctx, partial, opts)
	if err != nil {
		return BackupReport{}, errors.Join(err, fs.RemoveAll(partial))
	}
	if err := fs.Rename(partial, dir); err != nil {
		return BackupReport{}, err
	}
	return report, syncDir(fs, fs.PathDir(dir))
}

// writeCopy writes the committed state to a new directory and makes it durable.
func (e *Engine) writeCopy(ctx context.Context, dir string, opts BackupOptions) (report BackupReport, err error) {
	snapshot, rows, err := e.freeze(ctx)
	if err != nil {
		return report, err
	}
	defer snapshot.Release()
	defer func() { err = errors.Join(err, rows.Close()) }()

	t := newEngine(Options{Dir: dir, FS: e.opts.FS, Logger: e.opts.Logger}.withDefaults())
	close(t.reaperDone)
	defer func() {
		if closeErr := t.shutDown(); err == nil {
			err = closeErr
		}
	}()
	t.identity = e.identity
	if err := t.layout.create(); err != nil {
		return report, err
	}
	if err := t.lock(); err != nil {
		return report, err
	}
	report.Generation = snapshot.Generation()
	if err := e.copyFiles(ctx, t, snapshot, opts, &report); err != nil {
		return report, err
	}
	if err := t.createGenerationFile(t.layout.generation(), report.Generation); err != nil {
		return report, err
	}
	if err := t.openDatabase(); err != nil {
		return report, err
	}
	if report.Rows, err = t.copyRows(ctx, rows); err != nil {
		return report, err
	}
	return report, nil
}

// freeze gives a snapshot and the rows of the database at the same commit.
func (e *Engine) freeze(ctx context.Context) (*Snapshot, *pebble.Snapshot, error) {
	if e.closed.Load() {
		return nil, nil, ErrClosed
	}
	if err := e.lockCommit(ctx); err != nil {
		return nil, nil, err
	}
	defer e.unlockCommit()
	if err := e.Err(); err != nil {
		return nil, nil, err // the database may hold an edit that nobody acknowledged
	}
	return e.Acquire(), e.db.NewSnapshot(), nil
}

// copyFiles links or copies the files of a snapshot into the layout of t, and syncs the directories.
func (e *Engine) copyFiles(ctx context.Context, t *Engine, s *Snapshot, opts BackupOptions, report *BackupReport) error {
	for _, kind := range keys.Kinds() {
		for _, row := range s.Rows(kind) {
			if err := ctx.Err(); err != nil {
				return err
			}
			copied, err := placeFile(e.opts.FS, e.layout.file(kind, row.Name()), t.layout.file(kind, row.Name()), opts.Copy)
			if err != nil {
				return err
			}
			if copied {
				report.Copied++
			}
			if opts.Verify != nil {
				if err := t.verifyFile(ctx, row, opts.Verify); err != nil {
					return err
				}
			}
			report.Files++
			report.Bytes += row.Size
			if opts.OnFile != nil {
				opts.OnFile(row.Size)
			}
		}
		if err := syncDir(e.opts.FS, t.layout.kind(kind)); err != nil {
			return err
		}
	}
	return nil
}

// verifyFile checks the content of a file in the layout of e.
func (e *Engine) verifyFile(ctx context.Context, row *FileRow, verify func(context.Context, *FileRow, *File) error) error {
	f, err := e.handles.open(row)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }() // only read
	if err := verify(ctx, row, f); err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return fmt.Errorf("%w: %s: %w", ErrUnsound, row, err)
	}
	return nil
}

// placeFile links a file, or copies it where it cannot be linked; copied says which. A copy is durable.
func placeFile(fs vfs.FS, from, to string, forceCopy bool) (copied bool, err error) {
	if !forceCopy {
		// A link to a symbolic link would be one, too: the copy would have the name of the file and not the file.
		file := from
		if target, err := filepath.EvalSymlinks(from); err == nil {
			file = target
		}
		if err := fs.Link(file, to); err == nil {
			return false, nil
		}
	}
	if err := copyFile(fs, from, to); err != nil {
		return true, fmt.Errorf("copy %s to %s: %w", from, to, err)
	}
	return true, nil
}

func copyFile(fs vfs.FS, from, to string) error {
	in, err := fs.Open(from, vfs.SequentialReadsOption)
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }() // only read
	out, err := fs.Create(to, writeCategory)
	if err != nil {
		return err
	}
	_, err = io.CopyBuffer(struct{ io.Writer }{out}, struct{ io.Reader }{in}, make([]byte, bytesPerSync))
	if err == nil {
		err = out.Sync()
	}
	if closeErr := out.Close(); err == nil {
		err = closeErr
	}
	return err
}

// copyBatchBytes is how much of a database is copied with one batch.
const copyBatchBytes = 1 << 20

// copyRows writes all rows into the database of e, which is empty.
func (e *Engine) copyRows(ctx context.Context, from pebble.Reader) (rows int, err error) {
	b := e.db.NewBatch()
	flush := func() error {
		full := b
		b = e.db.NewBatch()
		return e.apply(full)
	}
	err = scanRange(from, nil, nil, func(key, value []byte) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		rows++
		if err := b.Set(key, value, nil); err != nil {
			return err
		}
		if b.Len() >= copyBatchBytes {
			return flush()
		}
		return nil
	})
	if err != nil {
		return rows, err
	}
	return rows, flush()
}

// sameContent compares two files.
func sameContent(fs vfs.FS, a, b string) (same bool, err error) {
	var files [2]vfs.File
	for i, path := range []string{a, b} {
		if files[i], err = fs.Open(path, vfs.SequentialReadsOption); err != nil {
			return false, err
		}
		defer func() { _ = files[i].Close() }()
	}
	var buffers [2][]byte
	for i := range buffers {
		buffers[i] = make([]byte, 256<<10)
	}
	for {
		n, errA := io.ReadFull(files[0], buffers[0])
		m, errB := io.ReadFull(files[1], buffers[1])
		if !bytes.Equal(buffers[0][:n], buffers[1][:m]) {
			return false, nil
		}
		for _, err := range []error{errA, errB} {
			if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
				return false, err
			}
		}
		if errA != nil || errB != nil {
			return errA != nil && errB != nil, nil
		}
	}
}
