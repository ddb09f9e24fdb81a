package ingest

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/leani-go/leani/chain"
	"github.com/leani-go/leani/ingest/era"
	"github.com/leani-go/leani/internal/regular"
)

// EraFolder is the source of the era files of one chain in a folder.
type EraFolder struct {
	path    string
	catalog *era.Catalog
	entries map[string]*era.Entry // by name
}

// OpenEraFolder reads the catalog of a folder, given as a path or a file: URL; see
// era.OpenCatalog.
func OpenEraFolder(folder, chainName string) (*EraFolder, error) {
	path, err := era.FolderPath(folder)
	if err != nil {
		return nil, err
	}
	catalog, err := era.OpenCatalog(folder, chainName)
	if err != nil {
		return nil, err
	}
	s := &EraFolder{path: path, catalog: catalog, entries: make(map[string]*era.Entry)}
	entries := catalog.Entries()
	for i := range entries {
		s.entries[s.pathOf(&entries[i])] = &entries[i]
	}
	return s, nil
}

// Catalog is the catalog of the folder.
func (s *EraFolder) Catalog() *era.Catalog { return s.catalog }

func (s *EraFolder) pathOf(e *era.Entry) string { return filepath.Join(s.path, e.Name) }

// Plan names the files, by their paths, that hold the blocks of r. The error is an
// *era.HoleError.
func (s *EraFolder) Plan(_ context.Context, r chain.Range) ([]Extent, error) {
	pieces, err := s.catalog.Select(r)
	extents := make([]Extent, len(pieces))
	for i, p := range pieces {
		extents[i] = Extent{File: s.pathOf(p.Entry), Range: p.Range, Digest: p.Entry.Digest}
	}
	return extents, err
}

// Open opens a file and reads its index. When the index is damaged, the content is compared with the
// digest at once, and a difference is part of the error.
func (s *EraFolder) Open(ctx context.Context, name string, limits Limits) (File, error) {
	entry, ok := s.entries[name]
	if !ok {
		return nil, fmt.Errorf("BUG: %s is not in the catalog", name)
	}
	content, err := regular.Open(name)
	if err != nil {
		return nil, fmt.Errorf("open era file: %w", err)
	}
	return openEraFile(ctx, name, content, content.Close, entry, limits)
}
