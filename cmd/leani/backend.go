package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"sync/atomic"
	"syscall"

	"github.com/leani-go/leani/chain"
	"github.com/leani-go/leani/codec"
	"github.com/leani-go/leani/config"
	"github.com/leani-go/leani/engine"
	"github.com/leani-go/leani/engine/history"
	"github.com/leani-go/leani/ingest/live"
	"github.com/leani-go/leani/internal/corrupt"
	"github.com/leani-go/leani/internal/regular"
	"github.com/leani-go/leani/keys"
)

// stored is the backend over package engine.
type stored struct{}

func newBackend() backend { return stored{} }

// storedNode is an open data directory.
type storedNode struct {
	settings *config.Config
	network  *chain.Network
	log      *slog.Logger
	memory   memoryPlan
	engine   *engine.Engine
	history  *history.Store
	lane     *atomic.Pointer[live.Lane] // of serve, once it follows a source
	failures []sourceFailure            // of the last fill
	kept     uint64                     // frames of partial material, by the last fill
	// told is set once a command has reported the failure of the store, which closing it repeats.
	told bool
}

// open opens the data directory and what hangs on it.
func (stored) open(_ context.Context, o nodeOptions) (node, error) {
	network, err := openNetwork(o.settings.Chain)
	if err != nil {
		return nil, err
	}
	if o.existing {
		if _, err := os.Stat(filepath.Join(o.settings.DataDir, "db")); errors.Is(err, fs.ErrNotExist) {
			return nil, explainOpen(o.settings.DataDir, fmt.Errorf("open store %s: %w", o.settings.DataDir, engine.ErrNoStore))
		}
	}
	n := &storedNode{settings: o.settings, network: network, log: o.log, memory: planMemory(o.settings.Budgets.MemoryBytes), lane: new(atomic.Pointer[live.Lane])}
	n.memory.apply()
	n.engine, err = engine.Open(engine.Options{
		Dir: o.settings.DataDir, ChainID: o.settings.Chain.ChainID, ReadOnly: o.readOnly,
		Logger: o.log.With("component", "engine"), CacheBytes: n.memory.database,
		MaximumBytes:          int64(min(uint64(o.settings.Budgets.Store.MaximumPhysicalBytes), math.MaxInt64)),
		MaximumTemporaryBytes: writingBytes(o.settings),
	})
	if err != nil {
		return nil, explainOpen(o.settings.DataDir, err)
	}
	for _, q := range n.engine.Recovery().Quarantined {
		if o.readOnly {
			o.log.Warn("no row names a file; it will be moved to quarantine by the next command that writes", "file", q)
			continue
		}
		o.log.Warn("file that no row names was moved to quarantine", "file", q)
	}
	raw := o.settings.RawHistory
	compression, err := codec.ParseCompression(string(raw.Compression))
	if err != nil {
		return nil, errors.Join(err, n.engine.Close())
	}
	recent := n.memory.pageCache / restShare
	if o.settings.Sources.Live.Kind != config.LiveDisabled {
		recent = n.memory.pageCache / recentShare
	}
	n.history = history.New(n.engine, history.Options{
		CacheBytes: n.memory.pageCache - recent, HotBytes: recent,
		Recent: recentOptions(o.settings), BuilderMemory: n.memory.builder, Compression: compression, Logger: o.log.With("component", "history"),
		SegmentBytes: int64(min(raw.MaximumSegmentPhysicalBytes, raw.MaximumSegmentLogicalBytes)),
		MaximumBytes: int64(raw.MaximumPhysicalBytes), MaximumLogicalBytes: int64(raw.MaximumLogicalBytes),
	})
	return n, nil
}

// explainOpen adds what to do about it to an error of opening a data directory.
func explainOpen(dir string, err error) error {
	var failure *engine.FailedError
	switch {
	case errors.As(err, &failure): // the first thing that could not be written
		return fmt.Errorf("data_dir %s cannot be written: %w", dir, failure.Cause)
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("%w: give this user the data directory, or use another data_dir", err)
	case corrupt.Is(err):
		return fmt.Errorf("%w: the store is damaged; see docs/troubleshooting.md", err)
	case errors.Is(err, engine.ErrLocked):
		return fmt.Errorf("%w: stop the other process, or use another data_dir", err)
	case errors.Is(err, engine.ErrNoStore):
		return fmt.Errorf("%w: run `leani history fill` first, or check data_dir", err)
	}
	var other *engine.ChainError
	if errors.As(err, &other) {
		return fmt.Errorf("%w: set chain.chain_id to %d, or use another data_dir", err, other.Store)
	}
	return err
}

