package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/leani-go/leani/chain"
	"github.com/leani-go/leani/config"
	"github.com/leani-go/leani/engine/history"
	"github.com/leani-go/leani/ingest/live"
	"github.com/leani-go/leani/ingest/scripted"
	"github.com/leani-go/leani/serve/rpc"
)

// recentOptions bound the recent blocks as the settings say.
func recentOptions(c *config.Config) history.RecentOptions {
	o := history.RecentOptions{
		MinimumBlocks: c.RPC.MinimumRecentBlocks,
		SoftBytes:     int64(min(c.Budgets.RecentRawSoftBytes, 1<<62)),
		HardBytes:     int64(min(c.Budgets.RecentRawHardBytes, 1<<62)),
	}
	if c.Finality.Kind == config.FinalityDisabled {
		o.Depth = history.FinalDepth
	}
	return o
}

// follow runs the live lane until the context or the source ends. It is nil when there is no live source.
func (n *storedNode) follow(ctx context.Context, committed func()) (err error) {
	if n.settings.Sources.Live.Kind != config.LiveScripted {
		return nil
	}
	log := n.log.With("component", "live")
	source, err := scripted.Open(n.settings.Sources.Live.Path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, source.Close()) }()
	lane := live.New(live.Options{Store: n.history, Source: source, Committed: committed, Logger: log, Admit: n.admitLive})
	n.lane.Store(lane)
	if err = lane.Run(ctx); err == nil {
		log.Info("the live source has ended")
	}
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// liveStatus is where the lane stands, for the RPC server.
func (n *storedNode) liveStatus() rpc.LiveStatus {
	lane := n.lane.Load()
	if lane == nil {
		return rpc.LiveStatus{}
	}
	return rpc.LiveStatus(lane.Status())
}

// admitLive lets only blocks of the configured chain pass.
func (n *storedNode) admitLive(b *chain.Block) error {
	s := anchoredSink{network: n.network}
	return errors.Join(s.checkGenesis(b), s.checkSigned(b))
}

// makeWay prepares for a fill that reaches beyond the recent blocks: those that are final become files; those that
// are not have to go, because the blocks of the sources take their place. They are the range that is returned; they
// stay until a source has given a block: see dropRecent.
func (n *storedNode) makeWay(ctx context.Context, blocks chain.Range) (chain.Range, error) {
	if hot := n.recent(); hot.Empty() || blocks.To <= hot.To {
		return chain.Range{}, nil
	}
	if _, err := n.history.SealFinal(ctx); err != nil {
		return chain.Range{}, fmt.Errorf("seal recent blocks: %w", err)
	}
	return n.recent(), nil
}

// recent is the range of the recent blocks.
func (n *storedNode) recent() chain.Range {
	snap := n.engine.Acquire()
	defer snap.Release()
	return snap.HotRange()
}

// dropRecent takes the recent blocks back, all of them.
func (n *storedNode) dropRecent(ctx context.Context) error {
	snap := n.engine.Acquire()
	defer snap.Release()
	var x history.Extension
	for i := len(snap.Hot()) - 1; i >= 0; i-- {
		x.Undo = append(x.Undo, snap.Hot()[i].BlockRef)
	}
	if len(x.Undo) == 0 {
		return nil
	}
	n.log.Info("recent blocks that are not final make way for those of the source", "blocks", len(x.Undo), "from", x.Undo[len(x.Undo)-1].Number)
	if err := n.history.Extend(ctx, &x); err != nil {
		return fmt.Errorf("drop recent blocks: %w", err)
	}
	return nil
}
