package archive

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/leani-go/leani/chain"
	"github.com/leani-go/leani/internal/announced"
)

// SEC-012: whatever a frame or a manifest says of sizes and counts, it takes memory in proportion to its text.
func TestAnnouncedSizes(t *testing.T) {
	hash := madeHash(3)
	line := madeLine(3, map[string]string{
		"transactions": `{"Complete":[{"hash":` + numbers(hash[:]) + `,"transaction_type":2,"index":0,"encoded":[2,192],"from":` + numbers(hash[:20]) + `,"blob_versioned_hashes":[]}]}`,
		"receipts":     `{"Complete":[{"transaction_hash":` + numbers(hash[:]) + `,"transaction_type":2,"transaction_index":0,"success":true,"gas_used":3,"logs":[` + fmt.Sprintf(logText, numbers(hash[:]), "null") + `]}]}`,
	})
	announced.Sizes(t, 64<<10, 64, func(b []byte) {
		_ = new(Parser).Parse(padded(b), nil, new(chain.Frame))
	}, []byte(line))
	announced.Sizes(t, 64<<10, 64, func(b []byte) {
		_, _ = ParseManifest(bytes.Clone(b))
	}, text(t, madeManifest(madeObject{1, 2, "x"}, madeObject{4, 4, "y"})))
}
