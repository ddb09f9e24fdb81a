package progress

import "time"

const (
	// meterSamples is how many points of time a meter remembers.
	meterSamples = 16
	// meterStep is the least time between two of them, so that the window of a meter is at
	// least meterSamples*meterStep long: long enough to smooth the unequal size of segments.
	meterStep = time.Second
)

// meter measures recent rates over a sliding window.
type meter struct {
	samples [meterSamples]sample // a ring
	next    int                  // where the next sample goes
	n       int                  // samples in use
	latest  sample
}

type sample struct {
	at    time.Time
	count Count
}

// add takes a count. Counts within one step of the last sample only update the newest end.
func (m *meter) add(at time.Time, c Count) {
	m.latest = sample{at, c}
	if m.n > 0 {
		newest := m.samples[(m.next+meterSamples-1)%meterSamples]
		if at.Sub(newest.at) < meterStep {
			return
		}
	}
	m.samples[m.next] = m.latest
	m.next = (m.next + 1) % meterSamples
	m.n = min(m.n+1, meterSamples)
}

// rates are blocks and bytes per second between the oldest sample and now. Time without any
// report counts: a run that stands still approaches zero.
func (m *meter) rates(now time.Time) (blocks, bytes float64) {
	oldest := m.samples[(m.next+meterSamples-m.n)%meterSamples]
	seconds := now.Sub(oldest.at).Seconds()
	if seconds <= 0 {
		return 0, 0
	}
	return float64(m.latest.count.Blocks-oldest.count.Blocks) / seconds, float64(m.latest.count.Bytes-oldest.count.Bytes) / seconds
}
