package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/leani-go/leani/chain"
	"github.com/leani-go/leani/internal/lowpriority"
)

// Backfill says what is filled beside the queries of Beside, and where.
type Backfill string

// The backfills.
const (
	NoBackfill      Backfill = "none"
	SendersBackfill Backfill = "senders" // the senders of a store, as `leani serve` does: in the node, at low priority
	NodeBackfill    Backfill = "node"    // blocks from era files in the node, at ordinary priority
	ProcessBackfill Backfill = "process" // the same in a process of its own
)

// BesideOptions configure Beside.
type BesideOptions struct {
	Self  []string // a program that calls BesideChild with its last arguments, and its first ones
	Chain string   // folder of a test chain with queries, see OpenChain
	Store string   // data directory of a store of that chain; nobody has it open

	Light        []string      // classes of the queries that are measured
	Heavy        []string      // classes of the queries beside them
	HeavyClients int           // each asks one heavy query after the other
	Backfill     Backfill      // into another store, again and again
	Requests     int           // measured
	Pause        time.Duration // between two of them
}

// BesideResult is what Beside found.
type BesideResult struct {
	Times            Times   // of the light queries
	HeavyPerSecond   float64 // queries
	FilledPerSecond  float64 // blocks
	NodeCPUPerSecond float64 // processor seconds that the node used
}

// Beside asks how long light queries take while heavy ones and a backfill keep the machine busy. The
// node, the heavy clients and a backfill outside the node are processes of their own, so that the one
// that measures has nothing else to schedule.
func Beside(ctx context.Context, o BesideOptions) (r BesideResult, err error) {
	c, err := OpenChain(o.Chain)
	if err != nil {
		return r, err
	}
	light := ofClasses(c.Queries, o.Light)
	if len(light) == 0 {
		return r, fmt.Errorf("test chain %s has no queries of the classes %v", o.Chain, o.Light)
	}
	var running []*child
	results := make(map[string]besideWork)
	start := func(name string, args ...string) (string, error) {
		c, err := startChild(ctx, o.Self, append([]string{name}, args...))
		if err != nil {
			return "", err
		}
		running = append(running, c)
		return c.hello, nil
	}
	defer func() { // the node last, as the others need it
		for i := len(running) - 1; i >= 0; i-- {
			var w besideWork
			err = errors.Join(err, running[i].stop(&w))
			results[running[i].name] = w
		}
		r.HeavyPerSecond = results["heavy"].perSecond()
		r.FilledPerSecond = results["node"].perSecond() + results["backfill"].perSecond()
		r.NodeCPUPerSecond = results["node"].CPU.Seconds() / max(1e-9, results["node"].Elapsed.Seconds())
	}()
	url, err := start("node", o.Store, o.Chain, string(o.Backfill))
	if err != nil {
		return r, err
	}
	client := newClient(url)
	defer client.Close()
	for i := range light {
		if err := Check(ctx, client, &light[i]); err != nil {
			return r, err
		}
	}
	if o.HeavyClients > 0 {
		if _, err := start("heavy", url, o.Chain, strings.Join(o.Heavy, ","), strconv.Itoa(o.HeavyClients)); err != nil {
			return r, err
		}
	}
	if o.Backfill == ProcessBackfill {
		if _, err := start("backfill", o.Chain); err != nil {
			return r, err
		}
	}
	for i := range o.Requests {
		begin := time.Now()
		if _, err := client.Ask(ctx, &light[i%len(light)]); err != nil {
			return r, err
		}
		r.Times = append(r.Times, time.Since(begin))
		time.Sleep(o.Pause)
	}
	return r, nil
}

func ofClasses(list []Query, classes []string) (out []Query) {
	for _, class := range classes {
		out = append(out, OfClass(list, class)...)
	}
	return out
}

// besideWork is what a child has done when it ends.
type besideWork struct {
	Done    uint64 // queries or blocks
	Elapsed time.Duration
	CPU     time.Duration
}

func (w besideWork) perSecond() float64 {
	if w.Elapsed == 0 {
		return 0
	}
	return float64(w.Done) / w.Elapsed.Seconds()
}

