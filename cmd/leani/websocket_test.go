package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/big"
	"testing"

	"github.com/ethereum/go-ethereum"
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/ethclient"
	"github.com/fasthttp/websocket"
)

// TestWebSocket follows a node with go-ethereum's client while blocks come and go: heads as the chain has them, logs that
// are removed and come again, and at the end 1001.
//
// RPC-001 RPC-180 RPC-182 RPC-183 RPC-199 INV-32
func TestWebSocket(t *testing.T) {
	skipSlow(t)
	t.Parallel()
	c := chainlab(t)
	l := newLab(t, c)
	border := c.blocks.To - 60
	script := l.livePipe()
	l.set("rpc", "max_subscription_event_bytes", `"64MiB"`) // twenty blocks are undone at once
	l.must("history", "fill", "--from-block", fmt.Sprint(c.blocks.From), "--to-block", fmt.Sprint(border-1))
	s := l.serve()
	tell := teller(t, script)

	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	client, err := ethclient.DialContext(ctx, s.ws)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	heads, logs := make(chan *types.Header, 256), make(chan types.Log, 1<<16)
	following, err := client.SubscribeNewHead(ctx, heads)
	if err != nil {
		t.Fatal(err)
	}
	finding, err := client.SubscribeFilterLogs(ctx, ethereum.FilterQuery{}, logs)
	if err != nil {
		t.Fatal(err)
	}
	end := border + 50
	apply := func(first, last uint64) {
		t.Helper()
		for n := first; n <= last; n++ {
			tell(`{"apply": {"era": %q, "fromBlock": %d, "toBlock": %d}}`, c.files[0], n, n)
			select {
			case h := <-heads:
				// What is told has been committed: it can be asked for.
				stored, err := client.HeaderByNumber(ctx, h.Number)
				if h.Number.Uint64() != n || err != nil || stored.Hash() != h.Hash() {
					t.Fatalf("block %d: told %s %s, stored %v %v", n, h.Number, h.Hash(), stored, err)
				}
			case err := <-following.Err():
				t.Fatalf("heads end: %v\n%s", err, s.log.String())
			case <-ctx.Done():
				t.Fatalf("head %d is not told\n%s", n, s.log.String())
			}
		}
	}
	apply(border, border+39)
	tell(`{"undo": {"number": %d}}`, border+19)
	apply(border+20, end-1)

	var stored []types.Log
	for n := border; n < end; n++ {
		number := new(big.Int).SetUint64(n)
		found, err := client.FilterLogs(ctx, ethereum.FilterQuery{FromBlock: number, ToBlock: number})
		if err != nil {
			t.Fatal(err)
		}
		stored = append(stored, found...)
	}
	type key struct {
		block common.Hash
		index uint
	}
	held, added, removed := make(map[key]bool), 0, 0
	for len(held) < len(stored) || removed == 0 || added-removed != len(stored) {
		select {
		case got := <-logs:
			k := key{got.BlockHash, got.Index}
			if held[k] != got.Removed {
				t.Fatalf("log %d of block %d: removed %t", got.Index, got.BlockNumber, got.Removed)
			}
			if got.Removed {
				removed++
				delete(held, k)
			} else {
				added++
				held[k] = true
			}
		case err := <-finding.Err():
			t.Fatalf("logs end: %v", err)
		case <-ctx.Done():
			t.Fatalf("%d logs told, %d removed, %d stored", added, removed, len(stored))
		}
	}
	for i := range stored {
		if !held[key{stored[i].BlockHash, stored[i].Index}] {
			t.Errorf("log %d of block %d was not told", stored[i].Index, stored[i].BlockNumber)
		}
	}

	last, _, err := websocket.DefaultDialer.Dial(s.ws, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = last.Close() }()
	ended := make(chan error, 1)
	go func() { // ends with the connection
		_, _, err := last.ReadMessage()
		ended <- err
	}()
	l.stopped(s) // although the pipe stays open
	var closed *websocket.CloseError
	if err := <-ended; !errors.As(err, &closed) || closed.Code != websocket.CloseGoingAway {
		t.Errorf("at shutdown: %v", err)
	}
	if err := <-following.Err(); err == nil || errors.Is(err, io.EOF) {
		t.Logf("the client saw the end as %v", err)
	}
}
