package fuzz

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/leani-go/leani/chain"
	"github.com/leani-go/leani/engine"
	"github.com/leani-go/leani/engine/history"
	"github.com/leani-go/leani/ingest"
	"github.com/leani-go/leani/serve/rpc"
)

// bundled is the folder of the bundled era files: six blocks in three files.
const bundled = "../testdata/era/mainnet-mini"

const blocksBundled = 6

// eraFiles are the names of the bundled files, in block order.
func eraFiles(tb testing.TB) []string {
	tb.Helper()
	paths, err := filepath.Glob(filepath.Join(bundled, "*.ere"))
	if err != nil || len(paths) != 3 {
		tb.Fatalf("bundled era files: %v, %v", paths, err)
	}
	return paths
}

// node is a store in memory.
type node struct {
	engine  *engine.Engine
	history *history.Store
}

func newNode(tb testing.TB, o history.Options) *node {
	tb.Helper()
	e, err := engine.Open(engine.Options{Dir: "data", FS: vfs.NewMem(), ChainID: chain.Mainnet().ChainID()})
	if err != nil {
		tb.Fatal(err)
	}
	return &node{engine: e, history: history.New(e, o)}
}

func (n *node) close(tb testing.TB) {
	if err := n.engine.Close(); err != nil {
		tb.Error(err)
	}
}

// fill stores what the era files of a folder hold, as far as they are good.
func (n *node) fill(ctx context.Context, folder string) error {
	source, err := ingest.OpenEraFolder(folder, chain.Mainnet().Name())
	if err != nil {
		return err
	}
	var ranges []chain.Range
	for _, e := range source.Catalog().Entries() {
		ranges = append(ranges, e.Range)
	}
	if len(ranges) == 0 {
		return fmt.Errorf("%s: no era file", folder)
	}
	_, err = ingest.Fill(ctx, ingest.Options{
		Source: source, Ranges: ranges, Workers: 1,
		Sink: func(ctx context.Context, committed func(chain.Range)) ingest.Sink {
			return n.history.NewWriter(ctx, committed)
		},
	})
	return err
}

// bundledNode holds the bundled blocks, which are all good.
func bundledNode(tb testing.TB, o history.Options) *node {
	tb.Helper()
	n := newNode(tb, o)
	if err := n.fill(tb.Context(), bundled); err != nil {
		tb.Fatal(err)
	}
	return n
}

// served is the history as the server sees it.
type served struct{ *history.Store }

// View implements rpc.Store.
func (s served) View() (rpc.View, error) {
	v, err := s.Store.View()
	if err != nil {
		return nil, err
	}
	return v, nil
}

// serve answers requests from the store until the test is over.
func (n *node) serve(tb testing.TB, limits rpc.Limits) *client {
	tb.Helper()
	server, err := rpc.New(rpc.Options{Store: served{n.history}, Limits: limits, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		tb.Fatal(err)
	}
	return newClient(tb, server)
}

// copyFile copies a file and gives its content.
func copyFile(tb testing.TB, from, to string) []byte {
	tb.Helper()
	data, err := os.ReadFile(from)
	if err != nil {
		tb.Fatal(err)
	}
	if err := os.WriteFile(to, data, 0o600); err != nil {
		tb.Fatal(err)
	}
	return data
}
