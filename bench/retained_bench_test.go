package bench

import (
	"testing"

	"github.com/leani-go/leani/chain"
)

// BenchmarkRetainedLogs asks how fast retained history is read in order by who needs the logs alone, on one
// goroutine and from a page cache that holds little of it, as a processor would.
func BenchmarkRetainedLogs(b *testing.B) {
	s, c := labStore(b, false)
	v, err := s.History.View()
	if err != nil {
		b.Fatal(err)
	}
	defer v.Close()
	var all chain.Range
	for _, r := range c.Ranges {
		if r.Len() > all.Len() {
			all = r
		}
	}
	logs, bytes := 0, 0
	cpu := ProcessorTime()
	b.ResetTimer()
	for b.Loop() {
		logs = 0
		s.History.Cache().Drop()
		err := v.Logs(b.Context(), all, &chain.LogFilter{}, func(l *chain.FoundLog) error {
			logs++
			bytes += len(l.Data)
			return nil
		})
		if err != nil {
			b.Fatal(err)
		}
	}
	spent := (ProcessorTime() - cpu).Seconds()
	b.ReportMetric(float64(all.Len())*float64(b.N)/spent, "blocks/cpu-s")
	b.ReportMetric(float64(logs)*float64(b.N)/spent, "logs/cpu-s")
}
