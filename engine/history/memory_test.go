package history

import (
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"slices"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/ethereum/go-ethereum/common"

	"github.com/leani-go/leani/chain"
	"github.com/leani-go/leani/engine"
)

// peakHeap remembers how much more memory than at its start was live at the end of a garbage collection.
type peakHeap struct {
	sample     []metrics.Sample
	base, peak int64
}

func newPeakHeap() *peakHeap {
	p := &peakHeap{sample: []metrics.Sample{{Name: "/gc/heap/live:bytes"}}}
	runtime.GC()
	p.base = p.live()
	return p
}

func (p *peakHeap) live() int64 {
	metrics.Read(p.sample)
	return int64(p.sample[0].Value.Uint64())
}

func (p *peakHeap) look() { p.peak = max(p.peak, p.live()-p.base) }

// heavyChain makes the blocks of a long range in the same memory.
type heavyChain struct {
	block  chain.Block
	rng    *rand.ChaCha8
	data   []byte
	topics []common.Hash
}

// newHeavyChain makes blocks with a number of logs, each with its own topics and some data that does not
// compress.
func newHeavyChain(logs, dataBytes int) *heavyChain {
	h := &heavyChain{rng: rand.NewChaCha8([32]byte{1}), data: make([]byte, 1<<20), topics: make([]common.Hash, 2*logs)}
	_, _ = h.rng.Read(h.data)
	b := &h.block
	b.HasReceipts = true
	b.Header = make([]byte, 500)
	b.Header[0], b.Header[1], b.Header[2], b.Header[3] = 0xf9, 0x01, 0xf1, 0xa0
	b.Ommers = []byte{0xc0}
	b.Transactions = [][]byte{{0xc0}}
	b.TransactionHashes = make([]common.Hash, 1)
	b.Receipts = []chain.Receipt{{Status: 1, LogsEnd: uint32(logs)}}
	for i := range logs {
		at := int(h.rng.Uint64() % uint64(len(h.data)-dataBytes))
		b.Logs = append(b.Logs, chain.Log{
			Address: new(common.Address), NumTopics: 2,
			Topics: [chain.MaximumTopics]*common.Hash{&h.topics[2*i], &h.topics[2*i+1]},
			Data:   h.data[at : at+dataBytes],
		})
	}
	return h
}

// size is what a block takes in a builder, at least.
func (h *heavyChain) size() int {
	return len(h.block.Logs) * (len(h.block.Logs[0].Data) + 2*common.HashLength)
}

// next gives the block with a number; it is valid until the next call.
func (h *heavyChain) next(number uint64) *chain.Block {
	b := &h.block
	for i := range h.topics {
		_, _ = h.rng.Read(h.topics[i][:])
	}
	hash := func(n uint64) (out common.Hash) {
		binary.BigEndian.PutUint64(out[8:], n+1)
		return out
	}
	b.BlockRef = chain.BlockRef{Number: number, Hash: hash(number), ParentHash: hash(number - 1), Timestamp: number}
	copy(b.Header[4:], b.ParentHash[:])
	b.TransactionHashes[0] = hash(number | 1<<63)
	return b
}

// TestMemoryIsBounded writes and packs ranges whose blocks hold far more than a builder may, in large
// data or in many logs. Runs end early, and what is live in memory depends neither on the length of the
// range nor on how many small files wait to be packed.
//
// INV-22 STO-016
func TestMemoryIsBounded(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector has memory of its own")
	}
	defer debug.SetGCPercent(debug.SetGCPercent(25)) // collections often enough to see peaks
	const limit = 1 << 20
	for name, shape := range map[string]struct{ logs, dataBytes, blocks int }{
		"large data": {8, 4 << 10, 130},
		"many logs":  {400, 0, 70},
	} {
		t.Run(name, func(t *testing.T) {
			store := func(blocks int) (write, pack int64, files, packed int) {
				opts := smallOptions(1 << 20)
				opts.BuilderMemory = limit
				e, s, err := openIn(t.TempDir(), vfs.Default, 0, opts)
				if err != nil {
					t.Fatal(err)
				}
				h := newHeavyChain(shape.logs, shape.dataBytes)
				peak := newPeakHeap()
				w := s.NewWriter(t.Context(), nil)
				for n := range uint64(blocks) {
					err := w.Add(h.next(n))
					if err == nil && n >= uint64(blocks)/2 && n%2 == 0 { // small files, to be packed
						err = w.Cut()
					}
					if err != nil {
						t.Fatal(errors.Join(err, w.Close(true)))
					}
					peak.look()
				}
				if err := w.Close(false); err != nil {
					t.Fatal(err)
				}
				runs := rangesOf(s, engine.KindData)
				files = len(runs)
				early := slices.IndexFunc(runs, func(r chain.Range) bool { return r.To > uint64(blocks)/2 })
				if want := blocks / 2 * h.size() / (2 * limit); early < want {
					t.Errorf("%d runs ended early of %d blocks, want %d and more", early, blocks/2, want)
				}
				write = peak.peak
				peak = newPeakHeap()
				done := make(chan error)
				go func() {
					_, err := s.Compact(t.Context())
					done <- err
				}()
				for look := time.Tick(time.Millisecond); ; {
					select {
					case err := <-done:
						if err != nil {
							t.Fatal(err)
						}
						packed = len(rangesOf(s, engine.KindData))
						if err := e.Close(); err != nil {
							t.Error(err)
						}
						return write, peak.peak, files, packed
					case <-look:
						peak.look()
					}
				}
			}
			write1, pack1, files1, packed1 := store(shape.blocks)
			write4, pack4, files4, packed4 := store(3 * shape.blocks)
			t.Logf("%d files packed into %d: %d KiB to write, %d to pack", files1, packed1, write1>>10, pack1>>10)
			t.Logf("%d files packed into %d: %d KiB to write, %d to pack", files4, packed4, write4>>10, pack4>>10)
			if packed4 > files4*2/3 || packed4 <= packed1 {
				t.Errorf("%d files became %d, %d became %d", files1, packed1, files4, packed4)
			}
			const slack = readBackCache
			for _, c := range []struct {
				what        string
				short, long int64
			}{{"write", write1, write4}, {"pack", pack1, pack4}} {
				if c.long > c.short+c.short/4+slack {
					t.Errorf("%s: %d bytes live for a range, %d for one three times as long", c.what, c.short, c.long)
				}
				if most := int64(8*limit + 8<<20); c.long > most {
					t.Errorf("%s: %d bytes live, want at most %d", c.what, c.long, most)
				}
			}
		})
	}
}