// openNetwork finds the fork schedule of the chain.
func openNetwork(c config.Chain) (*chain.Network, error) {
	main := chain.Mainnet()
	switch {
	case c.Genesis != "":
		f, err := regular.Open(c.Genesis)
		if err != nil {
			return nil, fmt.Errorf("open chain.genesis: %w", err)
		}
		defer func() { _ = f.Close() }()
		n, err := chain.LoadGenesis(c.Name, f)
		if err != nil {
			return nil, fmt.Errorf("read chain.genesis %s: %w", c.Genesis, err)
		}
		if n.ChainID() != c.ChainID {
			return nil, fmt.Errorf("chain.genesis %s is of chain %d, chain.chain_id is %d", c.Genesis, n.ChainID(), c.ChainID)
		}
		return n, nil
	case c.ChainID == main.ChainID():
		return main, nil
	default:
		return chain.UnscheduledNetwork(c.Name, c.ChainID), nil
	}
}

func (n *storedNode) close() error {
	err := n.engine.Close()
	var failure *engine.FailedError
	if n.told && errors.As(err, &failure) {
		return nil
	}
	return err
}

// failure replaces an error of a command by the failed write that it follows from, if there was one:
// whatever else went wrong after that says nothing more. To an error of space it adds what to do.
func (n *storedNode) failure(err error) error {
	if err == nil {
		return nil
	}
	var failure *engine.FailedError
	if errors.As(n.engine.Err(), &failure) {
		n.told = true
		err = failure.Cause
		if !errors.Is(err, syscall.ENOSPC) {
			return fmt.Errorf("%w: what was committed is kept; run the command again when the disk is in order", err)
		}
	}
	// Files that are written side by side fail together, with an error each: the first says it all.
	var path *fs.PathError
	var space *engine.SpaceError
	switch {
	case errors.Is(err, syscall.ENOSPC):
		if errors.As(err, &path) {
			err = path
		}
		return fmt.Errorf("%w: what was committed is kept; free space and run the command again", err)
	case errors.As(err, &space):
		err = space
		return fmt.Errorf("%w: what was committed is kept; raise the budget or prune, and run the command again", err)
	case errors.Is(err, history.ErrBudget):
		return fmt.Errorf("%w: what was committed is kept; raise the limit in raw_history or prune, and run the command again", err)
	}
	return err
}

func (n *storedNode) status(context.Context) (statusReport, error) {
	r := statusReport{ChainID: n.engine.ChainID()}
	v, err := n.history.View()
	if err != nil {
		return r, err
	}
	defer v.Close()
	if head, ok := v.Head(); ok {
		r.Head = &blockName{head, v.HeadHash().Hex()}
	}
	for _, c := range v.Coverage() {
		r.Coverage = append(r.Coverage, blockSpan{c.From, c.To - 1})
		r.Blocks += c.Len()
	}
	snap := n.engine.Acquire()
	defer snap.Release()
	for _, kind := range keys.Kinds() {
		for _, row := range snap.Rows(kind) {
			r.Files++
			r.FileBytes += uint64(row.Size)
			if kind == engine.KindData {
				r.Transactions += row.Transactions
				r.Logs += row.Logs
			}
		}
	}
	for _, b := range snap.Hot() {
		r.Transactions += uint64(b.Transactions)
		r.Logs += uint64(b.Logs)
	}
	r.Space = spaceOf(n.engine.Space())
	partial, err := v.Partial()
	r.Partial = partialReports(partial)
	return r, err
}

// spaceOf names the classes of disk space.
func spaceOf(s engine.Space) spaceReport {
	return spaceReport{
		Data: s.Data, Index: s.Index, Senders: s.Senders, Frames: s.Frames, Replaced: s.Retired,
		Temporary: s.Temporary, Database: s.Database, Total: s.Total(),
	}
}

func (n *storedNode) keys(ctx context.Context, out io.Writer) error {
	return n.engine.ScanKeys(ctx, nil, func(key []byte, valueBytes int) error {
		_, err := fmt.Fprintf(out, "%x  %s  (%d bytes)\n", key, keys.Print(key), valueBytes)
		return err
	})
}

func (n *storedNode) inspect(ctx context.Context, out io.Writer) error {
	inv, err := n.engine.Inspect(ctx)
	if err != nil {
		return err
	}
	logical, err := n.history.LogicalBytes(ctx)
	if err != nil {
		return err
	}
	quarantined, err := n.engine.Quarantine()
	if err != nil {
		return err
	}
	return printInventory(out, inv, n.engine.Space(), logical, quarantined)
}
