package load

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/leani-go/leani/bench"
	"github.com/leani-go/leani/chain"
)

// Options configure Run. Leani and Dir are required; zero fields have defaults: the full load.
type Options struct {
	Leani string // the program
	Dir   string // an empty folder that is left as it is in the end; its settings are leani.toml

	Seed    uint64
	History uint64 // blocks that the node is filled with; default 1000
	// MemoryBytes is budgets.memory_bytes; default 512 MiB.
	MemoryBytes uint64
	// Askers is the number of clients over HTTP, Sockets that of WebSockets, Subscriptions those of each; 200, 254 and 128.
	Askers, Sockets, Subscriptions int
	// Blocks arrive, one each Pause; after every ReorgEvery of them a branch replaces the newest ones. 120, 500 ms, 15.
	Blocks     int
	Pause      time.Duration
	ReorgEvery int

	Log io.Writer // says what is going on; nil says nothing
}

// memoryOverhead is what a node may take beyond budgets.memory_bytes; docs/configuration.md promises it.
const memoryOverhead = 128 << 20

// stalledAskers is how many clients over HTTP stop reading.
const stalledAskers = 4

func (o *Options) fill() {
	o.History = cmp.Or(o.History, 1000)
	o.MemoryBytes = cmp.Or(o.MemoryBytes, 512<<20)
	o.Askers, o.Sockets, o.Subscriptions = cmp.Or(o.Askers, 200), cmp.Or(o.Sockets, 254), cmp.Or(o.Subscriptions, 128)
	o.Blocks, o.Pause, o.ReorgEvery = cmp.Or(o.Blocks, 120), cmp.Or(o.Pause, 500*time.Millisecond), cmp.Or(o.ReorgEvery, 15)
	if o.Log == nil {
		o.Log = io.Discard
	}
}

// run is a run in progress.
type run struct {
	options  Options
	scenario *scenario
	heads    stream // that every socket gets
	node     *node
	cancel   context.CancelFunc

	half  atomic.Int32 // 0, and 1 once clients misbehave
	state atomic.Int64 // events that were told
	times []atomic.Int64

	mu       sync.Mutex
	failures []error
	drops    map[string]int
}

// maximumFailures is how many failures of a run are reported.
const maximumFailures = 5

// fail notes a failure and ends the run.
func (r *run) fail(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.failures) < maximumFailures {
		r.failures = append(r.failures, err)
	}
	r.cancel()
}

func (r *run) drop(what string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.drops[what]++
}

// told is the number of events that were told to the node, or are being told.
func (r *run) told() int { return int(r.state.Load()) }

// toldAt is when the block of a head was told.
func (r *run) toldAt(head uint64) time.Time { return time.Unix(0, r.times[head].Load()) }

