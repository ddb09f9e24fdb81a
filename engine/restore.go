package engine

import (
	"context"
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/leani-go/leani/keys"
)

// RestoreOptions configure Restore.
type RestoreOptions struct {
	BackupOptions
	// FS is the file system of both directories; nil is the operating system's.
	FS vfs.FS
	// ChainID refuses the backup of another chain; 0 takes any.
	ChainID uint64
	// File says what is wrong with the content of a file of the backup, as CheckOptions.File does; nil
	// looks at names and sizes alone.
	File func(ctx context.Context, row *FileRow, f *File) error
}

// RestoreReport says what Restore did.
type RestoreReport struct {
	BackupReport
	// Quarantined are the files that lay in the segment directories of the target and are not those of the
	// backup: where they lie now.
	Quarantined []string
}

// DamagedBackupError is returned by Restore for a backup that does not pass Check. Nothing was changed.
type DamagedBackupError struct{ Problems []Problem }

// Error implements error.
func (e *DamagedBackupError) Error() string {
	return fmt.Sprintf("the backup is damaged: %d problems, the first: %s", len(e.Problems), e.Problems[0])
}

// restorePartial is the directory below the target in which a restore works.
const restorePartial = "restore" + partialSuffix

// Restore puts a backup in place as the store of a directory that has no database: an empty one, or one
// whose db/ was lost or moved away. The backup is verified first and never changed. What lies in the segment
// directories of the target and is not part of the backup, newer files after all, is quarantined and not
// deleted.
//
// Restore first builds everything aside and then renames it into place, the generation file first and the
// database last. A crash leaves a directory that does not open as a store, and the same call done again ends
// the work. The error is ErrTargetExists when the target has a database.
func Restore(ctx context.Context, from, dir string, opts RestoreOptions) (RestoreReport, error) {
	if opts.FS == nil {
		opts.FS = vfs.Default
	}
	report, err := restore(ctx, from, dir, opts)
	if err != nil {
		return RestoreReport{}, fmt.Errorf("restore %s into %s: %w", from, dir, err)
	}
	return report, nil
}

func restore(ctx context.Context, from, dir string, opts RestoreOptions) (report RestoreReport, err error) {
	backup, err := Open(Options{Dir: from, FS: opts.FS, ChainID: opts.ChainID, ReadOnly: true})
	if err != nil {
		return report, err
	}
	defer func() {
		if closeErr := backup.Close(); err == nil {
			err = closeErr
		}
	}()
	checked, err := backup.Check(ctx, CheckOptions{File: opts.File})
	if err != nil {
		return report, err
	}
	if !checked.Clean() {
		return report, &DamagedBackupError{checked.Problems}
	}

	fs := opts.FS
	target := layout{fs: fs, dir: dir}
	if err := withoutDatabase(target); err != nil {
		return report, err
	}
	if err := target.create(); err != nil {
		return report, err
	}
	lock, err := fs.Lock(target.lock())
	if err != nil {
		if isHeld(err) {
			err = fmt.Errorf("%w (%w)", ErrLocked, err)
		}
		return report, err
	}
	defer func() { err = errors.Join(err, lock.Close()) }()

	aside := layout{fs: fs, dir: fs.PathJoin(dir, restorePartial)}
	if err := fs.RemoveAll(aside.dir); err != nil {
		return report, err
	}
	if report.BackupReport, err = backup.writeCopy(ctx, aside.dir, opts.BackupOptions); err != nil {
		return report, errors.Join(err, fs.RemoveAll(aside.dir))
	}
	// From here on only names change.
	if err := fs.Rename(aside.generation(), target.generation()); err != nil {
		return report, err
	}
	if err := syncDir(fs, dir); err != nil {
		return report, err
	}
	if report.Quarantined, err = moveIn(aside, target); err != nil {
		return report, err
	}
	if err := withoutDatabase(target); err != nil {
		return report, err
	}
	if err := fs.RemoveAll(target.database()); err != nil { // made by create
		return report, err
	}
	if err := fs.Rename(aside.database(), target.database()); err != nil {
		return report, err
	}
	if err := syncDir(fs, dir); err != nil {
		return report, err
	}
	if err := fs.RemoveAll(aside.dir); err != nil {
		return report, err
	}
	return report, syncDir(fs, dir)
}

// withoutDatabase is ErrTargetExists when there is anything of a database: more than the file that an open
// which found nothing leaves.
func withoutDatabase(l layout) error {
	names, err := l.fs.List(l.database())
	if err != nil && !isNotExist(err) {
		return err
	}
	for _, n := range names {
		if n != "LOCK" {
			return fmt.Errorf("%w: it has a database", ErrTargetExists)
		}
	}
	return nil
}

// moveIn moves the segment files of one layout to another one, where everything else goes to quarantine.
func moveIn(aside, target layout) (quarantined []string, err error) {
	fs := target.fs
	taken := map[string]bool{}
	names, err := fs.List(target.quarantine())
	if err != nil {
		return nil, fmt.Errorf("list quarantine: %w", err)
	}
	for _, n := range names {
		taken[n] = true
	}
	for _, kind := range keys.Kinds() {
		ours := map[string]bool{}
		names, err := fs.List(aside.kind(kind))
		if err != nil {
			return quarantined, err
		}
		for _, n := range names {
			ours[n] = true
		}
		if names, err = fs.List(target.kind(kind)); err != nil {
			return quarantined, err
		}
		for _, n := range names {
			if ours[n] {
				same, err := sameContent(fs, aside.file(kind, n), target.file(kind, n))
				if err != nil {
					return quarantined, err
				}
				if same {
					continue // the rename replaces it by itself
				}
			}
			to := fs.PathJoin(target.quarantine(), quarantineName(kind, n, taken))
			if err := fs.Rename(target.file(kind, n), to); err != nil {
				return quarantined, fmt.Errorf("quarantine %s: %w", target.file(kind, n), err)
			}
			quarantined = append(quarantined, to)
		}
		// Before the directory that the files came from, so that a crash duplicates them.
		if err := syncDir(fs, target.quarantine()); err != nil {
			return quarantined, err
		}
		for n := range ours {
			if err := fs.Rename(aside.file(kind, n), target.file(kind, n)); err != nil {
				return quarantined, err
			}
		}
		if err := syncDir(fs, target.kind(kind)); err != nil {
			return quarantined, err
		}
	}
	return quarantined, nil
}

// quarantineName finds a free name in the quarantine directory and takes it.
func quarantineName(kind Kind, name string, taken map[string]bool) string {
	free := kind.String() + "-" + name
	for i := 1; taken[free]; i++ {
		free = fmt.Sprintf("%s-%s.%d", kind, name, i)
	}
	taken[free] = true
	return free
}
