package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"github.com/leani-go/leani/chain"
	"github.com/leani-go/leani/engine"
	"github.com/leani-go/leani/ingest/archive"
	"github.com/leani-go/leani/internal/progress"
)

// createArchive writes stored blocks as an archive.
func (n *storedNode) createArchive(ctx context.Context, req archiveRequest, observe func(progress.Count)) (archiveReport, error) {
	r := archiveReport{blockSpan: req.span, Manifest: filepath.Join(req.out, archive.ManifestName)}
	blocks := req.span.half()
	if missing := n.history.Missing(blocks); len(missing) > 0 {
		return r, fmt.Errorf("not stored: %s: run `leani history fill` first", listSpans(spansOf(missing)))
	}
	if open := n.notFinal(blocks); !open.Empty() {
		return r, fmt.Errorf("%s not final yet, and an archive says that its blocks are: leave them out", spansOf([]chain.Range{open})[0].subject())
	}
	// The same blocks have the same name everywhere.
	r.ID = fmt.Sprintf("leani-%d-%d-%d", n.network.ChainID(), req.span.From, req.span.To)
	w, err := archive.Create(archive.WriterOptions{
		Folder: req.out, ID: r.ID, ChainID: n.network.ChainID(), Finality: chain.Finalized,
		Capabilities: archive.WholeKinds, Complete: archive.WholeKinds, ObjectBlocks: req.objectBlocks, Network: n.network,
	})
	switch {
	case errors.Is(err, archive.ErrExists):
		return r, fmt.Errorf("%w: name another folder, or remove this one", err)
	case errors.Is(err, fs.ErrNotExist):
		return r, fmt.Errorf("%w: make the folder above it first", err)
	case err != nil:
		return r, err
	}
	m, err := n.writeArchive(ctx, w, blocks, observe)
	if err != nil {
		return r, errors.Join(err, w.Abort())
	}
	r.Blocks, r.Objects = blocks.Len(), uint64(len(m.Objects))
	for _, o := range m.Objects {
		r.Bytes += uint64(o.Bytes)
	}
	return r, nil
}

// notFinal are the blocks of a range that the live source applied and has not marked as finalized.
func (n *storedNode) notFinal(blocks chain.Range) chain.Range {
	snap := n.engine.Acquire()
	defer snap.Release()
	open := snap.HotRange().Intersect(blocks)
	if mark, ok := snap.Mark(engine.FinalityFinalized); ok {
		open.From = max(open.From, mark.Number+1)
	}
	return open
}

func (n *storedNode) writeArchive(ctx context.Context, w *archive.Writer, blocks chain.Range, observe func(progress.Count)) (*archive.Manifest, error) {
	v, err := n.history.View()
	if err != nil {
		return nil, err
	}
	defer v.Close()
	var (
		b     chain.Block
		count progress.Count
	)
	for number := blocks.From; number < blocks.To; number++ {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if err := v.LoadBlock(ctx, number, chain.PartsAll|chain.PartSenders, &b); err != nil {
			return nil, err
		}
		if err := w.Add(archive.WholeFrame(&b, n.network.ChainID())); err != nil {
			return nil, err
		}
		count.Blocks, count.Bytes = count.Blocks+1, w.Bytes()
		observe(count)
	}
	return w.Commit()
}

// verifiedFrameBytes bounds a block of an archive that is verified, and with it the lines that are read into memory: it
// is the default of raw_history.maximum_frame_logical_bytes, because no settings are read.
const verifiedFrameBytes = 64 << 20

// verifyArchive reads an archive. begin is told the number of its blocks and gives the observer.
func (stored) verifyArchive(ctx context.Context, path string, begin func(total uint64) func(progress.Count)) (archiveVerifyReport, error) {
	var r archiveVerifyReport
	a, err := archive.Open(path)
	if err != nil {
		return r, err
	}
	m := a.Manifest()
	var (
		ranges []chain.Range
		total  uint64
	)
	for _, o := range m.Objects {
		ranges = append(ranges, o.Range)
		total += o.Range.Len()
	}
	observe := begin(total)
	found, err := a.Verify(ctx, archive.Budget{FrameBytes: verifiedFrameBytes}, func(frames, bytes uint64) { observe(progress.Count{Blocks: frames, Bytes: bytes}) })
	if err != nil {
		return r, err
	}
	r = archiveVerifyReport{
		ID: m.ID, ChainID: m.ChainID, Coverage: spansOf(ranges), Objects: found.Objects, Frames: found.Frames,
		Proved: found.Proved, Bytes: found.Bytes, Problems: []string{},
	}
	for _, p := range found.Problems {
		r.Problems = append(r.Problems, p.Error())
	}
	return r, nil
}
