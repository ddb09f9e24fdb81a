package ingest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"

	"github.com/leani-go/leani/chain"
	"github.com/leani-go/leani/ingest/era"
)

// snappyExpansion bounds how many times its size Snappy data can take decompressed: its densest
// element makes 64 bytes out of 3.
const snappyExpansion = 22

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
		extents[i] = Extent{File: s.pathOf(p.Entry), Range: p.Range}
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
	content, err := os.Open(name)
	if err != nil {
		return nil, fmt.Errorf("open era file: %w", err)
	}
	f := &eraFile{content: content, entry: entry, blockBytes: limits.BlockBytes, reads: limits.Reads.ReaderAt(content)}
	if err := f.open(ctx, name, limits); err != nil {
		return nil, join([]error{err, content.Close()})
	}
	return f, nil
}

// eraFile is an open file of an EraFolder.
type eraFile struct {
	*era.File
	content *os.File
	reads   io.ReaderAt // of content
	size    int64
	entry   *era.Entry
	// blockBytes bounds a block decoded.
	blockBytes int64
}

func (f *eraFile) open(ctx context.Context, name string, limits Limits) error {
	stat, err := f.content.Stat()
	if err != nil {
		return fmt.Errorf("open era file: %w", err)
	}
	f.size = stat.Size()
	o := era.Options{MaximumBlockBytes: int(min(limits.BlockBytes, math.MaxInt)), MaximumBatchBytes: limits.BatchBytes}
	f.File, err = era.Open(name, f.reads, f.size, o)
	if err == nil && f.Range() != f.entry.Range {
		err = fmt.Errorf("era file %s: holds blocks %v now, %v when the catalog was read", name, f.Range(), f.entry.Range)
	}
	if err == nil {
		return nil
	}
	var difference *era.DigestError
	if errors.As(f.prove(ctx, name), &difference) {
		return fmt.Errorf("%w; %w", difference, err)
	}
	return err
}

// Prove compares the SHA-256 of the content with that of the catalog.
func (f *eraFile) Prove(ctx context.Context) error { return f.prove(ctx, f.Name()) }

func (f *eraFile) prove(ctx context.Context, name string) error {
	return era.Prove(ctx, name, io.NewSectionReader(f.reads, 0, f.size), f.entry.Digest)
}

// Size is what ReadBlocks reads for block n, and what that can decompress to.
func (f *eraFile) Size(n uint64) (stored, decoded int64) {
	stored = f.StoredBytes(chain.Range{From: n, To: n + 1}, chain.PartsAll)
	return stored, min(stored*snappyExpansion, f.blockBytes)
}

// ReadBlocks reads all parts of blocks.
func (f *eraFile) ReadBlocks(r chain.Range, buf *era.Buffer, dst []chain.Block) (int, error) {
	return f.File.ReadBlocks(r, chain.PartsAll, buf, dst)
}

// Close closes the file.
func (f *eraFile) Close() error { return f.content.Close() }
