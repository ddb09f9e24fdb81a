// Command load puts a node under load, checks all that it answers, and prints figures as tables in Markdown.
//
//	go run ./bench/cmd/load [-leani PROGRAM] [-time 60s] [-askers 200] [-sockets 254] [-subscriptions 128] …
//
// Without a program it builds one. See docs/benchmarks.md.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"time"

	"github.com/leani-go/leani/bench/load"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		if !errors.Is(err, flag.ErrHelp) {
			fmt.Fprintf(os.Stderr, "error: %v\n", err)
		}
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) (err error) {
	var o load.Options
	flags := flag.NewFlagSet("load", flag.ContinueOnError)
	flags.StringVar(&o.Leani, "leani", "", "the program; built from source if empty")
	flags.Uint64Var(&o.Seed, "seed", 1, "seed of the chain and of what is asked")
	flags.Uint64Var(&o.History, "history", 1000, "blocks that the node has before")
	flags.Uint64Var(&o.MemoryBytes, "memory", 512<<20, "budgets.memory_bytes")
	flags.IntVar(&o.Askers, "askers", 200, "clients over HTTP")
	flags.IntVar(&o.Sockets, "sockets", 254, "WebSockets, besides two that misbehave")
	flags.IntVar(&o.Subscriptions, "subscriptions", 128, "subscriptions of each")
	flags.DurationVar(&o.Pause, "pause", 500*time.Millisecond, "time between two blocks")
	flags.IntVar(&o.ReorgEvery, "reorg", 15, "blocks from one reorganization to the next")
	length := flags.Duration("time", time.Minute, "how long blocks arrive")
	if err := flags.Parse(args); err != nil {
		return err
	}
	o.Blocks, o.Log = max(2, int(*length/o.Pause)), os.Stderr
	dir, err := os.MkdirTemp("", "leani-load-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	o.Dir = filepath.Join(dir, "node")
	if o.Leani == "" {
		o.Leani = filepath.Join(dir, "leani")
		if out, err := exec.CommandContext(ctx, "go", "build", "-o", o.Leani, "./cmd/leani").CombinedOutput(); err != nil {
			return fmt.Errorf("build leani: %w\n%s", err, out)
		}
	}
	report, err := load.Run(ctx, o)
	if report != nil {
		err = errors.Join(err, report.Write(os.Stdout))
	}
	return err
}
