package era

import (
	"context"
	"io"
	"testing"

	"github.com/leani-go/leani/chain"
	"github.com/leani-go/leani/internal/shareddata"
)

// BenchmarkWrite writes full blocks as an EraE file. Bytes are those of the file.
func BenchmarkWrite(b *testing.B) {
	f, err := OpenPath(shareddata.Path(b, "chainlab-800", "chainlab-00000-3b8d3ead-noproofs.ere"), Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	r := chain.Range{From: 100, To: 200}
	blocks := make([]chain.Block, r.Len())
	if n, err := f.ReadBlocks(r, chain.PartsAll, new(Buffer), blocks); err != nil || n != len(blocks) {
		b.Fatal(n, err)
	}
	read := func(_ context.Context, n uint64, _ chain.Parts, dst *chain.Block) error {
		*dst = blocks[n-r.From]
		return nil
	}
	b.ReportAllocs()
	for b.Loop() {
		w, err := Write(b.Context(), io.Discard, r, read, WriteOptions{})
		if err != nil {
			b.Fatal(err)
		}
		b.SetBytes(w.Bytes)
	}
}
