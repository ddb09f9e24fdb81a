package header

import (
	"testing"

	"github.com/leani-go/leani/internal/announced"
)

// SEC-012: whatever lengths a header announces, it is read in place.
func TestAnnouncedSizes(t *testing.T) {
	var seeds [][]byte
	for _, fields := range []int{FieldsFrontier, FieldsLondon, FieldsMaximum} {
		_, encoded := sample(t, fields)
		seeds = append(seeds, encoded)
	}
	var h Header
	announced.Sizes(t, 32<<10, 0, func(in []byte) { _ = Parse(in, &h) }, seeds...)
}
