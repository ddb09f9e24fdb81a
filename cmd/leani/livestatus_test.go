package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/ethclient"
	"github.com/ethereum/go-ethereum/rpc"
)

// TestLiveReady follows a node on a named pipe as clients do that wait for a synchronized one: it is live once it has
// what the source told, lags while it knows of a newer block, and stops at once although the pipe stays open.
//
// RPC-068 RPC-069 RPC-073
func TestLiveReady(t *testing.T) {
	skipSlow(t)
	t.Parallel()
	c := chainlab(t)
	l := newLab(t, c)
	const border = 20
	script := l.livePipe()
	l.must("history", "fill", "--from-block", "0", "--to-block", fmt.Sprint(border-1))
	s := l.serve()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	client, err := ethclient.DialContext(ctx, s.url)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	progress := func() *ethereum.SyncProgress {
		t.Helper()
		p, err := client.SyncProgress(ctx)
		if err != nil {
			t.Fatalf("%v\n%s", err, s.log.String())
		}
		return p
	}
	// Nothing was told: the files are not taken for the head of the chain.
	if p := progress(); p == nil || p.CurrentBlock != border-1 || p.HighestBlock != border-1 {
		t.Errorf("before the first event: %+v", p)
	}
	tell := teller(t, script)
	until := func(what string, done func(*ethereum.SyncProgress) bool) {
		t.Helper()
		for p := progress(); !done(p); p = progress() {
			if ctx.Err() != nil {
				t.Fatalf("%s: %+v", what, p)
			}
		}
	}
	head := func(want uint64) {
		t.Helper()
		if got, err := client.BlockNumber(ctx); err != nil || got != want {
			t.Errorf("head: got %d, %v want %d", got, err, want)
		}
	}
	tell(`{"apply": {"era": %q, "fromBlock": %d, "toBlock": %d}}`, c.files[0], border, border+9)
	until("live", func(p *ethereum.SyncProgress) bool { return p == nil })
	head(border + 9)
	tell(`{"attested": {"number": %d}}`, border+12)
	until("a newer block is known", func(p *ethereum.SyncProgress) bool {
		return p != nil && p.CurrentBlock == border+9 && p.HighestBlock == border+12
	})
	tell(`{"apply": {"era": %q, "fromBlock": %d, "toBlock": %d}}`, c.files[0], border+10, border+12)
	until("live again", func(p *ethereum.SyncProgress) bool { return p == nil })
	head(border + 12)
	l.stopped(s)
}

// TestLiveEnds: after the end of its source a node says that it follows nothing, and takes no subscriptions that nothing
// would come of.
//
// RPC-069
func TestLiveEnds(t *testing.T) {
	skipSlow(t)
	t.Parallel()
	c := chainlab(t)
	l := newLab(t, c)
	l.live(fmt.Sprintf(`{"apply": {"era": %q, "fromBlock": 0, "toBlock": 9}}`, c.files[0]))
	s := l.serve()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for {
		client, err := ethclient.DialContext(ctx, s.ws)
		if err != nil {
			t.Fatal(err)
		}
		_, err = client.SubscribeNewHead(ctx, make(chan *types.Header, 16))
		client.Close()
		var refused rpc.DataError
		if errors.As(err, &refused) && strings.Contains(fmt.Sprint(refused.ErrorData()), "live_subscription_disconnected") {
			break
		}
		if ctx.Err() != nil {
			t.Fatalf("subscriptions are taken: %v\n%s", err, s.log.String())
		}
	}
	client, err := ethclient.DialContext(ctx, s.url)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	if p, err := client.SyncProgress(ctx); err != nil || p == nil || p.CurrentBlock != 9 {
		t.Errorf("%+v, %v", p, err)
	}
	if !strings.Contains(s.log.String(), "the live source has ended") {
		t.Errorf("log: %s", s.log.String())
	}
	l.stopped(s)
}
