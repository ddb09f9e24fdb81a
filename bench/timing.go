package bench

import (
	"slices"
	"time"
)

// Times are durations of single operations.
type Times []time.Duration

// Quantile is the value that a share q of the times do not exceed, 0 without times.
func (t Times) Quantile(q float64) time.Duration {
	if len(t) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(t))
	return sorted[min(len(sorted)-1, int(q*float64(len(sorted))))]
}

// Median is the middle time.
func (t Times) Median() time.Duration { return t.Quantile(0.5) }
