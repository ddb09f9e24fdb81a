package progress

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// clock is time that a test moves.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func newClock() *clock { return &clock{now: time.Unix(1_700_000_000, 0)} }

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// drive reports 100 blocks and 2 MiB a second for the given time.
func drive(r *Reporter, c *clock, seconds int) {
	for i := 1; i <= seconds; i++ {
		c.advance(time.Second)
		r.Report(Count{Blocks: uint64(i) * 100, Bytes: uint64(i) * 2 << 20})
	}
}

func TestLines(t *testing.T) {
	var out bytes.Buffer
	c := newClock()
	r := New(Options{Out: &out, Style: Lines, Label: "history fill", Total: 3000, Now: c.Now})
	drive(r, c, 12)
	got := r.Finish().String()
	want := "history fill 500/3,000 blocks, 16.7%, 100 blocks/s, 2.0 MiB/s, ETA 25s\n" +
		"history fill 1,000/3,000 blocks, 33.3%, 100 blocks/s, 2.0 MiB/s, ETA 20s\n"
	if out.String() != want {
		t.Errorf("got\n%swant\n%s", out.String(), want)
	}
	if want := "1,200 blocks, 24 MiB in 12s (100 blocks/s, 2.0 MiB/s)"; got != want {
		t.Errorf("summary: got %s, want %s", got, want)
	}
	r.Report(Count{Blocks: 5000})
	if again := r.Finish().String(); again != got {
		t.Errorf("second summary: got %s, want %s", again, got)
	}
}

func TestJSON(t *testing.T) {
	var out bytes.Buffer
	c := newClock()
	r := New(Options{Out: &out, Style: JSON, Total: 1000, Every: 2 * time.Second, Now: c.Now})
	drive(r, c, 5)
	r.Finish()
	r.Finish()
	var events []string
	for line := range strings.Lines(out.String()) {
		var v struct {
			Event           string
			Blocks, Bytes   uint64
			TotalBlocks     uint64
			BlocksPerSecond float64
			ETASeconds      *float64
		}
		if err := json.Unmarshal([]byte(line), &v); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		if v.BlocksPerSecond != 100 || v.TotalBlocks != 1000 || (v.ETASeconds != nil) != (v.Event == "progress") {
			t.Errorf("got %s", line)
		}
		events = append(events, v.Event)
	}
	if got := strings.Join(events, " "); got != "progress progress done" {
		t.Errorf("got %s\n%s", got, out.String())
	}
}

// The last line tells how a run ended, and there is one.
func TestEnds(t *testing.T) {
	for want, end := range map[string]func(*Reporter){
		`{"event":"done","blocks":100,`:                             func(r *Reporter) { r.Finish() },
		`{"event":"interrupted","blocks":100,`:                      func(r *Reporter) { r.Interrupt() },
		`{"event":"error","reason":"read \"x\": bad","blocks":100,`: func(r *Reporter) { r.Fail(errors.New(`read "x": bad`)) },
	} {
		var out bytes.Buffer
		c := newClock()
		r := New(Options{Out: &out, Style: JSON, Total: 1000, Now: c.Now})
		drive(r, c, 1)
		end(r)
		r.Finish()
		if got := out.String(); !strings.HasPrefix(got, want) || strings.Count(got, "\n") != 1 {
			t.Errorf("got %swant %s", got, want)
		}
	}
}

// A run that counts no bytes shows none, and one block is one.
func TestTextLeavesOutWhatIsUnknown(t *testing.T) {
	for want, s := range map[string]state{
		"3 blocks, 2.0 blocks/s":                  {Count: Count{Blocks: 3}, BlocksPerSecond: 2},
		"0/1 block, 0.0%, 0.0 blocks/s":           {TotalBlock: 1},
		"1/3 blocks, 33.3%, 2.0 blocks/s, ETA 1s": {Count: Count{Blocks: 1}, TotalBlock: 3, BlocksPerSecond: 2},
	} {
		if got := s.text(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// The rate follows what happens now, not the average of the whole run, and falls while nothing
// happens.
func TestRateIsRecent(t *testing.T) {
	c := newClock()
	r := New(Options{Now: c.Now, Total: 1_000_000})
	drive(r, c, 60)
	for range 60 {
		c.advance(time.Second)
		r.Report(Count{Blocks: 6000, Bytes: 1})
	}
	r.mu.Lock()
	s := r.stateLocked(c.Now())
	r.mu.Unlock()
	if s.BlocksPerSecond != 0 {
		t.Errorf("got %v blocks/s after a minute of standstill", s.BlocksPerSecond)
	}
	if strings.Contains(s.text(), "ETA") {
		t.Errorf("got %s", s.text())
	}
	r.Finish()
}

// Extreme totals and rates give text, never a panic or a negative time.
func TestExtremes(t *testing.T) {
	for _, s := range []state{
		{},
		{TotalBlock: 1 << 63, BlocksPerSecond: 1e-9},
		{Count: Count{Blocks: 10}, TotalBlock: 5, BlocksPerSecond: 1},
		{TotalBlock: 1 << 40, BlocksPerSecond: 1},
	} {
		if got := s.text(); strings.Contains(got, "ETA -1") || strings.Contains(got, "NaN") {
			t.Errorf("%+v: got %s", s, got)
		}
	}
}

// The bar ends with Finish, whether the run is complete or not, and leaves no goroutine.
func TestBar(t *testing.T) {
	for _, seconds := range []int{0, 3, 10} {
		var out bytes.Buffer
		c := newClock()
		r := New(Options{Out: &out, Style: Bar, Label: "history fill", Total: 1000, Now: c.Now})
		drive(r, c, seconds)
		if got := r.Finish().Blocks; got != uint64(seconds)*100 {
			t.Errorf("got %d blocks", got)
		}
	}
}

func TestConcurrentReports(t *testing.T) {
	c := newClock()
	r := New(Options{Out: &bytes.Buffer{}, Style: Lines, Every: time.Nanosecond, Now: c.Now})
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for i := range 100 {
				c.advance(time.Millisecond)
				r.Report(Count{Blocks: uint64(i)})
			}
		})
	}
	wg.Wait()
	r.Finish()
}
