package ingest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"

	"github.com/leani-go/leani/chain"
	"github.com/leani-go/leani/ingest/era"
)

// snappyExpansion bounds how many times its size Snappy data can take decompressed: its densest
// element makes 64 bytes out of 3.
const snappyExpansion = 22

// eraFile is an open era file on disk.
type eraFile struct {
	*era.File
	reads   io.ReaderAt
	release func() error // closes the content
	size    int64
	entry   *era.Entry
	// blockBytes bounds a block decoded.
	blockBytes int64
}

// openEraFile reads the index of a file whose entry in a catalog is given. When the index is damaged,
// the content is compared with the digest at once, and a difference is part of the error. Release
// closes the content, also when opening fails.
func openEraFile(ctx context.Context, name string, content *os.File, release func() error, entry *era.Entry, limits Limits) (File, error) {
	f := &eraFile{release: release, entry: entry, blockBytes: limits.BlockBytes, reads: limits.Reads.ReaderAt(content)}
	if err := f.open(ctx, name, content, limits); err != nil {
		return nil, join([]error{err, release()})
	}
	return f, nil
}

func (f *eraFile) open(ctx context.Context, name string, content *os.File, limits Limits) error {
	stat, err := content.Stat()
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
func (f *eraFile) Close() error { return f.release() }
