// Package progress tells an operator or a script how far a long run over blocks has come:
// blocks per second, MiB per second and the time left.
//
// A Reporter draws a bar on a terminal, prints a plain line every few seconds elsewhere, or
// prints JSON lines for scripts. It only formats what it is told: it does not count, does not
// know where blocks come from, and never slows the work down (a report between two lines costs
// one lock and no I/O). Except for the bar, which redraws itself until the end, it has no
// goroutine; time comes from Options.Now alone.
//
// A Reporter is safe for concurrent use.
package progress

import (
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"
)

// Style is how progress is shown.
type Style int

// The styles.
const (
	Silent Style = iota // nothing is shown
	Bar                 // a bar that redraws itself, for terminals
	Lines               // a line of text now and then
	JSON                // a JSON object a line now and then, and one at the end
)

// DefaultEvery is the pause between two lines.
const DefaultEvery = 5 * time.Second

// barWidth is the width of the bar itself in characters; the numbers need about 70 more.
const barWidth = 30

// Count is what a run has done since it started.
type Count struct {
	Blocks uint64 `json:"blocks"`
	Bytes  uint64 `json:"bytes"` // read from the source
}

// Options configure New. The zero value shows nothing.
type Options struct {
	// Out is where progress goes; required unless Style is Silent.
	Out io.Writer
	// Style is how it is shown.
	Style Style
	// Label starts each line, such as "history fill".
	Label string
	// Total is the number of blocks of the run, 0 when it is not known.
	Total uint64
	// Every is the least time between two lines; default DefaultEvery.
	Every time.Duration
	// Now is the clock; default time.Now.
	Now func() time.Time
}

// Reporter shows the progress of one run.
type Reporter struct {
	options Options
	started time.Time

	mu       sync.Mutex
	meter    meter
	count    Count
	printed  time.Time // when the last line was printed
	finished bool
	elapsed  time.Duration // until it was finished

	container *mpb.Progress // of Style Bar
	bar       *mpb.Bar
}

// New starts the clock of a run. The caller ends it with Finish, Interrupt or Fail.
func New(o Options) *Reporter {
	if o.Every <= 0 {
		o.Every = DefaultEvery
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	r := &Reporter{options: o, started: o.Now()}
	r.printed = r.started
	r.meter.add(r.started, Count{})
	if o.Style == Bar {
		r.container = mpb.New(mpb.WithOutput(o.Out), mpb.WithWidth(barWidth))
		r.bar = r.container.AddBar(int64(o.Total),
			mpb.PrependDecorators(decor.Name(o.Label+" ")),
			mpb.AppendDecorators(decor.Any(func(decor.Statistics) string { return " " + r.text() })),
		)
	}
	return r
}

// Report takes the count so far. Counts must not go back.
func (r *Reporter) Report(c Count) {
	if r.bar != nil {
		// Not under the lock: the bar calls text, which takes it.
		r.bar.SetCurrent(int64(c.Blocks))
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.finished {
		return
	}
	now := r.options.Now()
	r.count = c
	r.meter.add(now, c)
	if r.bar != nil || now.Sub(r.printed) < r.options.Every {
		return
	}
	r.printed = now
	switch s := r.stateLocked(now); r.options.Style {
	case Lines:
		fmt.Fprintf(r.options.Out, "%s %s\n", r.options.Label, s.text())
	case JSON:
		s.writeJSON(r.options.Out, "progress", "")
	}
}

// Finish ends the display of a run that did what it was to do, and gives its totals. JSON style prints
// them as last line, with the event "done". Of Finish, Interrupt and Fail the first call counts; later
// ones only repeat the totals.
func (r *Reporter) Finish() Summary { return r.end("done", "") }

// Interrupt is Finish for a run that was told to stop; the event is "interrupted".
func (r *Reporter) Interrupt() Summary { return r.end("interrupted", "") }

// Fail is Finish for a run that failed; the event is "error", with the text of err as reason.
func (r *Reporter) Fail(err error) Summary { return r.end("error", err.Error()) }

func (r *Reporter) end(event, reason string) Summary {
	r.mu.Lock()
	first := !r.finished
	r.finished = true
	if first {
		r.elapsed = r.options.Now().Sub(r.started)
	}
	s := Summary{Count: r.count, Elapsed: r.elapsed}
	r.mu.Unlock()

	if !first {
		return s
	}
	switch {
	case r.bar != nil:
		r.bar.Abort(false) // no effect on a bar that is full
		r.container.Wait()
	case r.options.Style == JSON:
		s.state(r.options.Total).writeJSON(r.options.Out, event, reason)
	}
	return s
}

// text is the current state for the bar.
func (r *Reporter) text() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.stateLocked(r.options.Now()).text()
}

func (r *Reporter) stateLocked(now time.Time) state {
	s := state{
		Count:      r.count,
		TotalBlock: r.options.Total,
		Elapsed:    now.Sub(r.started),
	}
	s.BlocksPerSecond, s.BytesPerSecond = r.meter.rates(now)
	return s
}

// Summary is the outcome of a run.
type Summary struct {
	Count
	Elapsed time.Duration
}

// String gives totals and average rates, such as
// "801 blocks, 136 MiB in 2.1s (381 blocks/s, 64.8 MiB/s)".
func (s Summary) String() string {
	st := s.state(0)
	return fmt.Sprintf("%s, %s in %s (%s blocks/s, %.1f MiB/s)", blocks(s.Blocks),
		humanize.IBytes(s.Bytes), s.Elapsed.Round(10*time.Millisecond), rate(st.BlocksPerSecond), st.BytesPerSecond/(1<<20))
}

func (s Summary) state(total uint64) state {
	out := state{Count: s.Count, TotalBlock: total, Elapsed: s.Elapsed}
	if seconds := s.Elapsed.Seconds(); seconds > 0 {
		out.BlocksPerSecond = float64(s.Blocks) / seconds
		out.BytesPerSecond = float64(s.Bytes) / seconds
	}
	return out
}
