package engine

import (
	"cmp"
	"fmt"
	"slices"
	"sort"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2"

	"github.com/leani-go/leani/chain"
)

// version is a catalog with the count of those who read it. Versions form a list from the
// oldest that is still held to the current one. All fields but catalog are guarded by
// Engine.mu.
type version struct {
	catalog *catalog
	// view is the database as the commit left it, for the parts of hot blocks; nil without any, and
	// once it was closed because nobody reads this version any more.
	view    *pebble.Snapshot
	refs    int // snapshots, plus one while it is the current version
	retired []tombstone
	next    *version
}

// Snapshot is an immutable view of the catalog. Every file it lists stays readable until
// Release. It is safe for concurrent use, Release excepted: whoever acquired it releases it
// when the last use is over, and closes the files it opened before.
type Snapshot struct {
	engine   *Engine
	version  *version
	catalog  *catalog
	view     *pebble.Snapshot // of version
	released atomic.Bool
}

// Acquire gives a snapshot of what is committed now. It never waits for a commit.
func (e *Engine) Acquire() *Snapshot {
	e.mu.Lock()
	defer e.mu.Unlock()
	v := e.mu.current
	v.refs++
	e.mu.snapshots++
	return &Snapshot{engine: e, version: v, catalog: v.catalog, view: v.view}
}

// Release gives up the snapshot. Files that no snapshot and no catalog needs any more are
// deleted in the background. A second call does nothing.
func (s *Snapshot) Release() {
	if s.released.Swap(true) {
		return
	}
	e := s.engine
	e.mu.Lock()
	e.mu.snapshots--
	freed, view := e.unrefLocked(s.version)
	e.mu.Unlock()
	e.closeView(view)
	if freed {
		e.wakeReaper()
	}
}

// unrefLocked gives up one reference and tells whether that made files deletable, and which view of the
// database is to be closed, nil for none. A file is deletable when all versions up to the last that lists
// it are gone. Engine.mu must be held.
func (e *Engine) unrefLocked(v *version) (freed bool, view *pebble.Snapshot) {
	if v.refs--; v.refs == 0 {
		view, v.view = v.view, nil
	}
	for e.mu.oldest.refs == 0 && e.mu.oldest.next != nil {
		e.mu.deletable = append(e.mu.deletable, e.mu.oldest.retired...)
		e.mu.oldest = e.mu.oldest.next
	}
	return len(e.mu.deletable) > 0, view
}

// publish makes next, with its view of the database, the current version; the files in retired are what it
// no longer lists.
func (e *Engine) publish(next *catalog, view *pebble.Snapshot, retired []tombstone) {
	e.mu.Lock()
	last := e.mu.current
	v := &version{catalog: next, view: view, refs: 1}
	last.retired = retired
	last.next = v
	e.mu.current = v
	freed, old := e.unrefLocked(last)
	e.mu.Unlock()
	e.closeView(old)
	if freed {
		e.wakeReaper()
	}
}

// Generation is the number of the commit that the snapshot shows, 0 for an empty store.
func (s *Snapshot) Generation() uint64 { return s.catalog.generation }

// FilesGeneration is the number of the last commit that the snapshot shows and that touched a file, or that of
// the open: snapshots that agree in it list the same rows.
func (s *Snapshot) FilesGeneration() uint64 { return s.catalog.filesGeneration }

// Rows lists the files of a kind, ordered by profile, level and first block. The slice is
// shared: read only.
func (s *Snapshot) Rows(kind Kind) []*FileRow {
	if !kind.Valid() {
		return nil
	}
	return s.catalog.rows[kind]
}

// DataFile finds the data file that holds block n.
func (s *Snapshot) DataFile(n uint64) (*FileRow, bool) {
	i, ok := s.catalog.dataAt(n)
	if !ok {
		return nil, false
	}
	return s.catalog.rows[KindData][i], true
}

// DataFiles lists the data files that hold blocks of the range, in block order. The slice is
// shared: read only. There may be gaps between the files: see Missing.
func (s *Snapshot) DataFiles(r chain.Range) []*FileRow {
	if r.Empty() {
		return nil
	}
	rows := s.catalog.rows[KindData]
	first, _ := s.catalog.dataAt(r.From)
	n := sort.Search(len(rows)-first, func(i int) bool { return rows[first+i].From >= r.To })
	return rows[first : first+n : first+n]
}

