package load

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	"github.com/leani-go/leani/bench"
)

// Report is what was found out about a node under load.
type Report struct {
	Options Options

	Classes []ClassFigures
	Heads   [2]Quantiles // from the script to a head at a client, without and with clients that misbehave

	Answers       int
	AnswerBytes   int64
	Notifications uint64
	Refusals      map[string]int // documented limits over HTTP
	Drops         map[string]int // misbehaving clients that were cut off, by how

	MemoryEmpty, MemorySockets, MemoryPeak int64 // resident: before and after all subscriptions, and at most
	Processor                              time.Duration

	times [2]time.Duration
}

// ClassFigures are times of the requests of a class.
type ClassFigures struct {
	Class   string
	Bytes   int // of an answer, on average
	Answers int
	Times   [2]Quantiles // without and with clients that misbehave
}

// Quantiles are the middle and the slow end of some times.
type Quantiles struct{ P50, P99 time.Duration }

func quantiles(t []time.Duration) Quantiles {
	return Quantiles{bench.Times(t).Median(), bench.Times(t).Quantile(0.99)}
}

func (r *Report) gather(askers []*asker, watchers []*watcher) {
	r.Refusals = make(map[string]int)
	var halves [2]map[string][]time.Duration
	for half := range halves {
		for _, a := range askers {
			halves[half] = merged(halves[half], a.result[half].times)
			r.AnswerBytes += a.result[half].bytes
			for what, n := range a.result[half].refusals {
				r.Refusals[what] += n
			}
		}
		var heads []time.Duration
		for _, w := range watchers {
			heads = append(heads, w.times[half]...)
		}
		r.Heads[half] = quantiles(heads)
	}
	for _, class := range slices.Sorted(maps.Keys(merged(halves[:]...))) {
		f := ClassFigures{Class: class}
		for half := range halves {
			f.Answers += len(halves[half][class])
			f.Times[half] = quantiles(halves[half][class])
		}
		r.Answers += f.Answers
		r.Classes = append(r.Classes, f)
	}
	for _, w := range watchers {
		r.Notifications += w.got.Load()
	}
}

// Write writes the report as tables in Markdown.
func (r *Report) Write(out io.Writer) error {
	o := &r.Options
	seconds := (r.times[0] + r.times[1]).Seconds()
	ms := func(d time.Duration) string { return fmt.Sprintf("%.1f", float64(d.Microseconds())/1000) }
	ratio := func(a, b time.Duration) string {
		if a == 0 || b == 0 {
			return "–"
		}
		return fmt.Sprintf("%.2f", float64(b)/float64(a))
	}
	var err error
	line := func(format string, args ...any) {
		if err == nil {
			_, err = fmt.Fprintf(out, format+"\n", args...)
		}
	}
	line("%d clients over HTTP, %d WebSockets with %d subscriptions each, %d blocks, one each %v, for %.0f s; history of %d blocks, budgets.memory_bytes %d MiB.\n",
		o.Askers, o.Sockets, o.Subscriptions, o.Blocks, o.Pause, seconds, o.History, o.MemoryBytes>>20)
	line("| class | answers | p50 ms | p99 ms | with misbehaving clients: p50 | p99 | ratio p50 | p99 |")
	line("|---|---|---|---|---|---|---|---|")
	row := func(name string, answers any, t [2]Quantiles) {
		line("| %s | %v | %s | %s | %s | %s | %s | %s |", name, answers, ms(t[0].P50), ms(t[0].P99), ms(t[1].P50), ms(t[1].P99),
			ratio(t[0].P50, t[1].P50), ratio(t[0].P99, t[1].P99))
	}
	for _, c := range r.Classes {
		row(c.Class, c.Answers, c.Times)
	}
	row("a block, from the script to a subscriber", "", r.Heads)
	line("\n| | |\n|---|---|")
	line("| answers, all as expected | %d, %.0f/s, %.0f MB/s |", r.Answers, float64(r.Answers)/seconds, float64(r.AnswerBytes)/1e6/seconds)
	line("| notifications, all as expected and in order | %d, %.0f/s |", r.Notifications, float64(r.Notifications)/seconds)
	for _, what := range slices.Sorted(maps.Keys(r.Refusals)) {
		line("| refused with %s | %d |", what, r.Refusals[what])
	}
	for _, what := range slices.Sorted(maps.Keys(r.Drops)) {
		line("| %s | %d |", what, r.Drops[what])
	}
	line("| resident memory: without clients, with all subscriptions, at most | %d, %d, %d MiB |", r.MemoryEmpty>>20, r.MemorySockets>>20, r.MemoryPeak>>20)
	line("| processors that the node kept busy | %.2f |", r.Processor.Seconds()/seconds)
	return err
}
