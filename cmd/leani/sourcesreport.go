package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/leani-go/leani/chain"
	"github.com/leani-go/leani/config"
	"github.com/leani-go/leani/engine"
	"github.com/leani-go/leani/ingest"
	"github.com/leani-go/leani/ingest/archive"
)

// sourcesReport is what history sources prints.
type sourcesReport struct {
	// Folder is that of the first source that is one, empty when none is.
	Folder   string         `json:"folder"`
	Sources  []sourceReport `json:"sources"`  // in the order in which they are read
	Coverage []blockSpan    `json:"coverage"` // of all files
	Files    []sourceFile   `json:"files"`
	// Unreadable says of each listed file of the chain that cannot be used what is wrong with it.
	Unreadable []string `json:"unreadable"`
	// Note says why it is not known what is stored; empty when it is.
	Note string `json:"note,omitempty"`
}

// sourceReport is a history source.
type sourceReport struct {
	ID       string      `json:"id"`
	Kind     string      `json:"kind"`
	Priority uint16      `json:"priority"`
	Trust    string      `json:"trust"` // what its material can claim
	Place    string      `json:"place"`
	Coverage []blockSpan `json:"coverage"`
	Error    string      `json:"error,omitempty"` // why it cannot be listed
}

// sourceFile is a file of a source.
type sourceFile struct {
	Source string `json:"source"`
	Name   string `json:"name"`
	blockSpan
	Bytes uint64 `json:"bytes"` // 0 when it is not known yet
	// Stored counts the blocks that the store holds already; null when it is not known.
	Stored *uint64 `json:"storedBlocks"`
}

// sourceFailure is a failure of a source that is over: its blocks came from another one.
type sourceFailure struct {
	Source string `json:"source"`
	File   string `json:"file,omitempty"` // of the source; empty when all of it failed
	Block  uint64 `json:"block"`          // the first one that was not stored then
	Reason string `json:"reason"`
}

// listing is what a source says about its files.
type listing struct {
	files      []sourceFile
	ranges     []chain.Range
	unreadable []error
}

func (l *listing) add(id, name string, r chain.Range, bytes int64) {
	l.files = append(l.files, sourceFile{Source: id, Name: name, blockSpan: blockSpan{r.From, r.To - 1}, Bytes: uint64(bytes)})
	l.ranges = append(l.ranges, r)
}

// union orders ranges and joins those that touch or overlap.
func union(ranges []chain.Range) []chain.Range {
	slices.SortFunc(ranges, func(a, b chain.Range) int { return cmp.Compare(a.From, b.From) })
	var joined []chain.Range
	for _, r := range ranges {
		if n := len(joined); n > 0 && r.From <= joined[n-1].To {
			joined[n-1].To = max(joined[n-1].To, r.To)
			continue
		}
		joined = append(joined, r)
	}
	return joined
}

// list lists the files of a source.
func list(ctx context.Context, id string, source ingest.Source) (l listing, err error) {
	switch s := source.(type) {
	case *folderSource:
		for _, e := range s.Catalog().Entries() {
			l.add(id, e.Name, e.Range, e.Size)
		}
		l.unreadable = s.Catalog().Unread()
	case *mirrorSource:
		if l.unreadable, err = s.Look(ctx); err != nil {
			return l, err
		}
		l.unreadable = append(slices.Clone(s.Unread()), l.unreadable...)
		for _, e := range s.Files() {
			if !e.Range.Empty() {
				l.add(id, e.Name, e.Range, e.Size)
			}
		}
	case *archive.Source:
		for _, o := range s.Archive().Manifest().Objects {
			l.add(id, o.Path, o.Range, o.Bytes)
		}
	}
	return l, nil
}

// sources lists the files of the history sources. A store that is not there holds nothing; of one that is
// in use it is not known what it holds. A source that cannot be listed fails the report only when it is
// the only one.
func (s stored) sources(ctx context.Context, o nodeOptions) (r sourcesReport, err error) {
	r = sourcesReport{Files: []sourceFile{}, Unreadable: []string{}}
	var all []chain.Range
	for _, entry := range sourcesInOrder(o.settings) {
		report := sourceReport{ID: entry.ID, Kind: string(entry.Kind), Priority: entry.Priority, Trust: string(entry.Claim()), Place: entry.Place()}
		if r.Folder == "" {
			r.Folder = entry.Folder
		}
		l, err := s.listed(ctx, o, entry)
		switch {
		case err != nil && (ctx.Err() != nil || len(o.settings.Sources.History) == 1):
			return r, fmt.Errorf("list history source %s: %w", entry.ID, err)
		case err != nil:
			report.Error = err.Error()
		}
		report.Coverage = spansOf(l.ranges)
		r.Sources = append(r.Sources, report)
		r.Files = append(r.Files, l.files...)
		all = append(all, l.ranges...)
		for _, err := range l.unreadable {
			r.Unreadable = append(r.Unreadable, err.Error())
		}
	}
	r.Coverage = spansOf(union(all))

	missing := chain.Range.Len // of a store that is not there
	n, err := s.open(ctx, o)
	switch {
	case err == nil:
		missing = n.missing
	case errors.Is(err, engine.ErrLocked):
		missing, r.Note = nil, "What is stored is not known: another process uses the store."
	case !errors.Is(err, engine.ErrNoStore):
		return r, err
	}
	for i := range r.Files {
		f := &r.Files[i]
		if missing != nil {
			held := f.half().Len() - missing(f.half())
			f.Stored = &held
		}
	}
	if n != nil {
		return r, n.close()
	}
	return r, nil
}

// listed opens a source and lists it.
func (stored) listed(ctx context.Context, o nodeOptions, entry *config.HistorySource) (l listing, err error) {
	source, err := openSourceTrying(ctx, o.settings, entry, temporaryFor(o.settings), listingAttempts, o.log)
	if err != nil {
		return l, err
	}
	defer func() { err = errors.Join(err, closeSource(source)) }()
	return list(ctx, entry.ID, source)
}
