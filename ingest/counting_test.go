package ingest

import (
	"context"

	"github.com/ethereum/go-ethereum/common"

	"github.com/leani-go/leani/chain"
)

// counter is a sink that counts.
type counter struct {
	blocks, transactions, logs int
	last                       common.Hash
	onAdd                      func(*chain.Block)
	committed                  func(chain.Range)
	begin, end                 uint64
}

func (c *counter) open(_ context.Context, committed func(chain.Range)) Sink {
	c.committed = committed
	return c
}

func (c *counter) Add(b *chain.Block) error {
	if b.Number != c.end {
		_ = c.Cut()
		c.begin = b.Number
	}
	c.blocks++
	c.last, c.end = b.Hash, b.Number+1
	c.transactions += len(b.Transactions)
	c.logs += len(b.Logs)
	if c.onAdd != nil {
		c.onAdd(b)
	}
	return nil
}

func (c *counter) Cut() error {
	if c.begin < c.end {
		c.committed(chain.Range{From: c.begin, To: c.end})
		c.begin = c.end
	}
	return nil
}

func (c *counter) Pending() int { return int(c.end - c.begin) }

func (c *counter) Close(bool) error { return c.Cut() }
