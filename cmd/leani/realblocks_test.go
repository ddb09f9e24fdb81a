package main

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"reflect"
	"slices"
	"sort"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/holiman/uint256"

	"github.com/leani-go/leani/chain"
	"github.com/leani-go/leani/engine"
	"github.com/leani-go/leani/engine/history"
	"github.com/leani-go/leani/ingest"
	"github.com/leani-go/leani/ingest/archive"
	"github.com/leani-go/leani/ingest/era"
	"github.com/leani-go/leani/ingest/verify"
	"github.com/leani-go/leani/internal/chainfixture"
)

// blockFiles is a source of history out of memory: a file for each run of blocks.
type blockFiles []*chain.Block

func (s blockFiles) runs() (runs []chain.Range) {
	for _, b := range s {
		if n := len(runs); n > 0 && runs[n-1].To == b.Number {
			runs[n-1].To++
		} else {
			runs = append(runs, chain.Range{From: b.Number, To: b.Number + 1})
		}
	}
	return runs
}

func (s blockFiles) at(n uint64) *chain.Block {
	i := sort.Search(len(s), func(i int) bool { return s[i].Number >= n })
	return s[i]
}

func (s blockFiles) Plan(_ context.Context, r chain.Range) ([]ingest.Extent, error) {
	for _, run := range s.runs() {
		if run.Covers(r) {
			return []ingest.Extent{{File: "run", Range: r}}, nil
		}
	}
	return nil, errors.New("not one run")
}

func (s blockFiles) Open(context.Context, string, ingest.Limits) (ingest.File, error) {
	return blockFile{s}, nil
}

type blockFile struct{ blocks blockFiles }

func (f blockFile) Range() chain.Range {
	return chain.Range{From: f.blocks[0].Number, To: f.blocks[len(f.blocks)-1].Number + 1}
}
func (f blockFile) Prove(context.Context) error         { return nil }
func (f blockFile) Size(uint64) (stored, decoded int64) { return 1, 1 << 20 }
func (f blockFile) Offset(uint64, chain.Parts) int64    { return 0 }
func (f blockFile) Close() error                        { return nil }
func (f blockFile) ReadBlocks(r chain.Range, _ *era.Buffer, dst []chain.Block) (int, error) {
	n := min(len(dst), int(r.Len()))
	for i := range n {
		dst[i] = *f.blocks.at(r.From + uint64(i))
		dst[i].TransactionHashes, dst[i].Senders = nil, nil // the verifier fills them in
	}
	return n, nil
}

