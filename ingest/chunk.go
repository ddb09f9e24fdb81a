package ingest

import (
	"context"
	"slices"
	"sync"

	"github.com/ethereum/go-ethereum/common"

	"github.com/leani-go/leani/chain"
	"github.com/leani-go/leani/ingest/era"
)

// Sizes of chunks.
const (
	// chunkBlocks bounds the blocks of a chunk, so that small blocks do not make chunks of
	// thousands, which would take long to stop.
	chunkBlocks = 64
	// chunkStoredBytes bounds the stored bytes of a chunk of more than one block: a handful of full
	// Mainnet blocks, about two milliseconds of work. Chunks of 1 MiB cost 3 % more processor time,
	// because less of them stays in the caches; smaller ones win nothing more.
	chunkStoredBytes = 512 << 10
	// minimumChunkStoredBytes is what chunkStoredBytes is lowered to when memory is short.
	minimumChunkStoredBytes = 64 << 10
	// decodedPerStored is the limit of decoded bytes of a batch for each stored byte of a chunk.
	// Blocks take two to three times their stored size; where they take more, a chunk is worked off
	// in several batches.
	decodedPerStored = 4
)

// chunk is a run of blocks of one file on its way, with the memory of its blocks. The planner owns
// it until it is sent to a worker; from then on the worker and the ordered stage own it in turns,
// which change with parts and again. After the last part the ordered stage returns it to its pool.
type chunk struct {
	file   *file
	blocks chain.Range
	final  bool // nothing of the file follows

	buffer era.Buffer
	room   []chain.Block // chunkBlocks of them

	parts chan part     // capacity 1
	again chan struct{} // capacity 1; the blocks of the last part are not needed any more

	charge int64 // bytes counted by the pool, guarded by its mutex
}

// part is a number of blocks at the start of chunk.room that were verified together. All but the
// last part of a chunk are there because a batch reached its limit.
type part struct {
	blocks int
	err    error // about the block after these
	last   bool
}

func newChunk() *chunk {
	return &chunk{room: make([]chain.Block, chunkBlocks), parts: make(chan part, 1), again: make(chan struct{}, 1)}
}

// Sizes in memory on a 64-bit machine, in bytes; TestSizes compares.
const (
	blockBytes   = 280
	sliceBytes   = 24
	receiptBytes = 48
	logBytes     = 72
)

// memory is what the chunk holds on to, in bytes, but for a few words of its own.
func (c *chunk) memory() int64 {
	total := c.buffer.Memory()
	for i := range c.room {
		b := &c.room[i]
		total += blockBytes +
			int64(cap(b.Transactions))*sliceBytes +
			int64(cap(b.TransactionHashes))*common.HashLength +
			int64(cap(b.Senders))*common.AddressLength +
			int64(cap(b.Receipts))*receiptBytes +
			int64(cap(b.Logs))*logBytes
	}
	return total
}

// costOf is what a chunk is expected to hold on to at most: the bytes that are read and decoded, and
// half as much for the structures that point into them and for room to grow. Ordinary blocks stay
// well below. What a chunk of countless tiny items needs beyond that is counted once it is known.
func costOf(stored, decoded int64) int64 { return (stored + decoded) * 3 / 2 }

// pool lends chunks and bounds their memory and number. It is safe for concurrent use; one
// goroutine calls get.
type pool struct {
	limit  int64 // bytes of all chunks
	active int   // chunks that may be lent at a time
	keep   int64 // bytes of a chunk that is kept for later

	mu   sync.Mutex
	used int64 // bytes charged for chunks, lent and idle
	lent int
	idle []*chunk // used most recently last

	freed chan struct{} // capacity 1: wakes get
}

func newPool(limit int64, active int, keep int64) *pool {
	return &pool{limit: limit, active: active, keep: keep, freed: make(chan struct{}, 1)}
}

// get lends a chunk and charges it with cost, as soon as there is room, or when no other chunk is
// lent.
func (p *pool) get(ctx context.Context, cost int64) (*chunk, error) {
	for {
		if c := p.try(cost); c != nil {
			return c, nil
		}
		select {
		case <-p.freed:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

func (p *pool) try(cost int64) *chunk {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.lent == p.active {
		return nil
	}
	var c *chunk
	if n := len(p.idle); n > 0 {
		c, p.idle = p.idle[n-1], p.idle[:n-1]
	} else {
		c = newChunk()
	}
	total := func() int64 { return p.used - c.charge + max(cost, c.charge) }
	for total() > p.limit && len(p.idle) > 0 { // chunks in reserve give way
		p.used -= p.idle[0].charge
		p.idle = slices.Delete(p.idle, 0, 1)
	}
	if total() > p.limit && p.lent > 0 {
		if c.charge > 0 {
			p.idle = append(p.idle, c)
		}
		return nil
	}
	p.used = total()
	c.charge = max(cost, c.charge)
	p.lent++
	return c
}

// settle corrects the charge of a lent chunk to what it really holds.
func (p *pool) settle(c *chunk, memory int64) {
	p.mu.Lock()
	p.used += memory - c.charge
	c.charge = memory
	p.mu.Unlock()
	p.wake()
}

// put takes a chunk back.
func (p *pool) put(c *chunk) {
	c.file, c.final = nil, false
	p.mu.Lock()
	p.lent--
	if c.charge <= p.keep {
		p.idle = append(p.idle, c)
	} else {
		p.used -= c.charge
	}
	p.mu.Unlock()
	p.wake()
}

func (p *pool) wake() {
	select {
	case p.freed <- struct{}{}:
	default:
	}
}
