// Command demo shows the product at work on six real Mainnet blocks that are part of the
// repository: it writes settings, fills a store with four of them from era files, serves it on this
// machine, and asks a few questions, with the curl lines to ask them again. One block is fetched for
// an answer and not kept. The last one arrives while a WebSocket follows the head, is undone, and
// arrives again.
//
// It drives the leani binary the way a person would, and ends by itself. With -stay the node
// runs until it is interrupted.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
)

func main() {
	var d demo
	flag.StringVar(&d.binary, "leani", "bin/leani", "the leani `binary`")
	flag.StringVar(&d.era, "era", "testdata/era/mainnet-mini", "`directory` of the era files")
	flag.StringVar(&d.dir, "dir", "data/demo", "`directory` for settings and store; what a former run left there is replaced")
	flag.StringVar(&d.bind, "bind", "127.0.0.1:0", "`address` to serve on; port 0 takes a free one")
	flag.BoolVar(&d.stay, "stay", false, "leave the node running until it is interrupted")
	flag.Parse()

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := d.run(ctx)
	stop()
	if err != nil {
		fmt.Fprintf(os.Stderr, "error: %v\n", err)
		os.Exit(1)
	}
}

// demo is one run.
type demo struct {
	binary, era, dir, bind string
	typed                  string // binary as it was named
	stay                   bool
	live                   bool // blocks arrive from a pipe
}

// spans are the blocks to store. The bundled era files have two each around the Shanghai, Cancun and
// Prague activations; the second one of the first file is fetched on demand, and that of the last
// file comes live.
var spans = [][2]uint64{{17_034_869, 17_034_869}, {19_426_586, 19_426_587}, {22_431_083, 22_431_083}}

func (d *demo) run(ctx context.Context) error {
	binary, err := filepath.Abs(d.binary)
	if err != nil {
		return err
	}
	d.typed, d.binary = d.binary, binary
	if err := d.clear(); err != nil {
		return err
	}
	if err := d.leani(ctx, "init", "--era", d.era, "--data-dir", filepath.Join(d.dir, "store"), "--rpc-bind", d.bind); err != nil {
		return err
	}
	if err := d.extend(); err != nil {
		return err
	}
	for _, s := range spans {
		if err := d.leani(ctx, "history", "fill", "--from-block", fmt.Sprint(s[0]), "--to-block", fmt.Sprint(s[1])); err != nil {
			return err
		}
	}
	if err := d.leani(ctx, "history", "status"); err != nil {
		return err
	}
	n, err := d.serve(ctx)
	if err != nil {
		return err
	}
	if err := ask(ctx, n.url, stored); err != nil {
		return n.stop(err)
	}
	if err := d.follow(ctx, n); err != nil {
		return n.stop(err)
	}
	if err := ask(ctx, n.url, arrived); err != nil {
		return n.stop(err)
	}
	if !d.stay {
		fmt.Println("\nThat was the demo. `make run` leaves the node running for your own questions.")
		return n.stop(nil)
	}
	fmt.Printf("\nThe node answers at %s, and WebSockets at %s, until you press Ctrl-C.\n", n.url, n.ws)
	return n.wait(ctx)
}

// clear removes what a former run left, and makes the directory.
func (d *demo) clear() error {
	for _, name := range []string{"leani.toml", "store", events} {
		if err := os.RemoveAll(filepath.Join(d.dir, name)); err != nil {
			return err
		}
	}
	return os.MkdirAll(d.dir, 0o755)
}