// BesideChild is a part of Beside that runs in a process of its own, until its input ends. It says on
// its output that it is ready, and at the end what it has done.
func BesideChild(ctx context.Context, in io.Reader, out io.Writer, args []string) error {
	if len(args) == 0 {
		return errors.New("got no arguments, want a part of the measurement")
	}
	roles := map[string]struct {
		arguments int
		run       func(ctx context.Context, ready func(string), args []string) (uint64, error)
	}{
		"node": {3, besideNode}, "heavy": {4, besideHeavy}, "backfill": {1, besideBackfill},
	}
	role, ok := roles[args[0]]
	if !ok || len(args)-1 != role.arguments {
		return fmt.Errorf("there is no part %q of the measurement with %d arguments", args[0], len(args)-1)
	}
	return runChild(ctx, in, out, func(ctx context.Context, ready func(string)) (any, error) {
		start, cpu := time.Now(), ProcessorTime()
		done, err := role.run(ctx, func(hello string) {
			start, cpu = time.Now(), ProcessorTime()
			ready(hello)
		}, args[1:])
		return besideWork{done, time.Since(start), ProcessorTime() - cpu}, err
	})
}

// besideNode serves a store of a test chain. A backfill in the node is its work, too.
func besideNode(ctx context.Context, ready func(string), args []string) (filled uint64, err error) {
	s, err := OpenStore(StoreOptions{Dir: args[0], ReadOnly: true, CacheBytes: 128 << 20})
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	c, err := OpenChain(args[1])
	if err != nil {
		return 0, err
	}
	lanes := runtime.GOMAXPROCS(0)
	lowpriority.MakeRoom(lanes + 1) // as the product does
	node, err := serveLanes(s, c.Network, lanes)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, node.Close()) }()
	ready(node.url)
	switch Backfill(args[2]) {
	case NodeBackfill:
		return again(ctx, func() (uint64, error) { return fillOnce(ctx, c) })
	case SendersBackfill:
		err = <-lowpriority.Go(func() error {
			var err error
			filled, err = again(ctx, func() (uint64, error) { return fillSendersOnce(ctx, args[0]) })
			return err
		})
		return filled, err
	default:
		<-ctx.Done()
		return 0, nil
	}
}

// besideHeavy asks heavy queries with several clients.
func besideHeavy(ctx context.Context, ready func(string), args []string) (uint64, error) {
	c, err := OpenChain(args[1])
	if err != nil {
		return 0, err
	}
	heavy := ofClasses(c.Queries, strings.Split(args[2], ","))
	clients, err := strconv.Atoi(args[3])
	if err != nil {
		return 0, err
	}
	if len(heavy) == 0 {
		return 0, fmt.Errorf("test chain %s has no queries of the classes %s", args[1], args[2])
	}
	ready("")
	var done atomic.Uint64
	var group sync.WaitGroup
	errs := make([]error, clients)
	for k := range clients {
		group.Go(func() {
			client := newClient(args[0])
			defer client.Close()
			for i := k; ; i++ {
				_, err := client.Ask(ctx, &heavy[i%len(heavy)])
				if ctx.Err() != nil {
					return
				}
				if err != nil {
					errs[k] = err
					return
				}
				done.Add(1)
			}
		})
	}
	group.Wait()
	return done.Load(), errors.Join(errs...)
}

// besideBackfill fills stores with a test chain.
func besideBackfill(ctx context.Context, ready func(string), args []string) (uint64, error) {
	c, err := OpenChain(args[0])
	if err != nil {
		return 0, err
	}
	ready("")
	return again(ctx, func() (uint64, error) { return fillOnce(ctx, c) })
}

// again calls f until the context ends or f fails, and adds up the blocks that it filled.
func again(ctx context.Context, f func() (uint64, error)) (blocks uint64, err error) {
	for ctx.Err() == nil && err == nil {
		var more uint64
		more, err = f()
		blocks += more
	}
	if ctx.Err() != nil {
		err = nil
	}
	return blocks, err
}

// fillOnce fills a new store with a test chain.
func fillOnce(ctx context.Context, c *Chain) (blocks uint64, err error) {
	dir, err := os.MkdirTemp("", "leani-bench-")
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	s, err := OpenStore(StoreOptions{Dir: dir, ChainID: c.Network.ChainID()})
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	r, err := Fill(ctx, s, c, FillOptions{MemoryBytes: 64 << 20})
	return r.Blocks, err
}

// fillSendersOnce fills the senders of a copy of a store.
func fillSendersOnce(ctx context.Context, store string) (blocks uint64, err error) {
	dir, err := os.MkdirTemp("", "leani-bench-")
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(filepath.Dir(dir))) }()
	dir = filepath.Join(dir, storeFolder)
	if err := os.CopyFS(dir, os.DirFS(store)); err != nil {
		return 0, err
	}
	s, err := OpenStore(StoreOptions{Dir: dir})
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	err = s.History.FillSenders(ctx, func(r chain.Range) { blocks += r.Len() })
	return blocks, err
}
