package engine

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/leani-go/leani/chain"
	"github.com/leani-go/leani/keys"
)

// FieldGroup numbers the groups of material whose retention is tracked apart.
type FieldGroup = keys.FieldGroup

// The field groups.
const (
	FieldHeaders  = keys.FieldHeaders
	FieldBodies   = keys.FieldBodies
	FieldReceipts = keys.FieldReceipts
	FieldSenders  = keys.FieldSenders
	FieldIndex    = keys.FieldIndex
	FieldLogs     = keys.FieldLogs
)

// Completeness says how much of a field group a run of coverage holds.
type Completeness uint8

// The degrees of completeness. Profile 0 knows the first alone.
const (
	// Complete is material that answers for every block of its run without exception.
	Complete Completeness = 1
	// Proved is a selection, and proved to be all that its scope selects.
	Proved Completeness = 2
	// Declared is a selection that its publisher says is all that its scope selects.
	Declared Completeness = 3
	// Partial may lack anything: it is kept as what it is.
	Partial Completeness = 4
)

func (c Completeness) valid() bool { return Complete <= c && c <= Partial }

// String names the degree.
func (c Completeness) String() string {
	switch c {
	case Complete:
		return "complete"
	case Proved:
		return "proved selection"
	case Declared:
		return "declared selection"
	case Partial:
		return "partial"
	default:
		return fmt.Sprintf("completeness %d", uint8(c))
	}
}

// CoverageRun is one maximal run of blocks whose material of a group is retained.
type CoverageRun struct {
	Field        FieldGroup
	Profile      uint16
	Completeness Completeness
	chain.Range
}

func (c CoverageRun) key() keys.RawCoverage {
	return keys.RawCoverage{Field: c.Field, Profile: c.Profile, From: c.From}
}

func compareRuns(a, b CoverageRun) int {
	return cmp.Or(cmp.Compare(a.Field, b.Field), cmp.Compare(a.Profile, b.Profile), cmp.Compare(a.From, b.From))
}

// groupsOf lists what a file of the kind holds for its blocks.
func groupsOf(kind Kind) []FieldGroup {
	switch kind {
	case KindData:
		return []FieldGroup{FieldHeaders, FieldBodies, FieldReceipts}
	case KindSenders:
		return []FieldGroup{FieldSenders}
	case KindIndex:
		return []FieldGroup{FieldIndex}
	default:
		return nil
	}
}

// coverageOf derives the coverage of a catalog from its rows and profiles, sorted by group, profile and
// block.
func coverageOf(rows *[kindSlots][]*FileRow, profiles []*Profile) []CoverageRun {
	var runs []CoverageRun
	for _, kind := range keys.Kinds() {
		ranges := unionOf(rows[kind])
		for _, group := range groupsOf(kind) {
			for _, r := range ranges {
				runs = append(runs, CoverageRun{Field: group, Profile: ProfileComplete, Completeness: Complete, Range: r})
			}
		}
	}
	for _, p := range profiles {
		ranges := unionOf(ofProfile(rows[KindFrames], p.ID))
		for _, group := range p.Groups {
			for _, r := range ranges {
				runs = append(runs, CoverageRun{Field: group.Field, Profile: p.ID, Completeness: group.Completeness, Range: r})
			}
		}
	}
	slices.SortFunc(runs, compareRuns)
	return runs
}

// hotGroups is what a hot block holds of itself: the terms and hashes of its parts are its index.
var hotGroups = [...]FieldGroup{FieldHeaders, FieldBodies, FieldReceipts, FieldIndex}

// withHot adds the range of the hot tier, which lies above all files, to the coverage of the files.
func withHot(files []CoverageRun, hot chain.Range) []CoverageRun {
	if hot.Empty() {
		return files
	}
	runs := make([]CoverageRun, 0, len(files)+len(hotGroups))
	at := 0
	for _, group := range hotGroups {
		add := CoverageRun{Field: group, Profile: ProfileComplete, Completeness: Complete, Range: hot}
		for at < len(files) && compareRuns(files[at], add) < 0 {
			runs = append(runs, files[at])
			at++
		}
		if n := len(runs); n > 0 && runs[n-1].Field == group && runs[n-1].Profile == add.Profile && runs[n-1].To == hot.From {
			runs[n-1].To = hot.To
			continue
		}
		runs = append(runs, add)
	}
	return append(runs, files[at:]...)
}

// unionOf gives the maximal runs that the rows cover together. Rows of one level come in
// block order, so that only a second level needs a sort.
func unionOf(rows []*FileRow) []chain.Range {
	var runs []chain.Range
	sorted := true
	for _, r := range rows {
		n := len(runs)
		switch {
		case n > 0 && r.From == runs[n-1].To:
			runs[n-1].To = r.To
		default:
			sorted = sorted && (n == 0 || r.From > runs[n-1].To)
			runs = append(runs, r.Range())
		}
	}
	if sorted {
		return runs
	}
	slices.SortFunc(runs, func(a, b chain.Range) int { return cmp.Compare(a.From, b.From) })
	out := runs[:1]
	for _, r := range runs[1:] {
		if last := &out[len(out)-1]; r.From <= last.To {
			last.To = max(last.To, r.To)
		} else {
			out = append(out, r)
		}
	}
	return out
}

// diffRuns gives the runs to delete and to write that turn old into new. Both are sorted.
func diffRuns(old, new []CoverageRun) (remove, add []CoverageRun) {
	i, j := 0, 0
	for i < len(old) || j < len(new) {
		var order int
		switch {
		case i == len(old):
			order = 1
		case j == len(new):
			order = -1
		default:
			order = compareRuns(old[i], new[j])
		}
		switch {
		case order < 0:
			remove = append(remove, old[i])
			i++
		case order > 0:
			add = append(add, new[j])
			j++
		default:
			if old[i] != new[j] {
				add = append(add, new[j]) // same key: the write replaces the old value
			}
			i++
			j++
		}
	}
	return remove, add
}
