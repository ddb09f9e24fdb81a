package history

import (
	"context"
	"fmt"
	"runtime"
	"sync"

	"github.com/ethereum/go-ethereum/common"
	"github.com/leani-go/leani/chain"
	"github.com/leani-go/leani/engine"
)

// LoadBlock resets dst and fills it with the parts of a block. Senders come from their file, or are
// recovered when there is none yet.
func (v *View) LoadBlock(ctx context.Context, number uint64, parts chain.Parts, dst *chain.Block) error {
	if e, ok := v.hot.at(number); ok {
		return v.loadHotBlock(ctx, e, parts, dst)
	}
	row, err := v.dataOf(number)
	if err != nil {
		return err
	}
	if parts&chain.PartSenders != 0 {
		if _, ok := v.snapshot.SendersFile(row); !ok {
			parts |= chain.PartTransactions
		}
	}
	if err := v.load(row, number, parts, dst); err != nil {
		return err
	}
	if parts&chain.PartSenders == 0 {
		return nil
	}
	return v.loadSenders(ctx, row, dst)
}

// LoadTransaction fills dst like LoadBlock, but of the material of single transactions only that of the one
// at index, which must be below the block's number of them: see segments.Data.LoadTransaction. Of the
// senders, too, only that one is set.
func (v *View) LoadTransaction(ctx context.Context, number uint64, index uint32, parts chain.Parts, dst *chain.Block) error {
	if e, ok := v.hot.at(number); ok {
		return v.loadHotTransaction(ctx, e, index, parts, dst)
	}
	row, err := v.dataOf(number)
	if err != nil {
		return err
	}
	d, err := v.store.data(row)
	if err != nil {
		return err
	}
	file, stored := v.snapshot.SendersFile(row)
	if parts&chain.PartSenders != 0 && !stored {
		parts |= chain.PartTransactions
	}
	if err := d.LoadTransaction(number, index, parts, dst, &v.access); err != nil || parts&chain.PartSenders == 0 {
		return err
	}
	b, err := d.Block(number, &v.access)
	if err != nil {
		return err
	}
	var one []common.Address
	if stored {
		s, err := v.store.sendersFile(file)
		if err != nil {
			return err
		}
		if one, err = s.Append(nil, b.FirstTransaction+index, 1, &v.access); err != nil {
			return err
		}
	} else if one, err = v.store.recoverSenders(ctx, dst.Transactions[index:index+1], 1); err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return corruptRow(row, fmt.Errorf("transaction %d of block %d: %w", index, number, err))
	}
	dst.Senders = append(dst.Senders[:0], make([]common.Address, b.Transactions)...)
	dst.Senders[index] = one[0]
	return nil
}

func (v *View) load(row *engine.FileRow, number uint64, parts chain.Parts, dst *chain.Block) error {
	d, err := v.store.data(row)
	if err != nil {
		return err
	}
	return d.Load(number, parts, dst, &v.access)
}

func (v *View) loadSenders(ctx context.Context, row *engine.FileRow, dst *chain.Block) error {
	if file, ok := v.snapshot.SendersFile(row); ok {
		s, err := v.store.sendersFile(file)
		if err != nil {
			return err
		}
		d, err := v.store.data(row)
		if err != nil {
			return err
		}
		b, err := d.Block(dst.Number, &v.access)
		if err != nil {
			return err
		}
		dst.Senders, err = s.Append(dst.Senders[:0], b.FirstTransaction, b.Transactions, &v.access)
		return err
	}
	if known := v.store.senders.get(dst.Hash); known != nil {
		dst.Senders = append(dst.Senders[:0], known...)
		return nil
	}
	senders, err := v.store.recoverSenders(ctx, dst.Transactions, runtime.GOMAXPROCS(0))
	if err != nil {
		return corruptRow(row, fmt.Errorf("block %d: %w", dst.Number, err))
	}
	v.store.senders.put(dst.Hash, senders)
	dst.Senders = append(dst.Senders[:0], senders...)
	return nil
}

// senderRecoverer recovers the sender of one transaction at a time.
type senderRecoverer interface {
	Recover(transaction []byte) (common.Address, error)
}

// recoverSenders recovers the senders of transactions with up to workers goroutines, the
// caller's among them.
func (s *Store) recoverSenders(ctx context.Context, transactions [][]byte, workers int) ([]common.Address, error) {
	out := make([]common.Address, len(transactions))
	// A goroutine is worth starting for a few recoveries of 40 µs each.
	workers = max(1, min(workers, (len(transactions)+3)/4))
	var group sync.WaitGroup
	errs := make([]error, workers)
	work := func(w int) {
		r := s.opts.newRecoverer()
		for i := w; i < len(transactions); i += workers {
			if ctx.Err() != nil {
				errs[w] = ctx.Err()
				return
			}
			var err error
			if out[i], err = r.Recover(transactions[i]); err != nil {
				errs[w] = fmt.Errorf("sender of transaction %d: %w", i, err)
				return
			}
		}
	}
	for w := 1; w < workers; w++ {
		group.Go(func() { work(w) })
	}
	work(0) // on the caller's thread, which may have a priority of its own
	group.Wait()
	for _, err := range errs {
		if err != nil {
			return nil, err
		}
	}
	return out, nil
}

// senderCache keeps recovered senders of the blocks asked for last, by block hash.
type senderCache struct {
	mu     sync.Mutex
	blocks map[common.Hash][]common.Address
	order  []common.Hash // ring of keys
	next   int
}

// senderCacheBlocks bounds the cache: 64 full blocks are about half a MiB.
const senderCacheBlocks = 64

func (c *senderCache) get(h common.Hash) []common.Address {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.blocks[h]
}

func (c *senderCache) put(h common.Hash, senders []common.Address) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.blocks == nil {
		c.blocks = make(map[common.Hash][]common.Address)
		c.order = make([]common.Hash, senderCacheBlocks)
	}
	if _, ok := c.blocks[h]; ok {
		return
	}
	delete(c.blocks, c.order[c.next])
	c.order[c.next] = h
	c.next = (c.next + 1) % senderCacheBlocks
	c.blocks[h] = senders
}
