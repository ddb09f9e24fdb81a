package era

import (
	"testing"

	"github.com/leani-go/leani/chain"
	"github.com/leani-go/leani/internal/shareddata"
)

// BenchmarkDecode asks what reading a block costs, from the file (in the page cache) to a
// filled chain.Block: about 228 transactions, 432 logs and 174 KB each.
func BenchmarkDecode(b *testing.B) {
	f, err := OpenPath(shareddata.Path(b, "chainlab-800", "chainlab-00000-3b8d3ead-noproofs.ere"), Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	var (
		buf    Buffer
		blocks = make([]chain.Block, 16)
		r      = chain.Range{From: 1, To: f.Range().To}
		next   = r
		bytes  = 0
	)
	b.ReportAllocs()
	for done := 0; done < b.N; {
		n, err := f.ReadBlocks(next, chain.PartsAll, &buf, blocks)
		if err != nil {
			b.Fatal(err)
		}
		bytes += len(buf.plain)
		done += n
		if next.From += uint64(n); next.Empty() {
			next = r
		}
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "blocks/s")
	b.SetBytes(int64(bytes / b.N))
}
