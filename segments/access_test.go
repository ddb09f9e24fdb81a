package segments

import (
	"sync"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/leani-go/leani/chain"
	"github.com/leani-go/leani/codec"
	"github.com/leani-go/leani/internal/chainmodel"
)

// touched counts the pages that an operation asks for.
func touched(t *testing.T, what string, most uint64, operation func(access *Access) error) {
	t.Helper()
	var access Access
	if err := operation(&access); err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	if access.Pages > most {
		t.Errorf("%s touches %d pages, want %d at most", what, access.Pages, most)
	}
	if access.Misses != access.Pages {
		t.Errorf("%s: %d of %d pages come from a cache that is not there", what, access.Pages-access.Misses, access.Pages)
	}
}

// largeModel is a chain with long posting lists and dictionaries of several pages. It is made once: do not
// change its blocks.
var largeModel = sync.OnceValue(func() []*chain.Block {
	m := chainmodel.New(77, 0)
	var blocks []*chain.Block
	for range 250 {
		blocks = append(blocks, m.Block())
	}
	return blocks
})

// What an operation costs when nothing is cached is a number of pages, whatever the size of the file. A
// page is found through one page of a page table; all rows of a run that is kept cost nothing.
func TestPagesTouched(t *testing.T) {
	blocks := largeModel()
	data, index := buildPair(t, blocks, codec.None)
	d, x := openData(t, data, nil), openIndex(t, index, 2, nil)

	longTerm, longest := uint32(0), 0
	rareTerm := uint32(0)
	for term, positions := range positionsOf(blocks) {
		if len(positions) > longest {
			longTerm, longest = term, len(positions)
		}
		if len(positions) == 1 {
			rareTerm = term
		}
	}
	if longest < 3*postingBlock || x.postings.pages < 3 || d.logs.pages < 50 || d.words.pages < 3 {
		t.Fatalf("the model is too small: %d positions, %d posting pages, %d log pages, %d pages of words", longest, x.postings.pages, d.logs.pages, d.words.pages)
	}

	find := func(term uint32) (list List) {
		touched(t, "the look-up of a term", 2, func(a *Access) (err error) {
			list, err = x.Find(term, a)
			return err
		})
		return list
	}
	find(0x01234567)
	rare := find(rareTerm)
	touched(t, "a seek in a short list", 0, func(a *Access) error {
		_, err := x.Open(rare, a).Seek(0)
		return err
	})
	list := find(longTerm)
	for _, target := range []uint32{0, uint32(d.Info().Logs / 2), uint32(d.Info().Logs - 1)} {
		touched(t, "a seek in a long list", 2, func(a *Access) error {
			_, err := x.Open(list, a).Seek(target)
			return err
		})
	}
	touched(t, "a walk through a long list", 1+uint64(list.p.list.pages)+1, func(a *Access) error {
		c := x.Open(list, a)
		for target := uint32(0); ; {
			ok, err := c.Seek(target)
			if err != nil || !ok {
				return err
			}
			v := c.Values()
			target = v[len(v)-1] + 1
		}
	})

	position := uint32(d.Info().Transactions / 2)
	var hash common.Hash
	touched(t, "the hash of a transaction", 2, func(a *Access) error {
		h, err := d.TransactionHash(position, a)
		if err == nil {
			hash = *h
		}
		return err
	})
	touched(t, "the look-up of a transaction hash", 2, func(a *Access) error {
		_, err := x.Transactions(&hash, a)
		return err
	})
	touched(t, "the look-up of a block hash", 2, func(a *Access) error {
		_, err := x.Blocks(&blocks[3].Hash, a)
		return err
	})
	touched(t, "the block of a transaction", 4, func(a *Access) error {
		_, err := d.TransactionBlock(position, a)
		return err
	})
	touched(t, "a transaction", 2, func(a *Access) error {
		_, err := d.TransactionAt(position, a)
		return err
	})
	for _, n := range []uint64{0, 84, 249} {
		touched(t, "a block row", 2, func(a *Access) error {
			_, err := d.Block(n, a)
			return err
		})
	}
	touched(t, "a header", 2+2, func(a *Access) error {
		return d.Load(100, chain.PartHeader, new(chain.Block), a)
	})

	// One log: page table, log page, shape, a page for each topic, one or two of block rows.
	matcher := NewMatcher(&chain.LogFilter{})
	nothing := NewMatcher(&chain.LogFilter{Addresses: []common.Address{{1}}})
	for row := uint32(0); uint64(row) < d.Info().Logs; row += 997 {
		touched(t, "a log", 2+1+chain.MaximumTopics+2, func(a *Access) error {
			c := d.Cursor(a)
			defer c.Close()
			_, err := c.Find(row, matcher)
			return err
		})
		touched(t, "a log that does not match", 2+1+1, func(a *Access) error {
			c := d.Cursor(a)
			defer c.Close()
			_, err := c.Find(row, nothing)
			return err
		})
	}
	// All logs: each log page, dictionary page and page of block rows once; each page of the table once.
	once := uint64(d.logs.pages) + uint64(len(d.logs.root)) + uint64(d.shapes.pages) + uint64(d.shortWords.pages) + uint64(d.words.pages) + uint64(d.blocks.pages)
	touched(t, "all logs in order", once, func(a *Access) error {
		c := d.Cursor(a)
		defer c.Close()
		for row := range d.Info().Logs {
			if _, err := c.Find(uint32(row), matcher); err != nil {
				return err
			}
		}
		return nil
	})
}

// With all pages cached, a query allocates a block reference for each block that it finds a log in, and
// one cursor for each list.
func TestAllocations(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates, and empties pools at random")
	}
	blocks := largeModel()
	data, index := buildPair(t, blocks, codec.None)
	cache := NewCache(64 << 20)
	d, x := openData(t, data, cache), openIndex(t, index, 2, cache)
	matcher := NewMatcher(&chain.LogFilter{})
	for _, step := range []uint32{1, 50} {
		found := 0
		got := testing.AllocsPerRun(20, func() {
			found = 0
			c := d.Cursor(nil)
			defer c.Close()
			var last *chain.BlockRef
			for row := uint32(0); row < 64*step; row += step {
				l, err := c.Find(row, matcher)
				if err != nil {
					t.Fatal(err)
				}
				if l.Block != last {
					last = l.Block
					found++
				}
			}
		})
		if int(got) > found {
			t.Errorf("reading every %d. row takes %.0f allocations for %d blocks", step, got, found)
		}
	}
	absent := testing.AllocsPerRun(20, func() {
		if l, err := x.Find(0x01234567, nil); err != nil || l.Count != 0 {
			t.Fatal(l.Count, err)
		}
	})
	if absent != 0 {
		t.Errorf("the look-up of an absent term takes %.0f allocations", absent)
	}
	for term, positions := range positionsOf(blocks) {
		if len(positions) < 10*postingBlock {
			continue
		}
		seeks := testing.AllocsPerRun(20, func() {
			list, err := x.Find(term, nil)
			if err != nil {
				t.Fatal(err)
			}
			c := x.Open(list, nil)
			for target := uint32(0); ; target += 100 {
				if ok, err := c.Seek(target); err != nil {
					t.Fatal(err)
				} else if !ok {
					return
				}
			}
		})
		if seeks > 2 { // the cursor, and the positions of a block
			t.Errorf("a walk through a long list takes %.0f allocations", seeks)
		}
		return
	}
	t.Fatal("the model has no long list")
}
