package rpc

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/ethereum/go-ethereum/common"

	"github.com/leani-go/leani/api/jsonrpc"
	"github.com/leani-go/leani/chain"
)

// fakeHistory has the blocks of a chain, by way of sources that misbehave as a test wants. It takes each block back after
// the reader has returned, so that one that is kept shows.
type fakeHistory struct {
	blocks  map[uint64]*chain.Block
	sources []fakeSource
	// hashes makes it find blocks by hash.
	hashes bool
	// before, if set, comes before everything else of a fetch.
	before func(ctx context.Context, r HistoryRequest) error

	mu      sync.Mutex
	fetched []HistoryRequest // guarded by mu
	looked  int              // guarded by mu
}

// fakeSource is a source. The zero value of everything but the id has all blocks.
type fakeSource struct {
	id    string
	trust string
	// fail is the error of block number at.
	fail *HistoryError
	at   uint64
	// change makes other blocks out of one.
	change func(b chain.Block) []chain.Block
}

// historyOf is a history with one good source.
func historyOf(s *fakeStore) *fakeHistory {
	return &fakeHistory{blocks: s.blocks, sources: []fakeSource{{id: "good"}}}
}

func (h *fakeHistory) Abilities() HistoryAbilities {
	a := HistoryAbilities{BlockHashes: h.hashes, MaximumBlocks: 1024}
	for _, s := range h.sources {
		a.Sources = append(a.Sources, h.named(s))
	}
	return a
}

func (h *fakeHistory) named(s fakeSource) HistorySource {
	trust := s.trust
	if trust == "" {
		trust = "verified_material"
	}
	return HistorySource{s.id, trust}
}

func (h *fakeHistory) requests() []HistoryRequest {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.fetched)
}

func (h *fakeHistory) Fetch(ctx context.Context, r HistoryRequest, reader HistoryReader) error {
	h.mu.Lock()
	h.fetched = append(h.fetched, r)
	h.mu.Unlock()
	if h.before != nil {
		if err := h.before(ctx, r); err != nil {
			return err
		}
	}
	var last error = &HistoryError{jsonrpc.ReasonNoHistorySource, errors.New("there is no source")}
	for _, s := range h.sources {
		reader.Begin(h.named(s))
		err := h.give(ctx, s, r, reader)
		var rejection *HistoryRejection
		var failure *HistoryError
		if !errors.As(err, &rejection) && !errors.As(err, &failure) {
			return err
		}
		last = err
	}
	return last
}

func (h *fakeHistory) give(ctx context.Context, s fakeSource, r HistoryRequest, reader HistoryReader) (err error) {
	defer func() { // as one does that takes every panic for its source's
		if v := recover(); v != nil {
			err = failed(jsonrpc.ReasonHistoryFailed)
		}
	}()
	for _, run := range r.Runs {
		for n := run.From; n < run.To; n++ {
			if err := ctx.Err(); err != nil {
				return err
			}
			if s.fail != nil && s.at <= n {
				return s.fail
			}
			given := []chain.Block{*h.blocks[n]}
			if s.change != nil {
				given = s.change(*h.blocks[n])
			}
			for i := range given {
				if r.Parts&chain.PartSenders == 0 {
					given[i].Senders = nil
				}
				lent := given[i]
				lent.Logs, lent.TransactionHashes = slices.Clone(lent.Logs), slices.Clone(lent.TransactionHashes)
				if err := reader.Block(&lent); err != nil {
					return err
				}
				clear(lent.Logs)
				clear(lent.TransactionHashes)
				lent = chain.Block{}
			}
		}
	}
	return nil
}

func (h *fakeHistory) NumberByHash(_ context.Context, hash common.Hash) (uint64, bool, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.looked++
	if !h.hashes {
		return 0, false, errors.New("asked by hash")
	}
	for n, b := range h.blocks {
		if b.Hash == hash {
			return n, true, nil
		}
	}
	return 0, false, nil
}

// Changes of blocks.

func withHash(b chain.Block) []chain.Block {
	b.Hash[3] ^= 1
	return []chain.Block{b}
}

func withParent(b chain.Block) []chain.Block {
	b.ParentHash[3] ^= 1
	return []chain.Block{b}
}

func withoutReceipts(b chain.Block) []chain.Block {
	b.HasReceipts, b.Receipts, b.Logs = false, nil, nil
	return []chain.Block{b}
}

func twice(b chain.Block) []chain.Block { return []chain.Block{b, b} }

func never(chain.Block) []chain.Block { return nil }

// only changes one block.
func only(number uint64, change func(chain.Block) []chain.Block) func(chain.Block) []chain.Block {
	return func(b chain.Block) []chain.Block {
		if b.Number == number {
			return change(b)
		}
		return []chain.Block{b}
	}
}

func failed(reason string) *HistoryError {
	return &HistoryError{reason, fmt.Errorf("a failure of the test")}
}
