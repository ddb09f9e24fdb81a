package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"runtime"
	"syscall"
	"time"

	"github.com/leani-go/leani/config"
	"github.com/leani-go/leani/engine/history"
	"github.com/leani-go/leani/internal/lowpriority"
	"github.com/leani-go/leani/serve/rpc"
)

// shutdownGrace is how long running requests may take once the node is told to stop.
const shutdownGrace = 5 * time.Second

// backgroundThreads are those that recover senders and merge files behind the requests. The one that reads
// files again to find damage sleeps almost always.
const backgroundThreads = 1

// historyStore is the history as the RPC server sees it.
type historyStore struct{ *history.Store }

func (s historyStore) View() (rpc.View, error) {
	v, err := s.Store.View()
	if err != nil {
		return nil, err // not a nil *history.View in an interface
	}
	return v, nil
}

// historyFeed is the committed changes as the RPC server follows them.
type historyFeed struct{ store *history.Store }

func (f historyFeed) Follow() (rpc.Follower, rpc.View, error) {
	follower, view, err := f.store.Follow()
	if err != nil {
		return nil, nil, err
	}
	return historyFollower{follower}, view, nil
}

type historyFollower struct{ *history.Follower }

func (f historyFollower) Next(ctx context.Context) (rpc.Change, rpc.View, error) {
	c, v, err := f.Follower.Next(ctx)
	if err != nil {
		if errors.Is(err, history.ErrLagged) {
			err = rpc.ErrLagged
		}
		return rpc.Change{}, nil, err
	}
	return rpc.Change{Undone: c.Undone, Applied: c.Applied}, v, nil
}

func (f historyFollower) Refresh() rpc.View {
	if v := f.Follower.Refresh(); v != nil {
		return v
	}
	return nil // not a nil *history.View in an interface
}

// feed is what subscriptions are told from, nil while the settings name no live source.
func (n *storedNode) feed() rpc.Feed {
	if n.settings.Sources.Live.Kind == config.LiveScripted {
		return historyFeed{n.history}
	}
	return nil
}

// newServer makes the RPC server over the history, with threads for heavy queries. Fetched history may be nil.
func (n *storedNode) newServer(lanes int, fetched *fetchedHistory) (*rpc.Server, error) {
	var onDemand rpc.History // not a nil *fetchedHistory in an interface
	if fetched != nil {
		onDemand = fetched
	}
	c := n.settings.RPC
	origins := make([]string, len(c.AllowedOrigins))
	for i, o := range c.AllowedOrigins {
		origins[i] = string(o)
	}
	return rpc.New(rpc.Options{
		Store: historyStore{n.history}, History: onDemand, Feed: n.feed(), Live: n.liveStatus, Network: n.network, AllowedOrigins: origins,
		ClientVersion: currentVersion().client(), Logger: n.log.With("component", "rpc"),
		LaneWorkers: lanes,
		Limits: rpc.Limits{
			MaxBatchRequests: c.MaxBatchRequests, MaxResponseBytes: int(c.MaxResponseBytes), MaxLogResults: c.MaxLogResults,
			MaxLogAddresses: c.MaxLogAddresses, MaxLogTopicAlternatives: c.MaxLogTopicAlternatives,
			MaxWebSocketConnections: c.MaxWebsocketConnections, MaxSubscriptions: c.MaxSubscriptionsPerConnection,
			MaxOutboundBytes: int(n.settings.OutboundBytes()), MaxEventBytes: int(n.settings.SubscriptionEventBytes()),
			SubscriptionBytes:     n.memory.subscriptions,
			InFlightResponseBytes: max(n.memory.responses, int(c.MaxResponseBytes)), InFlightRequestBytes: n.memory.requests,
			FilterBytes: n.memory.filters,
		},
	})
}

// listen opens the listener of a setting.
func listen(setting, address string) (net.Listener, error) {
	l, err := net.Listen("tcp", address)
	if err != nil {
		return nil, explainListen(setting, err)
	}
	return l, nil
}

// explainListen adds what to do about it to an error of listening.
func explainListen(setting string, err error) error {
	err = fmt.Errorf("listen on %s: %w", setting, err)
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return fmt.Errorf("%w: stop the other process that listens there, or choose another %s", err, setting)
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		return fmt.Errorf("%w: no interface of this machine has the address; choose another %s", err, setting)
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("%w: ports below 1024 need a privilege; choose another rpc.http_bind", err)
	}
	return err
}

// serve runs the RPC server and the background work until the context ends, or one of them fails.
func (n *storedNode) serve(ctx context.Context, ready func(url string)) (err error) {
	lanes := min(n.settings.RawHistory.ReaderConnections, runtime.GOMAXPROCS(0))
	fetched, err := n.openFetchedHistory(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, fetched.close()) }()
	lowpriority.MakeRoom(lanes + backgroundThreads + fetched.threads())
	server, err := n.newServer(lanes, fetched)
	if err != nil {
		return err
	}
	listener, err := listen("rpc.http_bind", n.settings.RPC.HTTPBind.String())
	if err != nil {
		return errors.Join(err, server.Shutdown(ctx))
	}
	sockets, err := listen("rpc.ws_bind", n.settings.RPC.WSBind.String())
	if err != nil {
		return errors.Join(err, listener.Close(), server.Shutdown(ctx))
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	serving := make(chan error, 2)
	go func() { serving <- server.Serve(listener) }()
	go func() { serving <- server.ServeWebSocket(sockets) }()
	wake := make(chan struct{}, 1)
	following := make(chan error, 1)
	go func() { // ends with ctx; awaited below
		err := n.follow(ctx, func() {
			select {
			case wake <- struct{}{}:
			default: // it is awake
			}
		})
		if err != nil { // queries go on without it
			n.log.Error("the live lane has stopped", "cause", err)
		}
		if ctx.Err() == nil { // nothing more will be told
			server.DisconnectLive()
		}
		following <- err
	}()
	background := lowpriority.Go(func() error {
		err := n.history.Maintain(ctx, history.MaintainOptions{Wake: wake, Senders: true})
		if err != nil { // queries go on without it
			n.log.Error("background work has stopped", "cause", err)
		}
		return err
	})
	scrubbing := lowpriority.Go(func() error { return n.scrub(ctx) })
	ready("http://" + listener.Addr().String())
	ready("ws://" + sockets.Addr().String())
	select {
	case err = <-serving:
	case <-ctx.Done():
	}
	cancel()
	grace, stop := context.WithTimeout(context.WithoutCancel(ctx), shutdownGrace)
	defer stop()
	if shutdownErr := server.Shutdown(grace); err == nil && !errors.Is(shutdownErr, context.DeadlineExceeded) {
		err = shutdownErr
	}
	if liveErr := <-following; liveErr != nil {
		err = errors.Join(err, fmt.Errorf("live lane: %w", liveErr))
	}
	err = errors.Join(err, <-scrubbing)
	if backgroundErr := <-background; backgroundErr != nil {
		err = errors.Join(err, fmt.Errorf("background work: %w", backgroundErr))
	}
	return err
}