// SendersFile finds the senders of a data file.
func (s *Snapshot) SendersFile(data *FileRow) (*FileRow, bool) {
	rows := s.catalog.rows[KindSenders]
	i := sort.Search(len(rows), func(i int) bool { return rows[i].From >= data.From })
	if i == len(rows) || rows[i].From != data.From || rows[i].To != data.To {
		return nil, false
	}
	return rows[i], true
}

// IndexPart is the part of a range that one index file answers for.
type IndexPart struct {
	Row *FileRow
	chain.Range
}

// IndexFiles cuts the range into the parts that index files answer for, in block order and
// without overlap. Where several levels reach a block the highest answers. Blocks that no
// index reaches are in no part: the caller has to find them by other means, never to treat
// them as empty.
func (s *Snapshot) IndexFiles(r chain.Range) []IndexPart {
	if r.Empty() {
		return nil
	}
	var parts []IndexPart
	open := []chain.Range{r} // not yet answered for, in block order
	rows := s.catalog.rows[KindIndex]
	for end := len(rows); end > 0 && len(open) > 0; {
		level := rows[end-1].Level
		start := sort.Search(end, func(i int) bool { return rows[i].Level >= level })
		tier := rows[start:end]
		end = start

		var rest []chain.Range
		for _, gap := range open {
			i := sort.Search(len(tier), func(i int) bool { return tier[i].To > gap.From })
			for ; i < len(tier) && tier[i].From < gap.To; i++ {
				hit := tier[i].Range().Intersect(gap)
				if gap.From < hit.From {
					rest = append(rest, chain.Range{From: gap.From, To: hit.From})
				}
				parts = append(parts, IndexPart{Row: tier[i], Range: hit})
				gap.From = hit.To
			}
			if !gap.Empty() {
				rest = append(rest, gap)
			}
		}
		open = rest
	}
	slices.SortFunc(parts, func(a, b IndexPart) int { return cmp.Compare(a.From, b.From) })
	return parts
}

// Coverage lists the maximal runs of blocks whose material of the group is retained, in block
// order. Partial material is not: see PartialCoverage. The slice is shared: read only.
func (s *Snapshot) Coverage(group FieldGroup) []CoverageRun {
	return s.PartialCoverage(group, ProfileComplete)
}

// PartialCoverage lists the maximal runs of blocks of which frames of a profile hold material of the group. The
// slice is shared: read only.
func (s *Snapshot) PartialCoverage(group FieldGroup, profile uint16) []CoverageRun {
	runs := s.catalog.coverage
	at := func(profile int) int {
		return sort.Search(len(runs), func(i int) bool {
			return runs[i].Field > group || runs[i].Field == group && int(runs[i].Profile) >= profile
		})
	}
	first, end := at(int(profile)), at(int(profile)+1)
	return runs[first:end:end]
}

// Missing gives the first run of blocks of the range whose material of the group is not
// retained; ok is false when nothing is missing.
func (s *Snapshot) Missing(group FieldGroup, r chain.Range) (missing chain.Range, ok bool) {
	at := r.From
	for _, run := range s.Coverage(group) {
		if run.To <= at {
			continue
		}
		if run.From > at {
			return chain.Range{From: at, To: min(run.From, r.To)}, at < r.To
		}
		at = run.To
		if at >= r.To {
			return chain.Range{}, false
		}
	}
	return chain.Range{From: at, To: r.To}, at < r.To
}

// Open opens a file of the snapshot for reading. The handle is shared and bounded in number
// (Options.OpenFiles); close the File before releasing the snapshot. The error is
// ErrNotInSnapshot for a row of another snapshot, and a *corrupt.Error for a file that is
// missing or has another size than its row says.
func (s *Snapshot) Open(row *FileRow) (*File, error) {
	if s.released.Load() {
		return nil, fmt.Errorf("open %s: snapshot is released", row)
	}
	live, ok := s.catalog.find(row.key())
	if !ok {
		return nil, fmt.Errorf("open %s: %w", row, ErrNotInSnapshot)
	}
	return s.engine.handles.open(live)
}
