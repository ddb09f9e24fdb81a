package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/ethereum/go-ethereum/common"
	"github.com/holiman/uint256"

	"github.com/leani-go/leani/chain"
	"github.com/leani-go/leani/engine/history"
	"github.com/leani-go/leani/ingest/era"
	"github.com/leani-go/leani/internal/header"
	"github.com/leani-go/leani/internal/progress"
)

// export writes stored blocks as era files.
func (n *storedNode) export(ctx context.Context, req exportRequest, observe func(progress.Count)) (exportReport, error) {
	v, err := n.history.View()
	if err != nil {
		return exportReport{}, err
	}
	defer v.Close()
	blocks := req.span.half()
	if missing := n.history.Missing(blocks); len(missing) > 0 {
		return exportReport{}, fmt.Errorf("%s not stored: fill them, or export what history status lists", listSpans(spansOf(missing)))
	}
	total, err := parentDifficulty(ctx, v, blocks.From, req.parentDifficulty)
	if err != nil {
		return exportReport{}, err
	}
	folder, err := filepath.Abs(req.out)
	if err != nil {
		return exportReport{}, err
	}
	if err := parentThere(folder); err != nil {
		return exportReport{}, fmt.Errorf("--out %s: %w", folder, err)
	}
	if err := os.Mkdir(folder, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return exportReport{}, err
	}
	r := exportReport{Folder: folder, Files: []exportFile{}, Blocks: blocks.Len()}
	progress := observer{observe: observe}
	for blocks.From < blocks.To {
		part := blocks
		part.To = min(part.To, (part.From/era.MaximumBlocks+1)*era.MaximumBlocks)
		f, next, err := writeEra(ctx, v, folder, n.settings.Chain.FilePrefix(), part, total, progress.block)
		if err != nil {
			return r, err
		}
		total, blocks.From = next, part.To
		r.Files = append(r.Files, f)
		r.Bytes += f.Bytes
	}
	return r, listChecksums(folder, r.Files)
}

// parentDifficulty is the total difficulty before block first, zero where the block needs none.
func parentDifficulty(ctx context.Context, v *history.View, first uint64, given *uint256.Int) (total uint256.Int, err error) {
	var b chain.Block
	difficulty := func(n uint64) (d uint256.Int, err error) {
		if err := v.LoadBlock(ctx, n, chain.PartHeader, &b); err != nil {
			return d, err
		}
		var h header.Header
		if err := header.Parse(b.Header, &h); err != nil {
			return d, fmt.Errorf("block %d: header: %w", n, err)
		}
		d.SetBytes(h.Difficulty)
		return d, nil
	}
	if given != nil {
		return *given, nil
	}
	own, err := difficulty(first)
	if err != nil || own.IsZero() {
		return total, err
	}
	for n := range first {
		if n%1024 == 0 && ctx.Err() != nil {
			return total, ctx.Err()
		}
		d, err := difficulty(n)
		if errors.Is(err, chain.ErrNotRetained) {
			return total, fmt.Errorf("block %d is before the merge, and its total difficulty is not known without blocks 0 to %d: give --parent-difficulty", first, first-1)
		}
		if err != nil {
			return total, err
		}
		total.Add(&total, &d)
	}
	return total, nil
}

// writeEra writes one file aside and renames it when it is durable.
func writeEra(ctx context.Context, v *history.View, folder, chainName string, r chain.Range, total uint256.Int, onBlock func()) (exportFile, uint256.Int, error) {
	// The name has the hash of the last block in it.
	var last chain.Block
	if err := v.LoadBlock(ctx, r.To-1, chain.PartHeader, &last); err != nil {
		return exportFile{}, total, err
	}
	name := era.FileName(chainName, r.From, last.Hash)
	file, err := createAside(filepath.Join(folder, name))
	if err != nil {
		return exportFile{}, total, err
	}
	defer file.abandon() // does nothing after the commit
	digest := sha256.New()
	out := bufio.NewWriterSize(io.MultiWriter(file, digest), 1<<20)
	written, err := era.Write(ctx, out, r, v.LoadBlock, era.WriteOptions{ParentDifficulty: total, OnBlock: onBlock})
	if err == nil {
		err = out.Flush()
	}
	if err != nil {
		return exportFile{}, total, err
	}
	if written.LastHash != last.Hash {
		return exportFile{}, total, fmt.Errorf("%s: hash of the last block: got %s want %s", name, written.LastHash, last.Hash)
	}
	if err := file.commit(); err != nil {
		return exportFile{}, total, err
	}
	return exportFile{
		Name: name, blockSpan: blockSpan{r.From, r.To - 1}, Bytes: uint64(written.Bytes),
		SHA256: common.Bytes2Hex(digest.Sum(nil)),
	}, written.TotalDifficulty, nil
}

// checksumsName is the catalog of a folder of era files.
const checksumsName = era.CatalogName

// listChecksums adds files to the catalog of a folder, or replaces their lines.
func listChecksums(folder string, files []exportFile) error {
	path := filepath.Join(folder, checksumsName)
	lines := map[string]string{}
	content, err := os.ReadFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return err
	default:
		entries, err := era.ParseCatalog(content)
		if err != nil {
			return fmt.Errorf("%s: %w: the files were written, and are not listed", path, err)
		}
		for _, e := range entries {
			lines[e.Name] = hex.EncodeToString(e.Digest[:])
		}
	}
	for _, f := range files {
		lines[f.Name] = f.SHA256
	}
	names := make([]string, 0, len(lines))
	for name := range lines {
		names = append(names, name)
	}
	slices.SortFunc(names, strings.Compare)
	var b bytes.Buffer
	for _, name := range names {
		fmt.Fprintf(&b, "%s  %s\n", lines[name], name)
	}
	file, err := createAside(path)
	if err != nil {
		return err
	}
	defer file.abandon()
	if _, err := file.Write(b.Bytes()); err != nil {
		return err
	}
	return file.commit()
}

// asideFile is a file that appears under its name when it is complete and durable.
type asideFile struct {
	*os.File
	path string
}

// createAside begins a file beside its path. A kill leaves <path>.partial, which the next one replaces.
func createAside(path string) (*asideFile, error) {
	f, err := os.Create(path + ".partial")
	if err != nil {
		return nil, err
	}
	return &asideFile{f, path}, nil
}

// commit syncs the file and gives it its name.
func (f *asideFile) commit() error {
	err := f.Sync()
	if closeErr := f.Close(); err == nil {
		err = closeErr
	}
	if err == nil {
		err = os.Rename(f.Name(), f.path)
	}
	if err != nil {
		return err
	}
	dir, err := os.Open(filepath.Dir(f.path))
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}

// abandon removes what was not committed.
func (f *asideFile) abandon() {
	if f.Close() == nil { // else it was committed, or is broken and replaced by the next try
		_ = os.Remove(f.Name())
	}
}
