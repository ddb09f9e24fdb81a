package hotblock

import (
	"bytes"
	"testing"

	"github.com/leani-go/leani/chain"
	"github.com/leani-go/leani/internal/announced"
)

// SEC-012: whatever lengths a stored part announces, it takes memory in proportion to its bytes.
func TestAnnouncedSizes(t *testing.T) {
	var e Encoder
	blocks := modelBlocks(9, 3)
	for i, decode := range []func([]byte){
		func(raw []byte) { _ = LoadHeader(raw, new(chain.Block)) },
		func(raw []byte) { _ = LoadBody(raw, new(chain.Block)) },
		func(raw []byte) { _ = LoadReceipts(raw, new(chain.Block)) },
		func(raw []byte) { _, _ = DecodeLogs(raw, uint32(len(blocks[2].Transactions))) },
	} {
		parts, err := e.Encode(blocks[2])
		if err != nil {
			t.Fatal(err)
		}
		announced.Sizes(t, 64<<10, 400, decode, bytes.Clone(parts[i]))
	}
}
