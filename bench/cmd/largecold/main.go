// Command largecold measures how queries slow down when the chain grows and memory does not.
//
//	go run ./bench/cmd/largecold -dir DIR [-blocks 5000,50000] [-runs 3] [-class LIST] [-json FILE]
//
// It makes a corpus of each length in DIR, or finds it there (300 MB for 5,000 blocks, 2 GB for
// 50,000), measures all query classes, and prints tables in Markdown. See docs/benchmarks.md.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"strings"

	"github.com/leani-go/leani/bench"
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

// childArgument starts this command as a process that is measured.
const childArgument = "measure"

func run(ctx context.Context, args []string) error {
	if len(args) > 0 && args[0] == childArgument {
		return bench.LargeColdChild(ctx, os.Stdout, args[1:])
	}
	flags := flag.NewFlagSet("largecold", flag.ContinueOnError)
	dir := flags.String("dir", "", "folder for the corpora (required)")
	blocks := flags.String("blocks", "5000,50000", "lengths of the chains; the first is the base")
	seed := flags.Uint64("seed", 1, "seed of the corpora")
	runs := flags.Int("runs", 3, "measurements of each chain")
	passes := flags.Int("passes", 5, "timed passes of each measurement")
	class := flags.String("class", "", "measure only these classes, separated by commas")
	jsonFile := flags.String("json", "", "write the figures to this file, too")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *dir == "" {
		return errors.New("say where the corpora go: -dir DIR")
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	o := bench.LargeColdOptions{Dir: *dir, Self: self, Child: []string{childArgument}, Seed: *seed, Runs: *runs, Passes: *passes, Log: os.Stderr}
	if *class != "" {
		o.Class = strings.Split(*class, ",")
	}
	for _, text := range strings.Split(*blocks, ",") {
		n, err := strconv.ParseUint(strings.TrimSpace(text), 10, 64)
		if err != nil {
			return fmt.Errorf("-blocks: %w", err)
		}
		o.Blocks = append(o.Blocks, n)
	}
	chains, err := bench.LargeCold(ctx, o)
	if err != nil {
		return err
	}
	if *jsonFile != "" {
		text, err := json.MarshalIndent(chains, "", " ")
		if err != nil {
			return err
		}
		if err := os.WriteFile(*jsonFile, append(text, '\n'), 0o644); err != nil {
			return err
		}
	}
	return bench.WriteLargeCold(os.Stdout, chains)
}
