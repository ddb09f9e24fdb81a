package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"time"
)

// What the process that is measured may use: the page cache, and memory in all. Its collector works
// harder from where a node with that budget tells it to.
const (
	largeColdCache     = 64 << 20
	largeColdMemory    = 512 << 20
	largeColdCollector = largeColdMemory - largeColdMemory/8
)

// LargeColdOptions configure LargeCold. Dir, Self and Blocks are required.
type LargeColdOptions struct {
	Dir    string    // holds the corpora; those that are there already are used again
	Self   string    // a program that calls LargeColdChild
	Child  []string  // arguments that make it do so; those of LargeColdChild follow
	Blocks []uint64  // lengths of the chains; all are compared with the first
	Seed   uint64    // of the corpora
	Runs   int       // measurements of each chain, in turns
	Passes int       // timed passes of each measurement; see Measure
	Class  []string  // measure these classes alone; all when empty
	Log    io.Writer // is told about progress
}

// LargeColdChain is what was measured on a chain of one length.
type LargeColdChain struct {
	Blocks     uint64
	Space      Space
	PeakMemory int64 // of the process that was measured, the most of all runs, in bytes
	Classes    []LargeColdClass
}

// LargeColdClass is what was measured on one class of queries. Times have a value for each run.
type LargeColdClass struct {
	Class              string
	Logs               float64 // a query
	Pages, Reads       float64 // see Figures
	Bytes, DeviceBytes float64 // a query: of Reads; what a fresh process read from the device
	Warm, HTTP, Cold   Times   // see Figures
	Fresh              Times   // over HTTP in a new process, the store's files in the system's cache
	Device             Times   // the same, but nothing of the store's files in memory
	DeviceFirst        Times   // of that, the first query
}

// LargeCold asks how the cost of queries grows with the chain when memory does not. It makes a corpus
// of each length, and measures each in new processes that have 64 MiB of page cache and 512 MiB in
// all: with the query set asked before, with an empty page cache, and as the first queries of a
// process, with the store's files in the system's cache and after they were dropped from it.
func LargeCold(ctx context.Context, o LargeColdOptions) ([]LargeColdChain, error) {
	var chains []LargeColdChain
	for _, blocks := range o.Blocks {
		c, err := o.prepare(ctx, blocks)
		if err != nil {
			return nil, err
		}
		chains = append(chains, c)
	}
	for run := range max(1, o.Runs) {
		for i := range chains {
			fmt.Fprintf(o.Log, "run %d: %d blocks\n", run+1, chains[i].Blocks)
			if err := o.measure(ctx, &chains[i]); err != nil {
				return nil, err
			}
		}
	}
	return chains, nil
}

func (o *LargeColdOptions) folder(blocks uint64) string {
	return filepath.Join(o.Dir, fmt.Sprintf("corpus-%d-%d", blocks, o.Seed))
}

// prepare makes a corpus, or finds it made.
func (o *LargeColdOptions) prepare(ctx context.Context, blocks uint64) (LargeColdChain, error) {
	start := time.Now()
	made, err := MakeCorpusStore(ctx, o.folder(blocks), NewCorpus(o.Seed, blocks), func(done uint64) {
		if done%5000 == 0 {
			fmt.Fprintf(o.Log, "%d of %d blocks written, %.0f blocks/s\n", done, blocks, float64(done)/time.Since(start).Seconds())
		}
	})
	if err != nil {
		return LargeColdChain{}, err
	}
	s, err := OpenStore(StoreOptions{Dir: made.Store(), ReadOnly: true})
	if err != nil {
		return LargeColdChain{}, err
	}
	c := LargeColdChain{Blocks: blocks, Space: s.Space()}
	for _, class := range Classes(LogQueries(made.Queries)) {
		if len(o.Class) == 0 || slices.Contains(o.Class, class) {
			c.Classes = append(c.Classes, LargeColdClass{Class: class})
		}
	}
	return c, s.Close()
}

// classes names the classes of a chain for a child.
func (c *LargeColdChain) classes() string {
	var names []string
	for i := range c.Classes {
		names = append(names, c.Classes[i].Class)
	}
	return strings.Join(names, ",")
}

