package ingest

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/ethereum/go-ethereum/common"

	"github.com/leani-go/leani/chain"
	"github.com/leani-go/leani/ingest/verify"
)

// fakeFrames offers frames of the test chain.
type fakeFrames []*chain.Frame

func (s fakeFrames) Frames(ctx context.Context, r chain.Range, yield func(*chain.Frame) error) error {
	for _, f := range s {
		if r.Contains(f.Number) {
			if err := yield(f); err != nil {
				return err
			}
		}
	}
	return nil
}

// frameRecorder notes what it is given.
type frameRecorder struct {
	frames    []chain.Frame
	pending   int
	cuts      int
	closed    int
	discarded bool
	err       error // of the next Add
}

func (s *frameRecorder) Add(f *chain.Frame) error {
	if s.err != nil {
		return s.err
	}
	s.frames = append(s.frames, *f)
	s.pending++
	return nil
}

func (s *frameRecorder) Cut() error {
	s.cuts++
	s.pending = 0
	return nil
}
func (s *frameRecorder) Pending() int { return s.pending }
func (s *frameRecorder) Close(discard bool) error {
	s.closed++
	s.discarded = discard
	return nil
}

// frameOf is a frame of block n of the test chain that lacks what its number says: nothing, receipts, ommers,
// everything but the header.
func frameOf(b chain.Block) *chain.Frame {
	f := &chain.Frame{Block: b, ChainID: 1, Finality: chain.Finalized, Details: chain.DetailsExact}
	for _, c := range chain.MaterialKinds.List() {
		*f.Material(c) = chain.CompleteMaterial()
	}
	switch b.Number % 4 {
	case 1:
		*f.Material(chain.CapabilityReceipts) = chain.MissingMaterial(chain.NotAvailable)
		*f.Material(chain.CapabilityLogs) = chain.MissingMaterial(chain.NotAvailable)
		f.HasReceipts, f.Receipts, f.Logs = false, nil, nil
	case 2:
		f.Ommers = nil
	case 3:
		f.Block = chain.Block{BlockRef: b.BlockRef, Header: b.Header}
		for _, c := range chain.MaterialKinds.List()[1:] {
			*f.Material(c) = chain.MissingMaterial(chain.NotRequested)
		}
	}
	return f
}

// keepFixture are frames of the first n blocks and sinks for them.
func keepFixture(t *testing.T, n int) (KeepOptions, *[]uint64, *frameRecorder) {
	t.Helper()
	var v verify.Verifier
	var frames fakeFrames
	for i, b := range testChain()[:n] {
		if err := v.Block(&b, verify.Expected{Number: uint64(i)}); err != nil {
			t.Fatal(err)
		}
		frames = append(frames, frameOf(b))
	}
	var blocks []uint64
	recorder := &frameRecorder{}
	return KeepOptions{
		Source: frames, Ranges: []chain.Range{{To: uint64(n)}},
		Blocks: func(context.Context, func(chain.Range)) Sink { return blockRecorder{&blocks} },
		Frames: func(context.Context) FrameSink { return recorder },
	}, &blocks, recorder
}

// blockRecorder notes the numbers of blocks.
type blockRecorder struct{ numbers *[]uint64 }

func (s blockRecorder) Add(b *chain.Block) error {
	*s.numbers = append(*s.numbers, b.Number)
	return nil
}
func (s blockRecorder) Cut() error       { return nil }
func (s blockRecorder) Pending() int     { return 0 }
func (s blockRecorder) Close(bool) error { return nil }

// What is whole becomes history, what is not is kept as what it is, frame by frame.
//
// INV-19 SRC-003
func TestKeep(t *testing.T) {
	o, blocks, frames := keepFixture(t, 20)
	r, err := Keep(t.Context(), o)
	if err != nil || r != (KeepResult{Whole: 5, Partial: 15}) {
		t.Fatal(r, err)
	}
	if !slices.Equal(*blocks, []uint64{0, 4, 8, 12, 16}) || frames.closed != 1 || frames.discarded {
		t.Errorf("blocks %v, sink %+v", *blocks, frames)
	}
	for i := range frames.frames {
		f := &frames.frames[i]
		got := f.Verification
		if got.HeaderHash.Status != chain.Verified || (got.TransactionsRoot.Status == chain.Verified) != (f.Number%4 != 3) ||
			(got.ReceiptsRoot.Status == chain.Verified) != (f.Number%4 == 2) || got.DatasetChecksum.Status != chain.NotChecked {
			t.Errorf("block %d: %+v", f.Number, got)
		}
	}
}

