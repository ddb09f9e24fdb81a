package segments

import (
	"testing"

	"github.com/leani-go/leani/chain"
	"github.com/leani-go/leani/internal/announced"
	"github.com/leani-go/leani/internal/chainmodel"
)

// SEC-012: whatever lengths a stored frame and the description of a profile announce, they take memory in proportion to
// their bytes. Files as a whole are those of TestHostileFiles.
func TestAnnouncedSizes(t *testing.T) {
	m := chainmodel.New(3, 1)
	m.Transactions = 3
	var seeds [][]byte
	for shape := range chainmodel.Shape(chainmodel.Shapes) {
		frame := modelFrames(m, shape, 1)[0]
		b, err := appendFrame(nil, frame)
		if err != nil {
			t.Fatal(err)
		}
		p := frame.Profile()
		description, err := AppendProfile(nil, &p)
		if err != nil {
			t.Fatal(err)
		}
		seeds = append(seeds, b, description)
	}
	announced.Sizes(t, 64<<10, 400, func(b []byte) {
		_ = decodeFrame(b, new(chain.Frame))
		_, _ = DecodeProfile(b)
	}, seeds...)
}
