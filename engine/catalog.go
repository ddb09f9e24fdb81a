package engine

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"sort"

	"github.com/leani-go/leani/chain"
	"github.com/leani-go/leani/keys"
)

// kindSlots is the length of arrays indexed by Kind; slot 0 stays empty.
const kindSlots = int(KindFrames) + 1

// catalog is what one commit leaves: the set of live files and the hot tier. It is immutable; catalogs
// share rows, and the slices of kinds that a commit does not touch.
type catalog struct {
	generation uint64
	// filesGeneration is the last commit that touched a file.
	filesGeneration uint64
	// rows by kind, sorted by profile, level, first block.
	rows [kindSlots][]*FileRow
	// profiles by number: those of frames files, and of files that are gone.
	profiles []*Profile
	hot      hotWindow
	// files is the coverage derived from rows alone, coverage from rows and hot blocks, sorted by
	// group, profile, first block.
	files    []CoverageRun
	coverage []CoverageRun
}

// newCatalog builds a catalog from rows in any order and a hot tier, without checking them.
func newCatalog(generation uint64, rows []*FileRow, hot hotWindow) *catalog {
	c := &catalog{generation: generation, filesGeneration: generation, hot: hot}
	for _, r := range rows {
		c.rows[r.Kind] = append(c.rows[r.Kind], r)
	}
	for kind := range c.rows {
		slices.SortFunc(c.rows[kind], compareRows)
	}
	c.cover()
	return c
}

// describedBy gives a catalog that nobody else sees yet its profiles.
func (c *catalog) describedBy(profiles []*Profile) *catalog {
	c.profiles = profiles
	c.cover()
	return c
}

// cover derives the coverage from everything else.
func (c *catalog) cover() {
	c.files = coverageOf(&c.rows, c.profiles)
	c.coverage = withHot(c.files, c.hot.span())
}

// compareRows orders rows of one kind as their keys are ordered.
func compareRows(a, b *FileRow) int {
	return cmp.Or(
		cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Profile, b.Profile), cmp.Compare(a.Level, b.Level),
		cmp.Compare(a.From, b.From), cmp.Compare(a.Generation, b.Generation))
}

// find gives the live row with the identity k.
func (c *catalog) find(k keys.Segment) (*FileRow, bool) {
	if !k.Kind.Valid() {
		return nil, false
	}
	rows := c.rows[k.Kind]
	probe := FileRow{Kind: k.Kind, Profile: k.Profile, Level: k.Level, From: k.From, Generation: k.Generation}
	i, found := slices.BinarySearchFunc(rows, &probe, compareRows)
	if !found {
		return nil, false
	}
	return rows[i], true
}

// edited gives the catalog after removing and adding rows, which must be checked with verify. Its hot tier
// is that of c, until withHot. The error is ErrStaleEdit for a removed row that is not live, and
// ErrInvalidEdit for one removed twice.
func (c *catalog) edited(generation uint64, add []*FileRow, remove []*FileRow) (*catalog, error) {
	next := &catalog{generation: generation, filesGeneration: generation, rows: c.rows, profiles: c.profiles, hot: c.hot}
	if len(add)+len(remove) == 0 {
		next.filesGeneration, next.files, next.coverage = c.filesGeneration, c.files, c.coverage
		return next, nil
	}
	var adds, removes [kindSlots][]*FileRow
	for _, r := range add {
		adds[r.Kind] = append(adds[r.Kind], r)
	}
	for _, r := range remove {
		live, ok := c.find(r.key())
		if !ok || live.To != r.To {
			return nil, fmt.Errorf("%w: %s", ErrStaleEdit, r)
		}
		if slices.Contains(removes[r.Kind], live) {
			return nil, fmt.Errorf("%w: %s is removed twice", ErrInvalidEdit, r)
		}
		removes[r.Kind] = append(removes[r.Kind], live)
	}
	for kind := range next.rows {
		if len(adds[kind])+len(removes[kind]) > 0 {
			next.rows[kind] = mergeRows(c.rows[kind], adds[kind], removes[kind])
		}
	}
	next.cover()
	return next, nil
}

