package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/leani-go/leani/internal/corrupt"
	"github.com/leani-go/leani/keys"
)

// CheckOptions choose what Check looks at beyond the catalog and the directories.
type CheckOptions struct {
	// File, if set, is called for every live file and says what is wrong with its content.
	// The handle is closed by Check.
	File func(ctx context.Context, row *FileRow, f *File) error
}

// CheckReport is what Check found.
type CheckReport struct {
	Generation uint64
	// Keys counts the rows of the database, Files and Bytes the live segment files.
	Keys  int
	Files int
	Bytes int64
	// Waiting are files that are not live and that the store knows how to get rid of: being
	// written, or replaced and still held by a snapshot. In a store opened read-only also those
	// that the next writable Open removes.
	Waiting []string
	// Problems are violations, in the order found.
	Problems []Problem
}

// Clean tells whether there are no problems.
func (r *CheckReport) Clean() bool { return len(r.Problems) == 0 }

// Problem is one violation and where it lies.
type Problem struct {
	// Where is the path of a file or a printed key.
	Where string
	Err   error
}

// String writes place and violation.
func (p Problem) String() string { return p.Where + ": " + p.Err.Error() }

// Check proves that the two tiers agree:
//
//   - every key of the database belongs to a family of this build and parses, and every value
//     decodes;
//   - the rows in the database are the rows that readers see;
//   - rows and files correspond one to one, and the sizes agree;
//   - data files do not overlap and link where they touch; senders files match a data file;
//     index files cover whole data files and do not overlap in a level; frames files of one profile do
//     not overlap, link where they touch, and have a profile that is described;
//   - raw coverage is the union of the files;
//   - with CheckOptions.File, that the content of every file is sound.
//
// Commits wait while the tiers are compared, not while contents are checked. The error says
// only why the check could not be made; what it found is in the report.
func (e *Engine) Check(ctx context.Context, opts CheckOptions) (*CheckReport, error) {
	report := &CheckReport{}
	snapshot, err := e.checkTiers(ctx, report)
	if err != nil {
		return nil, fmt.Errorf("check store: %w", err)
	}
	defer snapshot.Release()
	if opts.File == nil {
		return report, nil
	}
	for _, kind := range keys.Kinds() {
		for _, row := range snapshot.Rows(kind) {
			if err := ctx.Err(); err != nil {
				return nil, fmt.Errorf("check store: %w", err)
			}
			if err := checkFile(ctx, snapshot, row, opts.File); err != nil {
				report.add(e.layout.file(kind, row.Name()), err)
			}
		}
	}
	return report, nil
}

func (r *CheckReport) add(where string, err error) {
	r.Problems = append(r.Problems, Problem{Where: where, Err: err})
}

func checkFile(ctx context.Context, s *Snapshot, row *FileRow, check func(context.Context, *FileRow, *File) error) error {
	f, err := s.Open(row)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	return check(ctx, row, f)
}

// checkTiers compares the database, the catalog in memory and the directories, and gives the
// snapshot that they agree on.
func (e *Engine) checkTiers(ctx context.Context, report *CheckReport) (*Snapshot, error) {
	if err := e.lockCommit(ctx); err != nil {
		return nil, err
	}
	defer e.unlockCommit()
	if err := e.Err(); err != nil {
		return nil, err // the database may hold an edit that nobody acknowledged
	}
	snapshot := e.Acquire()
	stored := &state{catalog: snapshot.catalog}
	var err error
	if err := e.checkRows(report, stored); err != nil {
		snapshot.Release()
		return nil, err
	}
	if stored.witnessed, err = e.checkGeneration(report); err != nil {
		snapshot.Release()
		return nil, err
	}
	if err := e.checkDirectories(report, stored); err != nil {
		snapshot.Release()
		return nil, err
	}
	return snapshot, nil
}

