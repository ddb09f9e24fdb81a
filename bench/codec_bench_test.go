package bench

import (
	"path/filepath"
	"testing"

	"github.com/leani-go/leani/chain"
	"github.com/leani-go/leani/codec"
	"github.com/leani-go/leani/ingest/era"
	"github.com/leani-go/leani/internal/shareddata"
)

// coldPage is the raw size of a page of blobs, see docs/formats/segment.md.
const coldPage = 32 << 10

// mainnetPages are pages of transactions of the bundled Mainnet blocks.
func mainnetPages(tb testing.TB) (pages [][]byte) {
	tb.Helper()
	files, err := filepath.Glob(filepath.Join(shareddata.Root(tb), "testdata", "era", "mainnet-mini", "*.ere"))
	if err != nil || len(files) == 0 {
		tb.Fatalf("bundled Mainnet blocks: %v, %d files", err, len(files))
	}
	for _, name := range files {
		f, err := era.OpenPath(name, era.Options{})
		if err != nil {
			tb.Fatal(err)
		}
		var page []byte
		for n := f.Range().From; n < f.Range().To; n++ {
			var b chain.Block
			if err := f.ReadBlock(n, chain.PartTransactions, new(era.Buffer), &b); err != nil {
				tb.Fatal(err)
			}
			for _, t := range b.Transactions {
				if page = append(page, t...); len(page) >= coldPage {
					pages, page = append(pages, page), nil
				}
			}
		}
		if err := f.Close(); err != nil {
			tb.Fatal(err)
		}
	}
	return pages
}

// BenchmarkCodecColdPages asks which compression suits pages of transactions: how fast it is both
// ways, and what is left of a page. The data are Mainnet blocks. An operation is one page. The other
// encodings are measured in package codec.
func BenchmarkCodecColdPages(b *testing.B) {
	pages := mainnetPages(b)
	raw := 0
	for _, p := range pages {
		raw += len(p)
	}
	for _, c := range []codec.Compression{codec.None, codec.Snappy, codec.Deflate, codec.Zstd} {
		var encoded [][]byte
		stored := 0
		for _, p := range pages {
			e := codec.AppendPage(nil, c, p)
			encoded = append(encoded, e)
			stored += len(e)
		}
		b.Run("Encode/"+c.String(), func(b *testing.B) {
			var buf []byte
			b.ReportAllocs()
			b.SetBytes(int64(raw / len(pages)))
			for i := 0; b.Loop(); i++ {
				buf = codec.AppendPage(buf[:0], c, pages[i%len(pages)])
			}
			b.ReportMetric(float64(stored)/float64(raw), "stored/raw")
		})
		b.Run("Decode/"+c.String(), func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(raw / len(pages)))
			for i := 0; b.Loop(); i++ {
				if _, err := codec.DecodePage(encoded[i%len(encoded)]); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
