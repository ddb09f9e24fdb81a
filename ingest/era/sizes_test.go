package era

import (
	"testing"

	"github.com/leani-go/leani/chain"
	"github.com/leani-go/leani/internal/announced"
)

// SEC-012: whatever sizes records, compressed blocks and the index of an era file announce, and whatever a list of
// checksums says, reading takes memory within the limits.
func TestAnnouncedSizes(t *testing.T) {
	a, b := tiny(t)
	options := Options{MaximumBlockBytes: 1 << 16, MaximumBatchBytes: 1 << 17}
	announced.Sizes(t, 1<<20, 400, func(content []byte) {
		file, err := open(content, options)
		if err != nil {
			return
		}
		_, _ = file.Accumulator()
		r := file.Range()
		r.To = min(r.To, r.From+4)
		_ = file.ReadBlock(r.From, chain.PartsAll, new(Buffer), new(chain.Block))
		_, _ = file.ReadBlocks(r, chain.PartsAll, new(Buffer), make([]chain.Block, r.Len()))
	}, a, b)
	announced.Sizes(t, 256<<10, 64, func(content []byte) { _, _ = ParseCatalog(content) },
		[]byte(digestFirst+"  mainnet-00000-00000000.era1\n"+digestLast+" *b\n"))
}