// checkRows checks the database against the catalog in memory and collects the tombstones.
func (e *Engine) checkRows(report *CheckReport, s *state) error {
	report.Generation = s.catalog.generation
	facts := 0
	hot := newHotRows()
	hot.frames = make(map[keys.Frame]uint32)
	var rows []*FileRow
	var profiles []*Profile
	var runs []CoverageRun
	err := scanRange(e.db, nil, nil, func(key, value []byte) error {
		report.Keys++
		err := func() error {
			k, err := keys.Parse(key)
			if err != nil {
				return err
			}
			switch k := k.(type) {
			case keys.Meta:
				facts++
				return nil
			case keys.Canonical:
				return hot.canonical(k, value)
			case keys.Hash:
				return hot.hash(k, value)
			case keys.Frame:
				return hot.frame(k, key, value)
			case keys.Finality:
				return hot.finality(k, value)
			case keys.Segment:
				r, err := decodeSegmentRow(k, value)
				if err == nil {
					rows = append(rows, r)
				}
				return err
			case keys.Retired:
				t, err := decodeTombstone(k, value)
				if err == nil {
					s.tombstones = append(s.tombstones, t)
				}
				return err
			case keys.RawCoverage:
				run, err := decodeCoverage(k, value)
				if err == nil {
					runs = append(runs, run)
				}
				return err
			case keys.Profile:
				p, err := decodeProfile(k, value)
				if err == nil {
					profiles = append(profiles, p)
				}
				return err
			default:
				return fmt.Errorf("%w: %s", keys.ErrUnknownFamily, k.Family())
			}
		}()
		if err != nil {
			report.add(keys.Print(key), err)
		}
		return nil
	})
	if err != nil {
		return err
	}
	if facts != int(keys.MetaGeneration) {
		report.add("meta", fmt.Errorf("got %d facts want %d", facts, keys.MetaGeneration))
	}
	generation, err := e.metaUint64(keys.MetaGeneration)
	switch {
	case corrupt.Is(err):
		report.add("meta/generation", err)
	case err != nil:
		return err
	case generation != s.catalog.generation:
		report.add("meta/generation", fmt.Errorf("got %d want %d", generation, s.catalog.generation))
	}

	onDisk := newCatalog(s.catalog.generation, rows, hot.window).describedBy(profiles)
	onDisk.verify(func(r *FileRow, err error) { report.add(r.key().String(), err) })
	ofKey := func(k keys.Key, err error) { report.add(k.String(), err) }
	hot.verify(ofKey)
	hot.window.verify(onDisk.rows[KindData], ofKey)
	compareHot(&onDisk.hot, &s.catalog.hot, ofKey)
	verifyProfiles(profiles, func(p *Profile, err error) { report.add(p.key().String(), err) })
	if !slices.EqualFunc(profiles, s.catalog.profiles, (*Profile).same) {
		report.add("profile", errors.New("the stored descriptions are not those in memory"))
	}
	for _, kind := range keys.Kinds() {
		compareCatalogs(report, onDisk, s.catalog, kind, "is stored and not in memory")
		compareCatalogs(report, s.catalog, onDisk, kind, "is in memory and not stored")
	}
	for _, t := range s.tombstones {
		if _, live := onDisk.find(t.key); live {
			report.add(keys.Retired(t.key).String(), fmt.Errorf("the file is live and retired at once"))
		}
	}
	gone, missing := diffRuns(runs, onDisk.coverage)
	for _, run := range gone {
		report.add(run.key().String(), fmt.Errorf("run %v is stored, no files hold it", run.Range))
	}
	for _, run := range missing {
		report.add(run.key().String(), fmt.Errorf("files hold blocks %v, the stored run differs", run.Range))
	}
	return nil
}

// compareHot reports where the hot tier in the database is not the one that readers see.
func compareHot(stored, seen *hotWindow, report func(k keys.Key, err error)) {
	for i := range max(len(stored.blocks), len(seen.blocks)) {
		switch {
		case i >= len(stored.blocks):
			report(keys.Canonical{Number: seen.blocks[i].Number}, errors.New("row is in memory and not stored"))
		case i >= len(seen.blocks):
			report(keys.Canonical{Number: stored.blocks[i].Number}, errors.New("row is stored and not in memory"))
		case !sameHotBlock(stored.blocks[i], seen.blocks[i]):
			report(keys.Canonical{Number: stored.blocks[i].Number}, errors.New("row and memory differ"))
		}
	}
	for level := FinalityAttested; level <= FinalityFinalized; level++ {
		if stored.marks[level] != seen.marks[level] {
			report(keys.Finality{Level: level}, fmt.Errorf("got block %s want %s", stored.marks[level], seen.marks[level]))
		}
	}
}

func sameHotBlock(a, b *HotBlock) bool {
	return a.BlockRef == b.BlockRef && a.Transactions == b.Transactions && a.Logs == b.Logs && slices.Equal(a.parts, b.parts)
}

// compareCatalogs reports the rows of a that b does not have in the same way.
func compareCatalogs(report *CheckReport, a, b *catalog, kind Kind, what string) {
	for _, r := range a.rows[kind] {
		if other, ok := b.find(r.key()); !ok || *other != *r {
			report.add(r.key().String(), fmt.Errorf("row %s", what))
		}
	}
}

// checkDirectories checks that rows and files correspond.
func (e *Engine) checkDirectories(report *CheckReport, s *state) error {
	files, err := e.listFiles(newClassifier(s))
	if err != nil {
		return err
	}
	found := make(map[*FileRow]bool)
	for _, f := range files {
		path := e.layout.file(f.kind, f.name)
		switch {
		case f.fate == fateLive:
			found[f.row] = true
			info, err := e.fs.Stat(path)
			if err != nil {
				report.add(path, err)
				continue
			}
			if info.Size() != f.row.Size {
				report.add(path, sizeError(info.Size(), f.row.Size))
			}
			report.Files++
			report.Bytes += f.row.Size
		case f.fate == fateRetired,
			f.fate == fateUnfinished && strings.HasPrefix(f.name, e.session),
			e.opts.ReadOnly && f.fate != fateQuarantine:
			report.Waiting = append(report.Waiting, path)
		default:
			report.add(path, fmt.Errorf("no row names this file"))
		}
	}
	for _, rows := range s.catalog.rows {
		for _, r := range rows {
			if !found[r] {
				report.add(e.layout.file(r.Kind, r.Name()), errFileMissing)
			}
		}
	}
	return nil
}