// A frame that cannot be taken ends the run; what came before stays.
func TestKeepRefuses(t *testing.T) {
	broken := errors.New("the disk is gone")
	var proof *verify.Error
	for name, c := range map[string]struct {
		edit func(o *KeepOptions, frames fakeFrames, s *frameRecorder)
		want func(error) bool
		kept uint64
	}{
		"not the header's": {func(_ *KeepOptions, f fakeFrames, _ *frameRecorder) {
			f[5].Transactions = append(slices.Clone(f[5].Transactions), []byte{1})
			f[5].TransactionHashes = append(slices.Clone(f[5].TransactionHashes), common.Hash{})
		}, func(err error) bool { return errors.As(err, &proof) && proof.Check == verify.CheckTransactionsRoot }, 5},
		"not the child": {func(_ *KeepOptions, f fakeFrames, _ *frameRecorder) {
			*f[7].Material(chain.CapabilityHeader) = chain.MissingMaterial(chain.NotAvailable)
			f[7].Header, f[7].ParentHash = nil, common.Hash{1}
		}, func(err error) bool { return errors.As(err, &proof) && proof.Check == verify.CheckParent }, 7},
		"not final": {func(_ *KeepOptions, f fakeFrames, _ *frameRecorder) { f[3].Finality = chain.Attested },
			func(err error) bool { return errors.Is(err, ErrNotFinal) }, 3},
		"twice":           {func(o *KeepOptions, f fakeFrames, _ *frameRecorder) { o.Source = append(f[:3:3], f[2:]...) }, func(err error) bool { return err != nil }, 3},
		"refused by sink": {func(_ *KeepOptions, _ fakeFrames, s *frameRecorder) { s.err = broken }, func(err error) bool { return errors.Is(err, broken) }, 1},
		"beside what is retained": {func(o *KeepOptions, _ fakeFrames, _ *frameRecorder) {
			o.ExpectedParent = func(n uint64) (common.Hash, bool) { return common.Hash{9}, n == 5 }
		}, func(err error) bool { return errors.As(err, &proof) && proof.Check == verify.CheckHash }, 4},
	} {
		t.Run(name, func(t *testing.T) {
			o, _, s := keepFixture(t, 10)
			c.edit(&o, o.Source.(fakeFrames), s)
			r, err := Keep(t.Context(), o)
			if !c.want(err) || r.Whole+r.Partial != c.kept || s.closed != 1 || s.discarded {
				t.Errorf("%+v, %v; sink %+v", r, err, s)
			}
		})
	}
	o, _, s := keepFixture(t, 10)
	ctx, cancel := context.WithCancel(t.Context())
	o.Progress = func(r KeepResult) {
		if r.Whole+r.Partial == 4 {
			cancel()
		}
	}
	if r, err := Keep(ctx, o); !errors.Is(err, context.Canceled) || r.Whole+r.Partial != 4 || s.discarded {
		t.Errorf("cancelled: %+v, %v", r, err)
	}
}

// Files without receipts give frames with bodies and no more, and only of blocks that Fill does not take.
//
// SRC-003
func TestFilesAsFrames(t *testing.T) {
	blocks := testChain()
	source := eraFolderOf(t, map[string][]byte{
		"test-0": eraFileOf(blocks[:20], true), "test-1-noreceipts": eraFileOf(blocks[20:45], false), "test-2": eraFileOf(blocks[60:80], true),
	}, nil)
	recorder := &frameRecorder{}
	var numbers []uint64
	r, err := Keep(t.Context(), KeepOptions{
		Source: FilesAsFrames(source, "folder", 1, 0), Ranges: []chain.Range{{From: 10, To: 100}},
		Blocks: func(context.Context, func(chain.Range)) Sink { return blockRecorder{&numbers} },
		Frames: func(context.Context) FrameSink { return recorder },
	})
	if err != nil || r != (KeepResult{Partial: 25}) || len(numbers) != 0 {
		t.Fatalf("%+v, %v", r, err)
	}
	for i := range recorder.frames {
		f, want := &recorder.frames[i], blocks[20+i]
		if f.BlockRef != want.BlockRef || f.Ommers == nil || len(f.Transactions) != len(want.Transactions) || f.HasReceipts ||
			f.Material(chain.CapabilityReceipts).Present() || !f.Material(chain.CapabilityWithdrawals).Complete() ||
			f.Verification.TransactionsRoot.Status != chain.Verified || f.Verification.DatasetChecksum.Status != chain.Verified ||
			f.Verification.ReceiptsRoot.Status != chain.NotChecked || f.Provenance[0].SourceID != "folder" {
			t.Errorf("block %s: %+v from %+v", f.BlockRef, f.Verification, f.Provenance)
		}
	}
	// A file that is not the one of the list gives nothing.
	damaged := eraFileOf(blocks[20:45], false)
	damaged[300] ^= 1
	source = eraFolderOf(t, map[string][]byte{"test-1-noreceipts": damaged}, map[string][]byte{"test-1-noreceipts": eraFileOf(blocks[20:45], false)})
	recorder = &frameRecorder{}
	_, err = Keep(t.Context(), KeepOptions{
		Source: FilesAsFrames(source, "folder", 1, 0), Ranges: []chain.Range{{From: 10, To: 100}},
		Blocks: func(context.Context, func(chain.Range)) Sink { return blockRecorder{&numbers} },
		Frames: func(context.Context) FrameSink { return recorder },
	})
	if err == nil || len(recorder.frames) > 0 {
		t.Errorf("%d frames of a damaged file, %v", len(recorder.frames), err)
	}
}
