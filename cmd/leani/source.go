package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/leani-go/leani/chain"
	"github.com/leani-go/leani/ingest"
	"github.com/leani-go/leani/ingest/era"
)

// openSource opens the folder of the era source. Its errors say what to do.
func openSource(folder, chainName string) (*ingest.EraFolder, error) {
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
// folder holds instead.
type holeError struct {
	*era.HoleError
	holds []blockSpan
}

// Error lists missing blocks, those that are there, and files that could not be read.
func (e *holeError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "era folder %s: no file holds %s; the folder holds %s: fill one of those, or add the missing files and their lines in %s",
		e.Folder, listSpans(spansOf(e.Missing)), listSpans(e.holds), era.CatalogName)
	for _, err := range e.Unread {
		fmt.Fprintf(&b, "; %v", err)
	}
	return b.String()
}

// Unwrap gives the error of the source.
func (e *holeError) Unwrap() error { return e.HoleError }

// explainHole adds what the source holds to an error about missing blocks.
func explainHole(source *ingest.EraFolder, err error) error {
	var hole *era.HoleError
	if !errors.As(err, &hole) {
		return err
	}
	return &holeError{hole, sourceSpans(source)}
}

// sourceSpans are the runs of blocks of a source.
func sourceSpans(source *ingest.EraFolder) []blockSpan {
	var ranges []chain.Range
	for _, e := range source.Catalog().Entries() {
		ranges = append(ranges, e.Range)
	}
	return spansOf(ranges)
}
