package ingest

import (
	"context"
	"errors"
	"fmt"

	"github.com/leani-go/leani/chain"
	"github.com/leani-go/leani/ingest/era"
	"github.com/leani-go/leani/ingest/verify"
)

// filesSchema is the schema of frames out of files of consensus encodings.
const filesSchema = "consensus-encodings"

// framesBatch is how many blocks are read at once, at most.
const framesBatch = 32

// FilesAsFrames offers to Keep what a source of files has of blocks without receipts: header, transactions, ommers and
// withdrawals. Files with receipts, as the first block that is read of them tells, are left out: they are for Fill. A file
// is compared with its digest before its first frame. id names the source in the provenance of frames; blockBytes bounds a block decoded, 0 is
// DefaultMaximumBlockBytes.
func FilesAsFrames(source Source, id string, chainID uint64, blockBytes int64) FrameSource {
	setDefault(&blockBytes, DefaultMaximumBlockBytes)
	return &filesAsFrames{source: source, id: id, chainID: chainID, blockBytes: blockBytes}
}

type filesAsFrames struct {
	source     Source
	id         string
	chainID    uint64
	blockBytes int64
}

// Frames implements FrameSource.
func (s *filesAsFrames) Frames(ctx context.Context, r chain.Range, yield func(*chain.Frame) error) error {
	extents, err := s.source.Plan(ctx, r)
	var holes Holes
	if err != nil && !errors.As(err, &holes) {
		return err
	}
	for _, e := range extents {
		if err := s.file(ctx, e, yield); err != nil {
			return err
		}
	}
	return nil
}

func (s *filesAsFrames) file(ctx context.Context, e Extent, yield func(*chain.Frame) error) (err error) {
	f, err := s.source.Open(ctx, e.File, Limits{BatchBytes: decodedPerStored * chunkStoredBytes, BlockBytes: s.blockBytes, Reads: NewGate(1)})
	if err != nil {
		return err
	}
	defer func() { err = join([]error{err, f.Close()}) }()
	var (
		buffer era.Buffer
		blocks = make([]chain.Block, framesBatch)
		v      verify.Verifier
		frame  chain.Frame
	)
	n, err := f.ReadBlocks(chain.Range{From: e.Range.From, To: e.Range.From + 1}, &buffer, blocks)
	if err != nil || n == 1 && blocks[0].HasReceipts {
		return err
	}
	if err := f.Prove(ctx); err != nil {
		return err
	}
	for rest := e.Range; !rest.Empty(); {
		if err := ctx.Err(); err != nil {
			return err
		}
		n, failure := f.ReadBlocks(rest, &buffer, blocks)
		if failure == nil && n == 0 {
			failure = errNoProgress
		}
		for i := range n {
			b, number := &blocks[i], rest.From+uint64(i)
			if b.HasReceipts {
				continue
			}
			if err := v.Block(b, verify.Expected{Number: number}); err != nil {
				return fmt.Errorf("%s: %w", e.File, err)
			}
			s.frame(&frame, b, e)
			if err := yield(&frame); err != nil {
				return err
			}
		}
		if failure != nil {
			return failure
		}
		rest.From += uint64(n)
	}
	return nil
}

// frame makes the frame of a block without receipts.
func (s *filesAsFrames) frame(f *chain.Frame, b *chain.Block, from Extent) {
	*f = chain.Frame{
		Block: *b, ChainID: s.chainID, Finality: chain.Finalized, Schema: filesSchema,
		Details: chain.DetailHeaderRLP | chain.DetailEnvelopes,
		Provenance: []chain.Provenance{{
			SourceID: s.id, Kind: chain.PublicDataset, Trust: chain.TrustedDataset,
			Object: &chain.SourceObject{Locator: from.File, Schema: filesSchema},
		}},
		Verification: chain.VerificationReport{
			DatasetChecksum: chain.Check{Status: chain.Verified, Detail: "the digest of the file equals the list of its source"},
		},
	}
	for _, c := range chain.MaterialKinds.List() {
		*f.Material(c) = chain.MissingMaterial(chain.NotAvailable)
	}
	for _, c := range []chain.Capability{chain.CapabilityHeader, chain.CapabilityTransactions, chain.CapabilityWithdrawals} {
		*f.Material(c) = chain.CompleteMaterial()
	}
}
