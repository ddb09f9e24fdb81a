package history

import (
	"github.com/leani-go/leani/chain"
	"github.com/leani-go/leani/engine"
)

// Missing lists the blocks of a range that are not retained, in order.
func (s *Store) Missing(r chain.Range) []chain.Range {
	snap := s.engine.Acquire()
	defer snap.Release()
	var out []chain.Range
	for !r.Empty() {
		gap, ok := snap.Missing(engine.FieldReceipts, r)
		if !ok {
			break
		}
		out = append(out, gap)
		r.From = gap.To
	}
	return out
}