// realStore is a store of its own.
func realStore(t *testing.T, chainID uint64) *history.Store {
	t.Helper()
	e, err := engine.Open(engine.Options{Dir: t.TempDir(), ChainID: chainID, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
	return history.New(e, history.Options{})
}

// fillReal fills a store through the path that every block of a source goes.
func fillReal(t *testing.T, s *history.Store, source ingest.Source, runs []chain.Range) {
	t.Helper()
	for _, r := range runs {
		_, err := ingest.Fill(t.Context(), ingest.Options{
			Source: source, Ranges: []chain.Range{r},
			Sink: func(ctx context.Context, committed func(chain.Range)) ingest.Sink { return s.NewWriter(ctx, committed) },
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

func realView(t *testing.T, s *history.Store) *history.View {
	t.Helper()
	v, err := s.View()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(v.Close)
	return v
}

// equalBlock compares all bytes of a block, senders excepted.
func equalBlock(t *testing.T, got, want *chain.Block) {
	t.Helper()
	if g, w := plainBlock(got), plainBlock(want); !reflect.DeepEqual(g, w) {
		t.Errorf("block %d:\n%.2000s", want.Number, cmp.Diff(w, g))
	}
}

// plainBlock has nil for what is empty, where that is the same.
func plainBlock(b *chain.Block) *chain.Block {
	p := *b
	p.Senders = nil
	p.Logs = slices.Clone(b.Logs)
	for i := range p.Logs {
		if len(p.Logs[i].Data) == 0 {
			p.Logs[i].Data = nil
		}
	}
	if len(p.Transactions) == 0 {
		p.Transactions, p.TransactionHashes = nil, nil
	}
	if len(p.Receipts) == 0 {
		p.Receipts = nil
	}
	if len(p.Logs) == 0 {
		p.Logs = nil
	}
	return &p
}

// checkWhole proves that the history of a store is exactly these blocks, byte for byte: each equals what went in,
// and its roots, recomputed from what came out, are those of its header.
func checkWhole(t *testing.T, s *history.Store, want blockFiles) {
	t.Helper()
	v := realView(t, s)
	if got, runs := v.Coverage(), want.runs(); !slices.Equal(got, runs) {
		t.Fatalf("coverage: got %v want %v", got, runs)
	}
	var verifier verify.Verifier
	var b chain.Block
	for _, w := range want {
		if err := v.LoadBlock(t.Context(), w.Number, chain.PartsAll, &b); err != nil {
			t.Fatal(err)
		}
		equalBlock(t, &b, w)
		if err := verifier.Block(&b, verify.Expected{Number: w.Number, Hash: w.Hash, ParentHash: w.ParentHash}); err != nil {
			t.Error(err)
		}
	}
	r, err := s.Verify(t.Context(), history.VerifyOptions{
		NewProver:      func() history.Prover { return new(rootProver) },
		NewFrameProver: func() history.FrameProver { return new(verify.Verifier) },
	})
	if err != nil || len(r.Problems) > 0 || r.Blocks != uint64(len(want)) {
		t.Errorf("verify: %+v, %v", r, err)
	}
}

// checkPartial proves that a store holds exactly these frames beside its history, with their states, and that
// they answer nothing. same compares what is said about a frame, and may take from it what was added on its way.
func checkPartial(t *testing.T, s *history.Store, want []*chain.Frame, same func(got, want *chain.Frame)) {
	t.Helper()
	v := realView(t, s)
	var got int
	supplied, err := v.Frames(t.Context(), chain.Range{To: 1 << 40}, chain.Requirement{}, func(f *chain.Frame) error {
		if got == len(want) || f.BlockRef != want[got].BlockRef {
			t.Fatalf("frame %d is of block %s", got, f.BlockRef)
		}
		w := want[got]
		got++
		same(f, w)
		if p, q := f.Profile(), w.Profile(); !reflect.DeepEqual(p.Materials, q.Materials) || p.Details != q.Details || p.Ommers != q.Ommers || p.ChainID != q.ChainID {
			t.Errorf("block %d: states got %+v want %+v", f.Number, p, q)
		}
		equalBlock(t, &f.Block, &w.Block)
		return nil
	})
	if err != nil || got != len(want) {
		t.Fatalf("%d frames of %d: %v", got, len(want), err)
	}
	for _, f := range want {
		n := f.Number
		if !slices.ContainsFunc(supplied, func(r chain.Range) bool { return r.Contains(n) }) {
			t.Errorf("block %d was yielded and is not said to be", n)
		}
		one := chain.Range{From: n, To: n + 1}
		if missing := s.Missing(one); len(missing) != 1 {
			t.Errorf("block %d counts as retained", n)
		}
		var b chain.Block
		if err := v.LoadBlock(t.Context(), n, chain.PartHeader, &b); !errors.Is(err, chain.ErrNotRetained) {
			t.Errorf("block %d is served: %v", n, err)
		}
		if _, ok, err := v.NumberByHash(f.Hash); ok || err != nil {
			t.Errorf("block %d is found by its hash: %v", n, err)
		}
		if err := v.Logs(t.Context(), one, &chain.LogFilter{}, func(*chain.FoundLog) error { return nil }); !errors.Is(err, chain.ErrNotRetained) {
			t.Errorf("block %d answers for logs: %v", n, err)
		}
		for _, need := range []chain.Capability{chain.CapabilityReceipts, chain.CapabilityLogs, chain.CapabilityTransactions, chain.CapabilityWithdrawals} {
			_, err := v.Frames(t.Context(), one, chain.Requirement{Capabilities: chain.NewCapabilities(need)}, func(g *chain.Frame) error {
				if m := f.Material(need); !m.Complete() && !(need == chain.CapabilityLogs && f.Material(chain.CapabilityReceipts).Complete()) {
					t.Errorf("block %d answers for %s", n, need)
				}
				return nil
			})
			if err != nil {
				t.Error(err)
			}
		}
	}
}

// Chain ids of the collection beside that of Mainnet. Of the test network nothing is known but that its two blocks
// have no transactions, so that any number does.
const (
	ropsten  = 3
	nameless = 1 << 32
)

// realChains are the blocks of the collection by chain: 177 of Mainnet, seven of Ropsten, two of a test network.
func realChains(t *testing.T) (whole map[uint64]blockFiles, partial map[uint64][]*chain.Frame) {
	t.Helper()
	whole, partial = make(map[uint64]blockFiles), make(map[uint64][]*chain.Frame)
	blocks := chainfixture.RealBlocks(t)
	if len(blocks) < 186 {
		t.Errorf("%d blocks, there were 186", len(blocks))
	}
	slices.SortFunc(blocks, func(a, b *chainfixture.Block) int { return int(a.Number) - int(b.Number) })
	for _, b := range blocks {
		if b.ChainID == 0 {
			b.ChainID = nameless
		}
		f, complete := b.Frame(t)
		if complete {
			whole[b.ChainID] = append(whole[b.ChainID], &f.Block)
		} else {
			partial[b.ChainID] = append(partial[b.ChainID], f)
		}
	}
	return whole, partial
}

// Every real block that has receipts and a whole body goes through the verified path into history and comes
// back byte for byte, also through an archive and through era files. Every other one is kept as the frame that it is,
// with the exact states, comes back equal, also through an archive, and is never served.
//
// INV-07 INV-10 INV-19 SRC-003
func TestRealBlocks(t *testing.T) {
	whole, partial := realChains(t)
	var headers, noReceipts, noWithdrawals, noOmmers int
	for _, frames := range partial {
		for _, f := range frames {
			switch body := f.Material(chain.CapabilityTransactions).Complete(); {
			case !body:
				headers++
			case f.Ommers == nil:
				noOmmers++
			case !f.Material(chain.CapabilityWithdrawals).Complete():
				noWithdrawals++
			}
			if !f.Material(chain.CapabilityReceipts).Complete() {
				noReceipts++
			}
		}
	}
	t.Logf("no body %d, no ommers %d, no withdrawals %d, no receipts %d", headers, noOmmers, noWithdrawals, noReceipts)
	if min(headers, noOmmers, noWithdrawals, noReceipts) == 0 {
		t.Error("a kind of partial material is not in the collection")
	}
	for _, id := range []uint64{chain.MainnetChainID, ropsten, nameless} {
		blocks, frames := whole[id], partial[id]
		t.Logf("chain %d: %d whole blocks in %d runs, %d partial ones", id, len(blocks), len(blocks.runs()), len(frames))
		s := realStore(t, id)
		var v verify.Verifier
		for _, f := range frames {
			if err := v.Frame(f, verify.Expected{Number: f.Number, Hash: f.Hash}); err != nil {
				t.Fatal(err)
			}
		}
		if err := s.AddFrames(t.Context(), frames...); err != nil {
			t.Fatal(err)
		}
		fillReal(t, s, blocks, blocks.runs())
		checkWhole(t, s, blocks)
		checkPartial(t, s, frames, func(got, want *chain.Frame) {
			if !reflect.DeepEqual(got.Verification, want.Verification) || !reflect.DeepEqual(got.Provenance, want.Provenance) {
				t.Errorf("block %d: got %+v want %+v", got.Number, got.Verification, want.Verification)
			}
		})
		if len(blocks) > 0 {
			throughArchive(t, id, s, blocks)
			throughEra(t, id, s, blocks)
		}
		mixedArchive(t, id, s, blocks, frames)
	}
}

// throughArchive writes the history of a store as an archive and fills another one from it.
func throughArchive(t *testing.T, id uint64, s *history.Store, blocks blockFiles) {
	t.Helper()
	manifest := writeReal(t, archive.WriterOptions{ChainID: id, Capabilities: archive.WholeKinds, Complete: archive.WholeKinds}, wholeFrames(t, id, s, blocks))
	source, err := archive.OpenSource(manifest, id)
	if err != nil {
		t.Fatal(err)
	}
	other := realStore(t, id)
	fillReal(t, other, source, blocks.runs())
	checkWhole(t, other, blocks)
}

// wholeFrames are the blocks of a store as frames, with senders.
func wholeFrames(t *testing.T, id uint64, s *history.Store, blocks blockFiles) (frames []*chain.Frame) {
	t.Helper()
	v := realView(t, s)
	for _, w := range blocks {
		b := new(chain.Block)
		if err := v.LoadBlock(t.Context(), w.Number, chain.PartsAll|chain.PartSenders, b); err != nil {
			t.Fatal(err)
		}
		frames = append(frames, archive.WholeFrame(b, id))
	}
	return frames
}

// writeReal writes frames into an archive and gives the path of its manifest.
func writeReal(t *testing.T, o archive.WriterOptions, frames []*chain.Frame) string {
	t.Helper()
	o.Folder, o.ID, o.Finality = filepath.Join(t.TempDir(), "archive"), "real", chain.Finalized
	w, err := archive.Create(o)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range frames {
		if err := w.Add(f); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := w.Commit(); err != nil {
		t.Fatal(err)
	}
	return filepath.Join(o.Folder, archive.ManifestName)
}

// throughEra writes each run of a store's history as an era file, and fills another store from the folder.
func throughEra(t *testing.T, id uint64, s *history.Store, blocks blockFiles) {
	t.Helper()
	v := realView(t, s)
	folder := t.TempDir()
	var files []exportFile
	for _, r := range blocks.runs() {
		// What comes before these blocks is not known: any total difficulty does.
		f, _, err := writeEra(t.Context(), v, folder, "mainnet", r, *uint256.NewInt(1), func() {})
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, f)
	}
	if err := listChecksums(folder, files); err != nil {
		t.Fatal(err)
	}
	source, err := ingest.OpenEraFolder(folder, "mainnet")
	if err != nil {
		t.Fatal(err)
	}
	other := realStore(t, id)
	fillReal(t, other, source, blocks.runs())
	checkWhole(t, other, blocks)
}

// mixedArchive writes whole and partial frames as one archive, and keeps what it has: each goes where it belongs.
func mixedArchive(t *testing.T, id uint64, s *history.Store, blocks blockFiles, partial []*chain.Frame) {
	t.Helper()
	frames := append(wholeFrames(t, id, s, blocks), partial...)
	slices.SortFunc(frames, func(a, b *chain.Frame) int { return int(a.Number) - int(b.Number) })
	manifest := writeReal(t, archive.WriterOptions{
		ChainID: id, Capabilities: archive.WholeKinds, Complete: chain.NewCapabilities(chain.CapabilityHeader),
	}, frames)
	a, err := archive.Open(manifest)
	if err != nil {
		t.Fatal(err)
	}
	other := realStore(t, id)
	r, err := ingest.Keep(t.Context(), ingest.KeepOptions{
		Source: a.Frames(archive.Budget{}), Ranges: []chain.Range{{To: 1 << 40}},
		Blocks: func(ctx context.Context, committed func(chain.Range)) ingest.Sink {
			return other.NewWriter(ctx, committed)
		},
		Frames: func(ctx context.Context) ingest.FrameSink { return other.NewFramesWriter(ctx, nil) },
	})
	if err != nil || r.Whole != uint64(len(blocks)) || r.Partial != uint64(len(partial)) {
		t.Fatalf("%+v, %v", r, err)
	}
	checkWhole(t, other, blocks)
	checkPartial(t, other, partial, func(got, want *chain.Frame) {
		claims, checks := want.Verification.Checks(), got.Verification.Checks()
		for _, i := range []int{0, 2, 3, 4} {
			if claims[i].Status != checks[i].Status {
				t.Errorf("block %d: check %d: got %v want %v", got.Number, i, checks[i], claims[i])
			}
		}
		last := got.Provenance[len(got.Provenance)-1]
		if checks[5].Status != chain.Verified || last.Kind != chain.HistoryArchive || last.Object == nil || last.Trust > chain.TrustedDataset {
			t.Errorf("block %d: %+v from %+v", got.Number, got.Verification, got.Provenance)
		}
		// An archive tells more: that the header commits to no ommers, and that of no item nothing is missing.
		if want.Ommers == nil && bytes.Equal(got.Ommers, []byte{0xc0}) {
			got.Ommers = nil
		}
		got.Details &= want.Details
	})
}
