package engine

import (
	"errors"
	"fmt"
	"strings"

	"github.com/leani-go/leani/internal/corrupt"
	"github.com/leani-go/leani/keys"
)

// Recovery tells what Open found and cleaned up; see docs/adr/0003-crash-story.md. The paths are
// sorted within each list as the directories were listed.
type Recovery struct {
	// Unfinished are removed files that were being written.
	Unfinished []string
	// Uncommitted are removed files of a commit that did not happen.
	Uncommitted []string
	// Retired are removed files that an earlier commit had replaced.
	Retired []string
	// Quarantined are files that nothing explains; they were moved to the quarantine
	// directory. In a store opened read-only they, and the other lists, only say what a
	// writable Open would do.
	Quarantined []string
}

// Empty tells whether there was nothing to clean up.
func (r Recovery) Empty() bool {
	return len(r.Unfinished)+len(r.Uncommitted)+len(r.Retired)+len(r.Quarantined) == 0
}

// fate is what recovery does with a file.
type fate uint8

const (
	fateLive fate = iota // a row names it
	fateUnfinished
	fateUncommitted
	fateRetired
	fateQuarantine
)

// foundFile is a file in a segment directory and what becomes of it.
type foundFile struct {
	kind Kind
	name string
	fate fate
	row  *FileRow // of a live file
}

// classifier decides the fate of files by their names alone.
type classifier struct {
	created    bool
	witnessed  bool
	generation uint64
	live       [kindSlots]map[string]*FileRow
	retired    [kindSlots]map[string]bool
}

func newClassifier(s *state) *classifier {
	c := &classifier{created: s.created, witnessed: s.witnessed, generation: s.catalog.generation}
	for _, kind := range keys.Kinds() {
		c.live[kind] = make(map[string]*FileRow, len(s.catalog.rows[kind]))
		c.retired[kind] = make(map[string]bool)
		for _, r := range s.catalog.rows[kind] {
			c.live[kind][r.Name()] = r
		}
	}
	for _, t := range s.tombstones {
		c.retired[t.key.Kind][t.name()] = true
	}
	return c
}

// classify decides the fate of one name.
func (c *classifier) classify(kind Kind, name string) foundFile {
	f := foundFile{kind: kind, name: name, fate: fateQuarantine}
	if c.created {
		return f // a store that does not exist yet owns nothing
	}
	if r, ok := c.live[kind][name]; ok {
		f.fate, f.row = fateLive, r
		return f
	}
	if c.retired[kind][name] {
		f.fate = fateRetired
		return f
	}
	if strings.HasSuffix(name, tempSuffix) {
		f.fate = fateUnfinished
		return f
	}
	// Without the witness nothing proves that the next commit did not happen once.
	if k, _, ok := parseFileName(kind, name); ok && c.witnessed && k.Generation == c.generation+1 {
		f.fate = fateUncommitted
	}
	return f
}

// maximumReported bounds the damaged files that one error names.
const maximumReported = 10

// recover brings the directories in line with the state and creates a new store. It plans
// first: an Open that fails for damage has changed nothing.
func (e *Engine) recover(s *state) error {
	files, err := e.listFiles(newClassifier(s))
	if err != nil {
		return err
	}
	if err := e.matchFiles(s.catalog, files); err != nil {
		return err
	}
	for _, f := range files {
		path := e.layout.file(f.kind, f.name)
		switch f.fate {
		case fateUnfinished:
			e.recovery.Unfinished = append(e.recovery.Unfinished, path)
		case fateUncommitted:
			e.recovery.Uncommitted = append(e.recovery.Uncommitted, path)
		case fateRetired:
			e.recovery.Retired = append(e.recovery.Retired, path)
		case fateQuarantine:
			e.recovery.Quarantined = append(e.recovery.Quarantined, path)
		}
	}
	if e.opts.ReadOnly {
		return nil
	}
	if err := e.cleanUp(files); err != nil {
		return err
	}
	e.cleared = s.tombstones // their files are gone now, if they were not before
	if s.created {
		return e.create()
	}
	return nil
}

