package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/leani-go/leani/chain"
	"github.com/leani-go/leani/config"
	"github.com/leani-go/leani/ingest"
	"github.com/leani-go/leani/ingest/archive"
	"github.com/leani-go/leani/ingest/era"
	"github.com/leani-go/leani/ingest/remote"
)

// sourcesInOrder are the history sources as they are read: the lowest priority number first.
func sourcesInOrder(c *config.Config) []*config.HistorySource {
	var list []*config.HistorySource
	for i := range c.Sources.History {
		list = append(list, &c.Sources.History[i])
	}
	slices.SortStableFunc(list, func(a, b *config.HistorySource) int { return int(a.Priority) - int(b.Priority) })
	return list
}

// candidates are the history sources of the settings.
func candidates(c *config.Config, log *slog.Logger) []ingest.Candidate {
	var list []ingest.Candidate
	temporary := temporaryFor(c)
	for _, entry := range sourcesInOrder(c) {
		list = append(list, ingest.Candidate{ID: entry.ID, Priority: int(entry.Priority), Open: func(ctx context.Context) (ingest.Source, error) {
			return openSource(ctx, c, entry, temporary, log)
		}})
	}
	return list
}

// mirrorAttempts is how many times a request to a mirror is made before its failure counts, 0 for the default of a fill.
type mirrorAttempts int

const (
	// onDemandAttempts leaves time for the next source.
	onDemandAttempts mirrorAttempts = 3
	// listingAttempts are for somebody who waits for a list.
	listingAttempts mirrorAttempts = 2
)

// openSource opens a history source. Its errors, and those of its plans, say what to do. closeSource
// closes it.
func openSource(ctx context.Context, c *config.Config, entry *config.HistorySource, temporary *ingest.Temporary, log *slog.Logger) (ingest.Source, error) {
	return openSourceTrying(ctx, c, entry, temporary, 0, log)
}

func openSourceTrying(ctx context.Context, c *config.Config, entry *config.HistorySource, temporary *ingest.Temporary, attempts mirrorAttempts, log *slog.Logger) (ingest.Source, error) {
	switch {
	case entry.Kind == config.SourceArchive:
		source, err := archive.OpenSource(entry.Manifest, c.Chain.ChainID)
		if err != nil {
			return nil, err
		}
		return source, nil
	case entry.Mirror():
		mirror, err := ingest.OpenEraMirror(ctx, entry.Endpoint, c.Chain.FilePrefix(), temporary, remote.Options{
			AllowInsecure: entry.AllowInsecureHTTP,
			Connections:   c.Budgets.SourceConcurrency,
			Attempts:      int(attempts),
			Retrying: func(err error, wait time.Duration) {
				log.Warn("history source does not deliver and is asked again", "source", entry.ID, "error", err, "wait", wait.Round(time.Millisecond))
			},
		})
		if err != nil {
			return nil, err
		}
		mirror.Fetching = func(file string, bytes int64) {
			log := log.With("source", entry.ID, "file", file)
			if bytes > 0 { // else the server has not said
				log = log.With("bytes", bytes)
			}
			log.Info("fetching era file")
		}
		return &mirrorSource{mirror}, nil
	}
	folder, err := openFolder(filepath.Clean(entry.Folder), c.Chain.FilePrefix())
	if err != nil {
		return nil, err
	}
	return &folderSource{folder}, nil
}

func closeSource(source ingest.Source) error {
	if c, ok := source.(io.Closer); ok {
		return c.Close()
	}
	return nil
}

// temporaryShare is the part of budgets.temporary_disk_bytes that files fetched from mirrors may take;
// the rest is for segment files being written.
const temporaryShare = 2

// hasMirror tells whether files are fetched.
func hasMirror(c *config.Config) bool {
	return slices.ContainsFunc(c.Sources.History, func(s config.HistorySource) bool { return s.Mirror() })
}

// temporaryFor is the place of files fetched from mirrors, for all of them.
func temporaryFor(c *config.Config) *ingest.Temporary {
	bytes := min(c.Budgets.TemporaryDiskBytes, math.MaxInt64)
	return ingest.NewTemporary(filepath.Join(c.DataDir, "temporary"), int64(bytes-bytes/temporaryShare))
}

