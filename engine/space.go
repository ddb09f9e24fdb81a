package engine

import (
	"errors"
	"fmt"
	"sort"
)

// Space says what the store takes on disk, in bytes by class.
type Space struct {
	// Data, Index, Senders and Frames are the live segment files.
	Data, Index, Senders, Frames int64
	// Retired are replaced files that wait for their last reader.
	Retired int64
	// Temporary are files being written: budgets.temporary_disk_bytes bounds them.
	Temporary int64
	// Database is the catalog with its log.
	Database int64
}

// Store is what Options.MaximumBytes bounds: everything but the files being written.
func (s Space) Store() int64 { return s.Data + s.Index + s.Senders + s.Frames + s.Retired + s.Database }

// Total is everything. The quarantine is not the store's and not in it.
func (s Space) Total() int64 { return s.Store() + s.Temporary }

// ErrSpace is what errors.Is finds in a *SpaceError.
var ErrSpace = errors.New("a budget of disk space is used up")

// SpaceError is returned by a write that would pass a budget of disk space. Nothing was written, the store
// takes other changes, and the same write succeeds when there is room.
type SpaceError struct {
	// Budget names what is bounded, as in "the store" or "temporary files".
	Budget string
	// Used is what is taken, Grows what the write would add, Maximum the budget, in bytes.
	Used, Grows, Maximum int64
}

// Error implements error.
func (e *SpaceError) Error() string {
	return fmt.Sprintf("%v: %s: %d bytes are used, this takes %d more, the maximum is %d", ErrSpace, e.Budget, e.Used, e.Grows, e.Maximum)
}

// Is makes errors.Is(err, ErrSpace) hold.
func (e *SpaceError) Is(target error) bool { return target == ErrSpace }

// The budgets that a SpaceError names.
const (
	BudgetStore     = "the store"
	BudgetTemporary = "temporary files"
)

// Space measures the store. It reads no file and is cheap enough to be asked every second.
func (e *Engine) Space() Space {
	s := Space{Database: int64(e.db.Metrics().DiskSpaceUsage()), Temporary: e.temporary.Load()}
	e.mu.Lock()
	defer e.mu.Unlock()
	c := e.mu.current.catalog
	for kind, sum := range map[Kind]*int64{KindData: &s.Data, KindIndex: &s.Index, KindSenders: &s.Senders, KindFrames: &s.Frames} {
		for _, r := range c.rows[kind] {
			*sum += r.Size
		}
	}
	for v := e.mu.oldest; v != nil; v = v.next {
		s.Retired += sizeOf(v.retired)
	}
	s.Retired += sizeOf(e.mu.deletable)
	return s
}

func sizeOf(list []tombstone) (sum int64) {
	for _, t := range list {
		sum += t.size
	}
	return sum
}

// admit refuses an edit that would take the store past Options.MaximumBytes. An edit that adds nothing, or less
// than it removes, is never refused, so that a store above its budget can be pruned, and blocks that are undone
// or finalized are not held up. The caller holds the commit lock.
func (e *Engine) admit(edit *Edit) error {
	if e.opts.MaximumBytes <= 0 {
		return nil
	}
	grows := edit.Growth()
	for i := range edit.Hot.Apply {
		for _, p := range edit.Hot.Apply[i].Parts {
			grows += int64(len(p.Content))
		}
	}
	if grows <= 0 {
		return nil
	}
	used := e.Space().Store()
	if used+grows > e.opts.MaximumBytes {
		// What is replaced and free to go is not worth a refusal.
		if err := e.deleteFree(); err != nil {
			return err
		}
		used = e.Space().Store()
	}
	if used+grows > e.opts.MaximumBytes {
		return &SpaceError{Budget: BudgetStore, Used: used, Grows: grows, Maximum: e.opts.MaximumBytes}
	}
	return nil
}

// reserve counts bytes that a file being written will take, or refuses them.
func (e *Engine) reserve(n int64) error {
	used := e.temporary.Add(n) - n
	if maximum := e.opts.MaximumTemporaryBytes; maximum > 0 && used+n > maximum {
		e.temporary.Add(-n)
		return &SpaceError{Budget: BudgetTemporary, Used: used, Grows: n, Maximum: maximum}
	}
	return nil
}

// QuarantinedFile is a file that the store could not explain.
type QuarantinedFile struct {
	// Name is that in the directory quarantine: the kind, a hyphen, and the former name.
	Name string
	Path string
	Size int64
}

// Quarantine lists the files in quarantine by name. The store never reads or deletes them: that is for the
// operator.
func (e *Engine) Quarantine() ([]QuarantinedFile, error) {
	names, err := e.opts.FS.List(e.layout.quarantine())
	if err != nil {
		return nil, fmt.Errorf("list quarantine: %w", err)
	}
	sort.Strings(names)
	list := make([]QuarantinedFile, 0, len(names))
	for _, n := range names {
		path := e.opts.FS.PathJoin(e.layout.quarantine(), n)
		info, err := e.opts.FS.Stat(path)
		if err != nil {
			return nil, fmt.Errorf("list quarantine: %w", err)
		}
		list = append(list, QuarantinedFile{Name: n, Path: path, Size: info.Size()})
	}
	return list, nil
}