// listFiles lists the segment directories.
func (e *Engine) listFiles(c *classifier) ([]foundFile, error) {
	var files []foundFile
	for _, kind := range keys.Kinds() {
		names, err := e.fs.List(e.layout.kind(kind))
		if e.opts.ReadOnly && isNotExist(err) {
			continue // a store from before this kind
		}
		if err != nil {
			return nil, fmt.Errorf("list %s files: %w", kind, err)
		}
		for _, name := range names {
			files = append(files, c.classify(kind, name))
		}
	}
	return files, nil
}

// matchFiles proves that every row has its file with its size.
func (e *Engine) matchFiles(c *catalog, files []foundFile) error {
	found := make(map[*FileRow]bool)
	var damaged []error
	report := func(r *FileRow, err error) {
		damaged = append(damaged, corrupt.New(e.layout.file(r.Kind, r.Name()), err))
	}
	for _, f := range files {
		if f.fate != fateLive {
			continue
		}
		found[f.row] = true
		info, err := e.fs.Stat(e.layout.file(f.kind, f.name))
		if err != nil {
			return fmt.Errorf("stat %s: %w", f.row, err)
		}
		if info.Size() != f.row.Size {
			report(f.row, sizeError(info.Size(), f.row.Size))
		}
	}
	for _, rows := range c.rows {
		for _, r := range rows {
			if !found[r] {
				report(r, errFileMissing)
			}
		}
	}
	if n := len(damaged); n > maximumReported {
		return fmt.Errorf("%d damaged files, the first: %w", n, errors.Join(damaged[:maximumReported]...))
	}
	return errors.Join(damaged...)
}

// cleanUp quarantines and removes. Every directory in which something was removed is synced
// before the first commit can reuse a generation.
func (e *Engine) cleanUp(files []foundFile) error {
	if err := e.quarantine(files); err != nil {
		return err
	}
	var touched [kindSlots]bool
	for _, f := range files {
		path := e.layout.file(f.kind, f.name)
		switch f.fate {
		case fateQuarantine:
			touched[f.kind] = true
			continue
		case fateLive:
			continue
		}
		if err := e.fs.Remove(path); err != nil && !isNotExist(err) {
			return fmt.Errorf("remove %s: %w", path, err)
		}
		touched[f.kind] = true
		e.opts.Logger.Info("removed a file of an interrupted commit", "path", path)
		e.opts.OnEvent(Event{Kind: EventRemoved, Path: path})
	}
	for kind, is := range touched {
		if is {
			if err := syncDir(e.fs, e.layout.kind(Kind(kind))); err != nil {
				return err
			}
		}
	}
	return nil
}

// quarantine moves unexplained files aside. The quarantine directory is synced before the
// directories they came from, so that a crash can duplicate a file and not lose it.
func (e *Engine) quarantine(files []foundFile) error {
	var taken map[string]bool
	for _, f := range files {
		if f.fate != fateQuarantine {
			continue
		}
		if taken == nil {
			names, err := e.fs.List(e.layout.quarantine())
			if err != nil {
				return fmt.Errorf("list quarantine: %w", err)
			}
			taken = make(map[string]bool, len(names))
			for _, n := range names {
				taken[n] = true
			}
		}
		from, to := e.layout.file(f.kind, f.name), e.fs.PathJoin(e.layout.quarantine(), quarantineName(f.kind, f.name, taken))
		if err := e.fs.Rename(from, to); err != nil {
			return fmt.Errorf("quarantine %s: %w", from, err)
		}
		e.opts.Logger.Warn("quarantined a file that the catalog does not know", "path", from, "to", to)
		e.opts.OnEvent(Event{Kind: EventQuarantined, Path: from, To: to})
	}
	if taken == nil {
		return nil
	}
	return syncDir(e.fs, e.layout.quarantine())
}