// writingBytes is what segment files being written may take.
func writingBytes(c *config.Config) int64 {
	bytes := min(c.Budgets.TemporaryDiskBytes, math.MaxInt64)
	if hasMirror(c) {
		bytes = max(bytes/temporaryShare, 1)
	}
	return int64(bytes)
}

// folderSource is an era folder whose errors about blocks that it lacks say what to do.
type folderSource struct{ *ingest.EraFolder }

// Plan is that of the folder.
func (s *folderSource) Plan(ctx context.Context, r chain.Range) ([]ingest.Extent, error) {
	extents, err := s.EraFolder.Plan(ctx, r)
	return extents, explainHole(err, "fill one of those, or add the missing files and their lines in "+era.CatalogName, s.Catalog().Entries())
}

// mirrorSource is an era mirror whose errors about blocks that it lacks say what to do.
type mirrorSource struct{ *ingest.EraMirror }

// Plan is that of the mirror.
func (s *mirrorSource) Plan(ctx context.Context, r chain.Range) ([]ingest.Extent, error) {
	extents, err := s.EraMirror.Plan(ctx, r)
	return extents, explainHole(err, "fill one of those, or add another source to sources.history", s.Files())
}

// openFolder opens an era folder.
func openFolder(folder, chainName string) (*ingest.EraFolder, error) {
	source, err := ingest.OpenEraFolder(folder, chainName)
	if err != nil {
		return nil, explainFolder(folder, err)
	}
	return source, nil
}

// explainFolder tells a folder that is missing from one without a list of checksums.
func explainFolder(folder string, err error) error {
	var path *fs.PathError
	if !errors.Is(err, fs.ErrNotExist) || !errors.As(err, &path) || !strings.HasSuffix(path.Path, era.CatalogName) {
		return err
	}
	info, statErr := os.Stat(folder)
	switch {
	case errors.Is(statErr, fs.ErrNotExist):
		return fmt.Errorf("the era folder %s does not exist: check the endpoint of sources.history", folder)
	case statErr == nil && !info.IsDir():
		return fmt.Errorf("the era folder %s is not a directory: check the endpoint of sources.history", folder)
	}
	return fmt.Errorf("the era folder %s has no %s: take the one that was published with the files, or, if you trust the files as they are, run `cd %[1]s && sha256sum *.ere > %[2]s` (or *.erae, *.era1)",
		folder, era.CatalogName)
}

// holeError is an *era.HoleError in the terms of the command line: spans with both ends, and what the
// source holds instead.
type holeError struct {
	*era.HoleError
	holds  []blockSpan
	advice string
}

// Error lists missing blocks, those that are there, and files that could not be read.
func (e *holeError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "era folder %s: no file holds %s", e.Folder, listSpans(spansOf(e.Missing)))
	if e.guessed() {
		b.WriteString(" as far as the files could be read")
	} else {
		fmt.Fprintf(&b, "; the folder holds %s: %s", listSpans(e.holds), e.advice)
	}
	for _, err := range e.Unread {
		fmt.Fprintf(&b, "; %v", err)
	}
	return b.String()
}

// guessed tells whether the missing blocks are among those that are there: a mirror's file that could not be asked is listed with
// the blocks that its name says.
func (e *holeError) guessed() bool {
	return slices.ContainsFunc(e.holds, func(held blockSpan) bool {
		return slices.ContainsFunc(spansOf(e.Missing), func(s blockSpan) bool { return s.From <= held.To && held.From <= s.To })
	})
}

// Unwrap gives the error of the source.
func (e *holeError) Unwrap() error { return e.HoleError }

// explainHole adds what the source holds to an error about missing blocks.
func explainHole(err error, advice string, entries []era.Entry) error {
	var hole *era.HoleError
	if !errors.As(err, &hole) {
		return err
	}
	return &holeError{hole, entrySpans(entries), advice}
}

// entrySpans are the runs of blocks of the files of a catalog.
func entrySpans(entries []era.Entry) []blockSpan {
	var ranges []chain.Range
	for _, e := range entries {
		if !e.Range.Empty() {
			ranges = append(ranges, e.Range)
		}
	}
	return spansOf(ranges)
}