// setHot replaces the hot tier of a catalog that nobody else sees yet.
func (c *catalog) setHot(hot hotWindow) {
	c.hot = hot
	c.coverage = withHot(c.files, hot.span())
}

// mergeRows gives a new sorted slice of old without remove and with add.
func mergeRows(old, add, remove []*FileRow) []*FileRow {
	slices.SortFunc(add, compareRows)
	slices.SortFunc(remove, compareRows)
	out := make([]*FileRow, 0, len(old)+len(add)-len(remove))
	for _, r := range old {
		if len(remove) > 0 && remove[0] == r {
			remove = remove[1:]
			continue
		}
		for len(add) > 0 && compareRows(add[0], r) < 0 {
			out = append(out, add[0])
			add = add[1:]
		}
		out = append(out, r)
	}
	return append(out, add...)
}

// errOverlap and its like are the rules between rows; see docs/formats/store.md.
var (
	errOverlap    = errors.New("overlaps")
	errLink       = errors.New("does not link to")
	errSenders    = errors.New("is not the range of one data file")
	errIndex      = errors.New("does not cover whole data files")
	errGeneration = errors.New("has a generation above the last commit")
)

// verify reports every row that breaks a rule by itself or with others. The cost is linear
// in the number of rows.
func (c *catalog) verify(report func(r *FileRow, err error)) {
	for _, kind := range keys.Kinds() {
		rows := c.rows[kind]
		for i, r := range rows {
			if err := r.validate(); err != nil {
				report(r, err)
				continue
			}
			if r.Generation == 0 || r.Generation > c.generation {
				report(r, fmt.Errorf("%w: got %d last is %d", errGeneration, r.Generation, c.generation))
			}
			if r.Profile != ProfileComplete && profileOf(c.profiles, r.Profile) == nil {
				report(r, errUndescribed)
			}
			if i == 0 || rows[i-1].Profile != r.Profile || rows[i-1].Level != r.Level {
				continue
			}
			before := rows[i-1]
			switch {
			case r.From < before.To:
				report(r, fmt.Errorf("%w %s", errOverlap, before))
			case (kind == KindData || kind == KindFrames) && r.From == before.To && r.ParentHash != before.LastHash:
				report(r, fmt.Errorf("%w %s: parent hash: got %x want %x", errLink, before, r.ParentHash, before.LastHash))
			}
		}
	}
	for _, r := range c.rows[KindSenders] {
		if i, ok := c.dataFrom(r.From); !ok || c.rows[KindData][i].To != r.To {
			report(r, errSenders)
		}
	}
	for _, r := range c.rows[KindIndex] {
		if at, ok := c.wholeData(r.Range()); !ok {
			report(r, fmt.Errorf("%w: no data file boundary or no data at block %d", errIndex, at))
		}
	}
}

// dataFrom finds the data file that begins exactly at block n.
func (c *catalog) dataFrom(n uint64) (int, bool) {
	rows := c.rows[KindData]
	i := sort.Search(len(rows), func(i int) bool { return rows[i].From >= n })
	return i, i < len(rows) && rows[i].From == n
}

// wholeData tells whether the range is exactly a run of whole data files; if not, at is where
// it stops being one.
func (c *catalog) wholeData(r chain.Range) (at uint64, ok bool) {
	rows := c.rows[KindData]
	i, ok := c.dataFrom(r.From)
	if !ok {
		return r.From, false
	}
	at = r.From
	for ; at < r.To; i++ {
		if i == len(rows) || rows[i].From != at || rows[i].To > r.To {
			return at, false
		}
		at = rows[i].To
	}
	return at, true
}

// dataAt finds the data file that holds block n.
func (c *catalog) dataAt(n uint64) (int, bool) {
	rows := c.rows[KindData]
	i := sort.Search(len(rows), func(i int) bool { return rows[i].To > n })
	return i, i < len(rows) && rows[i].From <= n
}
