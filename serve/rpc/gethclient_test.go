package rpc

import (
	"context"
	"fmt"
	"math/big"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum"
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/ethclient"
	gethrpc "github.com/ethereum/go-ethereum/rpc"

	"github.com/leani-go/leani/chain"
)

// TestGoEthereumClient subscribes with the client library of go-ethereum, and follows a reorganization as it is meant to: a
// client that adds logs, and takes away those that are removed, ends with the logs of the chain.
//
// RPC-024 RPC-180 RPC-183 RPC-184
func TestGoEthereumClient(t *testing.T) {
	s := startSockets(t, 8, func(o *Options) { o.newEncoder = nil })
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	raw, err := gethrpc.DialWebsocket(ctx, s.url, "")
	if err != nil {
		t.Fatal(err)
	}
	defer raw.Close()
	client := ethclient.NewClient(raw)
	headers := make(chan *types.Header, 64)
	logs := make(chan types.Log, 256)
	heads, err := client.SubscribeNewHead(ctx, headers)
	if err != nil {
		t.Fatal(err)
	}
	defer heads.Unsubscribe()
	found, err := client.SubscribeFilterLogs(ctx, ethereum.FilterQuery{
		Addresses: []common.Address{tokenAddress}, Topics: [][]common.Hash{{transferSig}, nil}}, logs)
	if err != nil {
		t.Fatal(err)
	}
	var want []*chain.Block
	for _, step := range []struct{ undo, apply int }{{0, 1}, {0, 3}, {3, 4}, {1, 0}, {0, 2}, {5, 1}} {
		blocks := s.feed.next(step.undo, step.apply)
		s.feed.commit(step.undo, blocks...)
		want = append(want, blocks...)
	}
	for _, b := range want {
		select {
		case h := <-headers:
			if h.Hash() != b.Hash || h.ParentHash != b.ParentHash {
				t.Errorf("head %d: got %s, want %s", b.Number, h.Hash(), b.Hash)
			}
		case err := <-heads.Err():
			t.Fatalf("heads end: %v", err)
		case <-ctx.Done():
			t.Fatal("a head is missing")
		}
	}
	// All logs were queued before the last head; an answer that comes behind them says that they have arrived.
	head, err := client.BlockNumber(ctx)
	if err != nil {
		t.Fatal(err)
	}
	held, removed := make(map[string]bool), 0
	for empty := false; !empty; {
		select {
		case l := <-logs:
			key := fmt.Sprintf("%d %s %d", l.BlockNumber, l.BlockHash, l.Index)
			if held[key] == !l.Removed {
				t.Errorf("log %s: removed %t", key, l.Removed)
			}
			if held[key] = !l.Removed; l.Removed {
				removed++
				delete(held, key)
			}
		case err := <-found.Err():
			t.Fatalf("logs end: %v", err)
		case <-time.After(200 * time.Millisecond): // the library hands them on in its own time
			empty = true
		}
	}
	all, err := client.FilterLogs(ctx, ethereum.FilterQuery{
		FromBlock: big.NewInt(8), ToBlock: new(big.Int).SetUint64(head), Addresses: []common.Address{tokenAddress}})
	if err != nil {
		t.Fatal(err)
	}
	for i := range all {
		delete(held, fmt.Sprintf("%d %s %d", all[i].BlockNumber, all[i].BlockHash, all[i].Index))
	}
	if len(all) == 0 || removed == 0 || len(held) != 0 {
		t.Errorf("%d logs of the chain, %d removed, %d that are none of it: %v", len(all), removed, len(held), held)
	}
	found.Unsubscribe()
	s.feed.advance(1)
	if _, err := client.SubscribeFilterLogs(ctx, ethereum.FilterQuery{FromBlock: big.NewInt(3)}, logs); err == nil || !strings.Contains(err.Error(), "Invalid params") {
		t.Errorf("from block 3: %v", err)
	}
	if _, err := client.SubscribeNewHead(ctx, headers); err != nil {
		t.Error(err)
	}
	if _, err := raw.EthSubscribe(ctx, make(chan common.Hash), "newPendingTransactions"); err == nil {
		t.Error("pending transactions are told")
	}
}