// measure adds the figures of one run.
func (o *LargeColdOptions) measure(ctx context.Context, c *LargeColdChain) error {
	var warm warmResult
	if err := o.child(ctx, &warm, "warm", o.folder(c.Blocks), strconv.Itoa(o.Passes), c.classes()); err != nil {
		return err
	}
	c.PeakMemory = max(c.PeakMemory, warm.PeakMemory)
	for i := range c.Classes {
		k, f := &c.Classes[i], warm.Figures[i]
		k.Logs, k.Pages, k.Reads, k.Bytes = f.Logs, f.Pages, f.Reads, f.Bytes
		k.Warm, k.HTTP, k.Cold = append(k.Warm, f.Warm), append(k.HTTP, f.HTTP), append(k.Cold, f.Cold)
		if err := DropFileCache(o.folder(c.Blocks)); errors.Is(err, errors.ErrUnsupported) {
			continue
		} else if err != nil {
			return err
		}
		var device, fresh freshResult
		if err := o.child(ctx, &device, "fresh", o.folder(c.Blocks), "1", k.Class); err != nil {
			return err
		}
		k.Device, k.DeviceFirst, k.DeviceBytes = append(k.Device, device.Median), append(k.DeviceFirst, device.First), device.DeviceBytes
		if err := o.child(ctx, &fresh, "fresh", o.folder(c.Blocks), "1", k.Class); err != nil {
			return err
		}
		k.Fresh = append(k.Fresh, fresh.Median)
		c.PeakMemory = max(c.PeakMemory, device.PeakMemory, fresh.PeakMemory)
	}
	if c.PeakMemory > largeColdMemory {
		return fmt.Errorf("measure %d blocks: the process took %d MiB, it may take %d", c.Blocks, c.PeakMemory>>20, largeColdMemory>>20)
	}
	return nil
}

// child runs a part of the measurement in a new process.
func (o *LargeColdOptions) child(ctx context.Context, result any, args ...string) error {
	cmd := exec.CommandContext(ctx, o.Self, append(slices.Clip(o.Child), args...)...)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err == nil {
		err = json.Unmarshal(out, result)
	}
	if err != nil {
		return fmt.Errorf("measure in a process of its own (%v): %w", args, err)
	}
	return nil
}

type warmResult struct {
	Figures    []Figures
	PeakMemory int64
}

type freshResult struct {
	Median, First time.Duration
	DeviceBytes   float64 // a query
	PeakMemory    int64
}

// LargeColdChild is the part of LargeCold that runs in a process of its own: it measures what the
// arguments say and writes the result as JSON.
func LargeColdChild(ctx context.Context, out io.Writer, args []string) error {
	if len(args) != 4 {
		return fmt.Errorf("got %d arguments, want a measurement, a folder, a number of passes, and classes", len(args))
	}
	passes, err := strconv.Atoi(args[2])
	if err != nil {
		return err
	}
	debug.SetMemoryLimit(largeColdCollector)
	made := &CorpusStore{Folder: args[1]}
	queries, err := ReadQueries(filepath.Join(made.Folder, queriesFile))
	if err != nil {
		return err
	}
	queries = ofClasses(queries, strings.Split(args[3], ","))
	s, err := OpenStore(StoreOptions{Dir: made.Store(), CacheBytes: largeColdCache, ReadOnly: true})
	if err != nil {
		return err
	}
	var result any
	switch args[0] {
	case "warm":
		var figures []Figures
		figures, err = Measure(ctx, s, made.Network(), queries, passes)
		result = warmResult{figures, PeakMemory()}
	case "fresh":
		result, err = largeColdFresh(ctx, s, made, queries)
	default:
		err = fmt.Errorf("there is no measurement %q", args[0])
	}
	if closeErr := s.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		return err
	}
	return json.NewEncoder(out).Encode(result)
}

func largeColdFresh(ctx context.Context, s *Store, made *CorpusStore, queries []Query) (r freshResult, err error) {
	node, err := Serve(s, made.Network())
	if err != nil {
		return r, err
	}
	client := node.Client()
	defer func() {
		client.Close()
		err = errors.Join(err, node.Close())
	}()
	// The connection and the code are not what is measured.
	hello := Query{ID: "hello", Method: "eth_chainId", Expect: NoExpectation}
	if err := hello.parse(); err != nil {
		return r, err
	}
	for range 3 {
		if err := Check(ctx, client, &hello); err != nil {
			return r, err
		}
	}
	var times Times
	before := DeviceReads()
	for i := range queries {
		start := time.Now()
		if _, err := client.Ask(ctx, &queries[i]); err != nil {
			return r, err
		}
		times = append(times, time.Since(start))
	}
	r = freshResult{
		Median: times.Median(), First: times[0], PeakMemory: PeakMemory(),
		DeviceBytes: float64(DeviceReads()-before) / float64(len(queries)),
	}
	return r, nil
}
