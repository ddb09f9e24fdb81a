package chain

import (
	"testing"

	"pgregory.net/rapid"
)

// Without and Subtract leave exactly the blocks of the one that are not in the other, in order and without empty ranges.
func TestRangeSubtraction(t *testing.T) {
	small := func(t *rapid.T, name string) Range {
		return Range{rapid.Uint64Max(12).Draw(t, name+" from"), rapid.Uint64Max(12).Draw(t, name+" to")}
	}
	rapid.Check(t, func(t *rapid.T) {
		ranges := []Range{small(t, "first"), small(t, "second")}
		o := small(t, "other")
		rest := Subtract(ranges, o)
		for n := range uint64(14) {
			want, got := 0, 0
			for _, r := range ranges {
				if r.Contains(n) && !o.Contains(n) {
					want++
				}
			}
			for _, r := range rest {
				if r.Contains(n) {
					got++
				}
			}
			if got != want {
				t.Fatalf("%v without %v: block %d is in %d ranges of %v, want %d", ranges, o, n, got, rest, want)
			}
		}
		for i, r := range ranges[0].Without(o) {
			if r.Empty() || i > 0 && ranges[0].Without(o)[i-1].To >= r.From {
				t.Fatalf("%v without %v: %v", ranges[0], o, ranges[0].Without(o))
			}
		}
	})
}