// Run makes a run. The error says what was wrong, and the report what was found out until then.
func Run(ctx context.Context, o Options) (*Report, error) {
	o.fill()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	r := &run{options: o, cancel: cancel, drops: make(map[string]int), node: &node{program: o.Leani, dir: o.Dir}}
	if err := r.prepare(ctx); err != nil {
		return nil, fmt.Errorf("prepare load: %w", err)
	}
	report, err := r.serve(ctx)
	if stopErr := r.node.stop(); stopErr != nil {
		err = errors.Join(err, stopErr)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return report, errors.Join(append(slices.Clip(r.failures), err)...)
}

// prepare makes the chain, fills the node, and computes what is to come.
func (r *run) prepare(ctx context.Context) error {
	o := &r.options
	s := newScenario(o.Seed, o.History)
	r.scenario = s
	if err := errors.Join(os.MkdirAll(o.Dir, 0o755), r.node.settings(ctx, o)); err != nil {
		return err
	}
	r.say("make %d blocks", o.History)
	if err := s.makeHistory(ctx, r.node.era()); err != nil {
		return err
	}
	if err := r.node.run(ctx, "history", "fill", "--from-block", "0", "--to-block", fmt.Sprint(o.History-1)); err != nil {
		return err
	}
	r.say("compute answers")
	random := rand.New(rand.NewPCG(o.Seed, 0x6c6f6164))
	if err := s.makeEvents(o.Blocks, o.ReorgEvery); err != nil {
		return err
	}
	if err := s.makeFilters(random); err != nil {
		return err
	}
	if err := s.expectQueries(random); err != nil {
		return err
	}
	tips := []chain.LogFilter{{}}
	for i := range 7 {
		tips = append(tips, s.filters[i].filter)
	}
	if err := s.expectTips(tips[1:]); err != nil {
		return err
	}
	s.history = nil
	r.heads = s.expectStreams()
	r.times = make([]atomic.Int64, s.heads)
	return nil
}

func (r *run) say(format string, args ...any) {
	_, _ = fmt.Fprintf(r.options.Log, format+"\n", args...)
}

// serve serves, and lets the clients at it.
func (r *run) serve(ctx context.Context) (*Report, error) {
	report := &Report{Options: r.options, Drops: r.drops}
	if err := r.node.serve(ctx); err != nil {
		return report, err
	}
	report.MemoryEmpty = bench.MemoryOf(r.node.process.PID())
	watchers, err := r.connect(ctx)
	if err != nil {
		return report, err
	}
	defer func() {
		for _, w := range watchers {
			_ = w.conn.Close()
		}
	}()
	report.MemorySockets = bench.MemoryOf(r.node.process.PID())

	before, begin := r.node.usage(), time.Now()
	var watching, asking, misfits sync.WaitGroup
	for _, w := range watchers {
		watching.Go(func() {
			if err := w.watch(); err != nil && ctx.Err() == nil {
				r.fail(err)
			}
		})
	}
	stop := context.AfterFunc(ctx, func() { // a failure ends what waits for the node
		for _, w := range watchers {
			_ = w.conn.Close()
		}
	})
	defer stop()
	askContext, endAsking := context.WithCancel(ctx)
	defer endAsking()
	askers := make([]*asker, r.options.Askers)
	for i := range askers {
		askers[i] = newAsker(r, uint64(i))
		asking.Go(func() { askers[i].ask(askContext) })
	}
	halfway := func() {
		report.times[0] = time.Since(begin)
		r.half.Store(1)
		r.say("%d blocks are told; some clients misbehave from now on", r.told())
		misfits.Go(func() { r.stalledSocket(askContext) })
		misfits.Go(func() { r.slowSocket(askContext) })
		heaviest := slices.MaxFunc(r.scenario.queries, func(a, b expected) int { return a.bytes - b.bytes })
		for range stalledAskers {
			misfits.Go(func() { r.stalledAsker(askContext, &heaviest) })
		}
	}
	tellErr := r.tell(ctx, halfway)
	report.times[1] = time.Since(begin) - report.times[0]
	endAsking()
	asking.Wait()
	misfits.Wait()
	after := r.node.usage()
	waited := make(chan struct{})
	go func() { watching.Wait(); close(waited) }()
	select {
	case <-waited:
	case <-time.After(patience):
		r.fail(errors.New("notifications are missing"))
		<-waited // their connections are closed
	}
	report.MemoryPeak, report.Processor = after.peak, after.processor-before.processor
	report.gather(askers, watchers)
	if limit := int64(r.options.MemoryBytes + memoryOverhead); report.MemoryPeak > limit {
		tellErr = errors.Join(tellErr, fmt.Errorf("the node took %d MiB, at most %d MiB are allowed", report.MemoryPeak>>20, limit>>20))
	}
	return report, tellErr
}

// connecting is how many WebSockets are opened at a time.
const connecting = 8

// connect opens all WebSockets.
func (r *run) connect(ctx context.Context) ([]*watcher, error) {
	r.say("open %d WebSockets with %d subscriptions each", r.options.Sockets, r.options.Subscriptions)
	list := make([]*watcher, r.options.Sockets)
	errs := make([]error, len(list))
	var next atomic.Int64
	var group sync.WaitGroup
	for range connecting {
		group.Go(func() {
			for i := next.Add(1) - 1; i < int64(len(list)); i = next.Add(1) - 1 {
				list[i], errs[i] = newWatcher(ctx, r, int(i))
			}
		})
	}
	group.Wait()
	if err := errors.Join(errs...); err != nil {
		for _, w := range list {
			if w != nil {
				_ = w.conn.Close()
			}
		}
		return nil, err
	}
	return list, nil
}

// tell writes the script at its pace.
func (r *run) tell(ctx context.Context, halfway func()) error {
	ticker := time.NewTicker(r.options.Pause)
	defer ticker.Stop()
	head := 0
	for i, e := range r.scenario.events {
		if i == len(r.scenario.events)/2 {
			halfway()
		}
		now := time.Now().UnixNano()
		for range e.applied {
			r.times[head].Store(now)
			head++
		}
		r.state.Add(1)
		if _, err := r.node.script.Write(e.lines); err != nil {
			return fmt.Errorf("tell event %d: %w", i, err)
		}
		e.lines = nil
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return nil // what is wrong was noted
		}
	}
	return nil
}

// merged joins what clients have in both halves.
func merged[T any](lists ...map[string][]T) map[string][]T {
	all := make(map[string][]T)
	for _, l := range lists {
		for k := range maps.Keys(l) {
			all[k] = append(all[k], l[k]...)
		}
	}
	return all
}
