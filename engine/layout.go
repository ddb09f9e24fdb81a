package engine

import (
	"errors"
	"fmt"
	iofs "io/fs"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/leani-go/leani/keys"
)

// layout knows where things lie in the data directory; see docs/formats/store.md.
type layout struct {
	fs  vfs.FS
	dir string
}

func (l layout) lock() string                    { return l.fs.PathJoin(l.dir, "LOCK") }
func (l layout) database() string                { return l.fs.PathJoin(l.dir, "db") }
func (l layout) generation() string              { return l.fs.PathJoin(l.dir, "GENERATION") }
func (l layout) segments() string                { return l.fs.PathJoin(l.dir, "segments") }
func (l layout) quarantine() string              { return l.fs.PathJoin(l.dir, "quarantine") }
func (l layout) kind(k Kind) string              { return l.fs.PathJoin(l.segments(), k.String()) }
func (l layout) file(k Kind, name string) string { return l.fs.PathJoin(l.kind(k), name) }

// create makes the directories and syncs their names, also when they are there already: the
// process that made them may have died before it synced.
func (l layout) create() error {
	dirs := []string{l.database(), l.quarantine()}
	for _, k := range keys.Kinds() {
		dirs = append(dirs, l.kind(k))
	}
	made, err := mkdirAll(l.fs, l.dir)
	if err != nil {
		return err
	}
	for _, d := range dirs {
		if err := l.fs.MkdirAll(d, 0o755); err != nil {
			return fmt.Errorf("create directory %s: %w", d, err)
		}
	}
	for _, d := range append(made, l.segments(), l.dir) {
		if err := syncDir(l.fs, d); err != nil {
			return err
		}
	}
	return nil
}

// mkdirAll makes dir and lists the directories whose entries changed, inner first.
func mkdirAll(fs vfs.FS, dir string) (changed []string, err error) {
	for d := dir; ; {
		_, err := fs.Stat(d)
		if err == nil {
			break
		}
		if !isNotExist(err) {
			return nil, fmt.Errorf("create directory %s: %w", dir, err)
		}
		parent := fs.PathDir(d)
		if parent == d {
			break
		}
		changed = append(changed, parent)
		d = parent
	}
	if err := fs.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("create directory %s: %w", dir, err)
	}
	return changed, nil
}

// syncDir makes the entries of a directory durable.
func syncDir(fs vfs.FS, dir string) error {
	d, err := fs.OpenDir(dir)
	if err != nil {
		return fmt.Errorf("sync directory %s: %w", dir, err)
	}
	err = d.Sync()
	if closeErr := d.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		return fmt.Errorf("sync directory %s: %w", dir, err)
	}
	return nil
}

func isNotExist(err error) bool { return errors.Is(err, iofs.ErrNotExist) }
