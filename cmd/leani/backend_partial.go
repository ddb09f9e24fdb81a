package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/dustin/go-humanize"

	"github.com/leani-go/leani/chain"
	"github.com/leani-go/leani/config"
	"github.com/leani-go/leani/engine"
	"github.com/leani-go/leani/engine/history"
	"github.com/leani-go/leani/ingest"
	"github.com/leani-go/leani/ingest/archive"
	"github.com/leani-go/leani/internal/progress"
)

// wantsPartial tells whether the settings want what there is of blocks, after a fill that ended with an error because
// no source has them whole.
func (n *storedNode) wantsPartial(ctx context.Context, filled error) bool {
	return n.settings.RawHistory.Partial == config.PartialKeep && ctx.Err() == nil &&
		(errors.Is(filled, chain.ErrNotExact) || errors.Is(filled, ingest.ErrNoReceipts))
}

// partialSource opens what a source has of blocks that are not whole; nil when it has nothing of that kind.
// Mirrors list no files without receipts.
func (n *storedNode) partialSource(ctx context.Context, entry *config.HistorySource) (frames ingest.FrameSource, closing func() error, err error) {
	frameBytes := int64(min(n.settings.RawHistory.MaximumFrameLogicalBytes, math.MaxInt64))
	nothing := func() error { return nil }
	switch {
	case entry.Kind == config.SourceArchive:
		source, err := archive.OpenSource(entry.Manifest, n.settings.Chain.ChainID)
		if err != nil {
			return nil, nothing, err
		}
		return source.Archive().Frames(archive.Budget{FrameBytes: frameBytes}), nothing, nil
	case entry.Mirror():
		return nil, nothing, nil
	}
	source, err := openSource(ctx, n.settings, entry, temporaryFor(n.settings), n.log)
	if err != nil {
		return nil, nothing, err
	}
	return ingest.FilesAsFrames(source, entry.ID, n.settings.Chain.ChainID, frameBytes), func() error { return closeSource(source) }, nil
}

// keepPartial takes from the sources what they have of the blocks of a range of which nothing is stored.
func (n *storedNode) keepPartial(ctx context.Context, blocks chain.Range, observe func(progress.Count)) error {
	taken := uint64(0)
	for _, entry := range sourcesInOrder(n.settings) {
		source, closing, err := n.partialSource(ctx, entry)
		if err != nil {
			return err
		}
		if source == nil {
			continue
		}
		kept, err := ingest.Keep(ctx, ingest.KeepOptions{
			Source: source,
			Ranges: n.unknown(blocks),
			Blocks: func(ctx context.Context, committed func(chain.Range)) ingest.Sink {
				return &anchoredSink{Sink: n.history.NewWriter(ctx, committed), network: n.network}
			},
			Frames: func(ctx context.Context) ingest.FrameSink {
				return &anchoredFrames{FramesWriter: n.history.NewFramesWriter(ctx, nil), anchor: anchoredSink{network: n.network}}
			},
			ExpectedParent: n.expectedParent,
			Progress:       func(r ingest.KeepResult) { observe(progress.Count{Blocks: taken + r.Whole + r.Partial}) },
		})
		n.kept += kept.Partial
		taken += kept.Whole + kept.Partial
		err = errors.Join(err, closing())
		if err != nil {
			return fmt.Errorf("source %s: %w", entry.ID, err)
		}
		n.log.Info("partial material is kept", "source", entry.ID, "frames", kept.Partial, "whole", kept.Whole)
	}
	return nil
}

// unknown are the blocks of a range of which nothing is stored, neither whole nor in part.
func (n *storedNode) unknown(blocks chain.Range) []chain.Range {
	rest := n.history.Missing(blocks)
	partial, err := n.partial()
	if err != nil {
		return rest
	}
	for _, p := range partial {
		for _, known := range p.Ranges {
			rest = chain.Subtract(rest, known)
		}
	}
	return rest
}

// partial lists the kinds of partial material in the store.
func (n *storedNode) partial() ([]history.PartialProfile, error) {
	v, err := n.history.View()
	if err != nil {
		return nil, err
	}
	defer v.Close()
	return v.Partial()
}

// keptPartial is the number of blocks that the last fill kept as partial material.
func (n *storedNode) keptPartial() uint64 { return n.kept }

// anchoredFrames lets only frames of one chain pass, as anchoredSink does with blocks. Frames are not told apart
// by runs: every frame that has a transaction which names a chain is asked.
type anchoredFrames struct {
	*history.FramesWriter
	anchor anchoredSink
}

// Add refuses a frame of another chain before the writer sees it.
func (s *anchoredFrames) Add(f *chain.Frame) error {
	if err := s.anchor.checkGenesis(&f.Block); err != nil {
		return err
	}
	if err := s.anchor.checkSigned(&f.Block); err != nil {
		return err
	}
	return s.FramesWriter.Add(f)
}

// partialReport is a kind of partial material in the reports of commands.
type partialReport struct {
	Profile   uint16            `json:"profile"`
	Blocks    uint64            `json:"blocks"`
	Coverage  []blockSpan       `json:"coverage"`
	Files     int               `json:"files"`
	FileBytes int64             `json:"fileBytes"`
	Material  map[string]string `json:"material"`
}

func partialReports(list []history.PartialProfile) []partialReport {
	reports := make([]partialReport, 0, len(list))
	for _, p := range list {
		r := partialReport{
			Profile: p.ID, Blocks: p.Blocks, Coverage: spansOf(p.Ranges), Files: p.Files, FileBytes: p.Bytes,
			Material: make(map[string]string),
		}
		for _, line := range p.Profile.Lines() {
			r.Material[line[0]] = line[1]
		}
		reports = append(reports, r)
	}
	return reports
}

// summary says in a line what a kind of partial material holds.
func (p *partialReport) summary() string {
	var there []string
	for what, state := range p.Material {
		switch what {
		case "chain", "schema", "details":
			continue
		}
		switch {
		case state == "complete":
			there = append(there, what)
		case len(state) > 0 && state[0] == 'a': // a selection
			there = append(there, what+" ("+state+")")
		}
	}
	slices.Sort(there)
	return strings.Join(there, ", ")
}

// printPartialStatus says what there is of blocks that are not whole.
func printPartialStatus(w io.Writer, partial []partialReport) error {
	for i := range partial {
		p := &partial[i]
		if _, err := fmt.Fprintf(w, "partial       %s: %s, %s\n", listSpans(p.Coverage), p.summary(), humanize.IBytes(uint64(p.FileBytes))); err != nil {
			return err
		}
	}
	return nil
}

// printPartial lists profiles with their coverage. Errors of w show when it is flushed.
func printPartial(w io.Writer, inv *engine.Inventory) {
	if len(inv.Profiles) == 0 {
		return
	}
	fmt.Fprint(w, "\npartial material\tgroup\tblocks\thow\n")
	for _, p := range inv.Profiles {
		for _, c := range inv.Coverage {
			if c.Profile == p.ID {
				fmt.Fprintf(w, "profile %d\t%s\t%d to %d\t%s\n", p.ID, c.Field, c.From, c.To-1, c.Completeness)
			}
		}
	}
}
