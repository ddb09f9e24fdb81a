package archive

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/leani-go/leani/chain"
	"github.com/leani-go/leani/ingest"
)

// collector is a sink that compares blocks with frames.
type collector struct {
	t      *testing.T
	frames map[uint64]*chain.Frame
	blocks []uint64
}

func (c *collector) Add(b *chain.Block) error {
	c.blocks = append(c.blocks, b.Number)
	if diff := cmp.Diff(&c.frames[b.Number].Block, b, compareBlocks, cmpopts.IgnoreFields(chain.Block{}, "Senders")); diff != "" {
		c.t.Error(diff)
	}
	return nil
}
func (c *collector) Cut() error       { return nil }
func (c *collector) Pending() int     { return len(c.blocks) }
func (c *collector) Close(bool) error { return nil }

// fillFrom fills ranges from an archive and gives the blocks that arrived, which are compared with the frames.
func fillFrom(t *testing.T, manifest string, frames []*chain.Frame, ranges ...chain.Range) ([]uint64, error) {
	t.Helper()
	s, err := OpenSource(manifest, frames[0].ChainID)
	if err != nil {
		return nil, err
	}
	c := &collector{t: t, frames: map[uint64]*chain.Frame{}}
	for _, f := range frames {
		c.frames[f.Number] = f
	}
	_, err = ingest.Fill(context.Background(), ingest.Options{
		Source: s, Ranges: ranges, Workers: 2,
		Sink: func(context.Context, func(chain.Range)) ingest.Sink { return c },
	})
	return c.blocks, err
}

// pairs are the ranges of the real frames.
func pairs(frames []*chain.Frame) []chain.Range {
	var ranges []chain.Range
	for i := 0; i < len(frames); i += 2 {
		ranges = append(ranges, chain.Range{From: frames[i].Number, To: frames[i].Number + 2})
	}
	return ranges
}

// TestFill fills from an archive: every byte of real blocks arrives, proved by the roots of their headers.
func TestFill(t *testing.T) {
	frames := realFrames(t)
	for _, objectBlocks := range []uint64{1, 2} {
		blocks, err := fillFrom(t, writeArchive(t, frames, objectBlocks), frames, pairs(frames)...)
		if err != nil || len(blocks) != len(frames) {
			t.Fatal(blocks, err)
		}
	}
}
