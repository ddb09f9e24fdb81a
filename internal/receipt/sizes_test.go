package receipt

import (
	"testing"

	"github.com/ethereum/go-ethereum/core/types"

	"github.com/leani-go/leani/chain"
	"github.com/leani-go/leani/internal/announced"
)

// SEC-012: whatever lengths receipts announce, they take memory in proportion to their bytes.
func TestAnnouncedSizes(t *testing.T) {
	log := list(text(make([]byte, 20)), list(text(make([]byte, 32))), text([]byte("data")))
	bloom := text(make([]byte, types.BloomByteLength))
	announced.Sizes(t, 64<<10, 400, func(in []byte) {
		var b chain.Block
		_ = DecodeSlim(in, &b)
		b.Reset()
		_, _ = DecodeCanonical(in, &b, nil)
		b.Reset()
		_, _ = DecodeOne(in, &b)
	}, list(list([]byte{2}, text([]byte{1}), text([]byte{0x52, 0x08}), list(log, log))),
		list(list(text(make([]byte, 32)), text([]byte{0x52, 0x08}), bloom, list(log)),
			text(append([]byte{2}, list(text(nil), text([]byte{9}), bloom, list())...))),
		list(text([]byte{1}), text([]byte{9}), bloom, list(log)))
}
