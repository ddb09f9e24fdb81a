package segments

import (
	"bytes"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/google/go-cmp/cmp"
	"github.com/leani-go/leani/chain"
	"github.com/leani-go/leani/codec"
	"github.com/leani-go/leani/internal/chainmodel"
)

// testRand is a source of randomness with a fixed seed.
func testRand(t testing.TB) *rand.Rand {
	t.Helper()
	return rand.New(rand.NewPCG(1, 2))
}

// memorySource is a file in memory.
type memorySource []byte

func (m memorySource) ReadAt(b []byte, at int64) (int, error) {
	return bytes.NewReader(m).ReadAt(b, at)
}
func (m memorySource) Size() int64 { return int64(len(m)) }

// buildPair builds the data and the index file of blocks.
func buildPair(t testing.TB, blocks []*chain.Block, c codec.Compression) (data, index []byte) {
	t.Helper()
	var d, x bytes.Buffer
	b := NewDataBuilder(&d, DataOptions{Compression: c})
	for _, block := range blocks {
		if err := b.Add(block); err != nil {
			t.Fatal(err)
		}
	}
	if _, _, err := b.Finish(); err != nil {
		t.Fatal(err)
	}
	if _, _, err := b.WriteIndex(&x); err != nil {
		t.Fatal(err)
	}
	return d.Bytes(), x.Bytes()
}

func openData(t testing.TB, b []byte, cache *Cache) *Data {
	t.Helper()
	f, err := Open("data", 1, memorySource(b), cache)
	if err != nil {
		t.Fatal(err)
	}
	d, err := NewData(f)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func openIndex(t testing.TB, b []byte, id uint64, cache *Cache) *Index {
	t.Helper()
	f, err := Open("index", id, memorySource(b), cache)
	if err != nil {
		t.Fatal(err)
	}
	x, err := NewIndex(f)
	if err != nil {
		t.Fatal(err)
	}
	return x
}

// normal makes nil and empty alike, for comparisons.
func normal(b *chain.Block) *chain.Block {
	c := *b
	c.Senders = nil
	c.Logs = slices.Clone(b.Logs)
	for i := range c.Logs {
		if len(c.Logs[i].Data) == 0 {
			c.Logs[i].Data = nil
		}
	}
	for _, s := range []*[][]byte{&c.Transactions} {
		if len(*s) == 0 {
			*s = nil
		}
	}
	if len(c.TransactionHashes) == 0 {
		c.TransactionHashes = nil
	}
	if len(c.Receipts) == 0 {
		c.Receipts = nil
	}
	if len(c.Logs) == 0 {
		c.Logs = nil
	}
	return &c
}

// What a data file gives back is what was added, whatever the compression and cache.
func TestDataRoundTrip(t *testing.T) {
	for c := range codec.Compression(4) {
		t.Run(c.String(), func(t *testing.T) {
			m := chainmodel.New(uint64(c)+1, 1000)
			var blocks []*chain.Block
			for range 60 {
				blocks = append(blocks, m.Block())
			}
			raw, _ := buildPair(t, blocks, c)
			d := openData(t, raw, NewCache(1<<20))
			if err := d.CheckPages(t.Context(), nil); err != nil {
				t.Fatal(err)
			}
			var got chain.Block
			position := uint32(0)
			for _, want := range blocks {
				if err := d.Load(want.Number, chain.PartsAll, &got, nil); err != nil {
					t.Fatal(err)
				}
				if a, b := normal(want), normal(&got); !reflect.DeepEqual(a, b) {
					t.Fatalf("block %d:\n%s", want.Number, cmp.Diff(a, b))
				}
				for i := range want.Transactions {
					tx, err := d.TransactionAt(position, nil)
					if err != nil || !bytes.Equal(tx, want.Transactions[i]) {
						t.Fatalf("transaction %d of block %d: %v", i, want.Number, err)
					}
					row, err := d.TransactionBlock(position, nil)
					if err != nil || row.Ref.Hash != want.Hash || position-row.FirstTransaction != uint32(i) {
						t.Fatalf("block of transaction %d of block %d: %v, %v", i, want.Number, row, err)
					}
					position++
				}
			}
		})
	}
}

// A cursor finds exactly the matching rows, in any order of visits.
func TestCursorFind(t *testing.T) {
	m := chainmodel.New(42, 0)
	var blocks []*chain.Block
	for range 80 {
		blocks = append(blocks, m.Block())
	}
	raw, _ := buildPair(t, blocks, codec.None)
	d := openData(t, raw, NewCache(1<<20))
	type at struct {
		block *chain.Block
		log   int
		tx    int
	}
	var rows []at
	for _, b := range blocks {
		for tx := range b.Receipts {
			start := len(b.Logs) - len(b.Logs[b.Receipts[tx].LogsEnd:]) - len(b.ReceiptLogs(tx))
			for k := range b.ReceiptLogs(tx) {
				rows = append(rows, at{b, start + k, tx})
			}
		}
	}
	filters := []chain.LogFilter{
		{},
		{Addresses: m.Addresses[:1]},
		{Addresses: m.Addresses[:20]},
		{Topics: [][]common.Hash{m.Topics[:2]}},
		{Topics: [][]common.Hash{nil, m.Topics[:15], nil}},
		{Addresses: m.Addresses[:3], Topics: [][]common.Hash{m.Topics[:30], m.Topics[:5]}},
		{Topics: [][]common.Hash{nil, nil, nil, nil}},
		{Topics: [][]common.Hash{nil, nil, nil, nil, nil}},
	}
	order := m.Rand.Perm(len(rows))
	for fi := range filters {
		matcher := NewMatcher(&filters[fi])
		for pass, visit := range [][]int{order, nil} {
			c := d.Cursor(nil)
			for i := range rows {
				row := i
				if visit != nil {
					row = visit[i]
				}
				w := rows[row]
				want := &w.block.Logs[w.log]
				got, err := c.Find(uint32(row), matcher)
				if err != nil {
					t.Fatalf("filter %d pass %d row %d: %v", fi, pass, row, err)
				}
				if (got != nil) != filters[fi].Match(want) {
					t.Fatalf("filter %d pass %d row %d: found %v", fi, pass, row, got != nil)
				}
				if got == nil {
					continue
				}
				if *got.Address != *want.Address || got.NumTopics != want.NumTopics || !bytes.Equal(got.Data, want.Data) ||
					got.Block.Hash != w.block.Hash || got.Block.Timestamp != w.block.Timestamp || got.Block.Number != w.block.Number ||
					int(got.LogIndex) != w.log || int(got.TransactionIndex) != w.tx || *got.TransactionHash != w.block.TransactionHashes[w.tx] {
					t.Fatalf("filter %d pass %d row %d differs", fi, pass, row)
				}
				for k := range int(want.NumTopics) {
					if *got.Topics[k] != *want.Topics[k] {
						t.Fatalf("filter %d row %d topic %d differs", fi, row, k)
					}
				}
			}
			c.Close()
		}
	}
}

// positionsOf computes from the blocks what an index must propose.
func positionsOf(blocks []*chain.Block) (terms map[uint32][]uint32) {
	terms = map[uint32][]uint32{}
	row := uint32(0)
	add := func(term uint32) {
		if l := terms[term]; len(l) == 0 || l[len(l)-1] != row {
			terms[term] = append(l, row)
		}
	}
	for _, b := range blocks {
		for i := range b.Logs {
			l := &b.Logs[i]
			add(AddressTerm(l.Address))
			for k := range int(l.NumTopics) {
				add(TopicTerm(k, l.Topics[k]))
			}
			row++
		}
	}
	return terms
}

// checkMark asks for random ascending positions, dense and sparse in turn, a few at a time.
func checkMark(t *testing.T, x *Index, term uint32, want []uint32, rng *rand.Rand) {
	t.Helper()
	list, err := x.Find(term, nil)
	if err != nil {
		t.Fatal(err)
	}
	c := x.Open(list, nil)
	end := want[len(want)-1] + 3
	for at, more := uint32(0), true; at < end; {
		step := uint32(1) << rng.Uint32N(12)
		var positions []uint32
		for range 1 + rng.IntN(60) {
			if positions = append(positions, at); at >= end {
				break
			}
			at += 1 + rng.Uint32N(step)
		}
		mark := make([]bool, len(positions))
		if more {
			if more, err = c.Mark(positions, mark); err != nil {
				t.Fatal(err)
			}
		}
		for i, p := range positions {
			if _, has := slices.BinarySearch(want, p); mark[i] != has {
				t.Fatalf("term %08x position %d: marked %v", term, p, mark[i])
			}
		}
		if more && rng.IntN(4) == 0 { // a seek in between
			if more, err = c.Seek(at); err != nil {
				t.Fatal(err)
			}
			if i, _ := slices.BinarySearch(want, at); more != (i < len(want)) || more && c.Values()[0] != want[i] {
				t.Fatalf("term %08x seek %d between marks: %v", term, at, more)
			}
		}
	}
}

func checkIndex(t *testing.T, x *Index, blocks []*chain.Block, rng *rand.Rand) {
	t.Helper()
	if err := x.CheckPages(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	for term, want := range positionsOf(blocks) {
		list, err := x.Find(term, nil)
		if err != nil || list.Count != uint64(len(want)) {
			t.Fatalf("term %08x: %d positions, want %d (%v)", term, list.Count, len(want), err)
		}
		var got []uint32
		c := x.Open(list, nil)
		for target := uint32(0); ; {
			ok, err := c.Seek(target)
			if err != nil {
				t.Fatal(err)
			}
			if !ok {
				break
			}
			got = append(got, c.Values()...)
			target = got[len(got)-1] + 1
		}
		if !slices.Equal(got, want) {
			t.Fatalf("term %08x: positions differ", term)
		}
		// Random forward seeks land on the first position at or above the target.
		c = x.Open(list, nil)
		for target := uint32(0); ; target += 1 + rng.Uint32N(max(2*want[len(want)-1]/10, 2)) {
			ok, err := c.Seek(target)
			if err != nil {
				t.Fatal(err)
			}
			i, _ := slices.BinarySearch(want, target)
			if ok != (i < len(want)) {
				t.Fatalf("term %08x seek %d: found %v", term, target, ok)
			}
			if !ok {
				break
			}
			if c.Values()[0] != want[i] {
				t.Fatalf("term %08x seek %d: got %d, want %d", term, target, c.Values()[0], want[i])
			}
		}
	}
	for term, want := range positionsOf(blocks) {
		checkMark(t, x, term, want, rng)
	}
	position := uint32(0)
	for bi, b := range blocks {
		if got, err := x.Blocks(&b.Hash, nil); err != nil || !slices.Contains(got, uint32(bi)) {
			t.Fatalf("block %d: %v, %v", b.Number, got, err)
		}
		for i := range b.TransactionHashes {
			if got, err := x.Transactions(&b.TransactionHashes[i], nil); err != nil || !slices.Contains(got, position) {
				t.Fatalf("transaction %d of block %d: %v, %v", i, b.Number, got, err)
			}
			position++
		}
	}
	missing := 0
	for range 200 {
		var h common.Hash
		for i := range h {
			h[i] = byte(rng.Uint32())
		}
		got, err := x.Transactions(&h, nil)
		if err != nil {
			t.Fatal(err)
		}
		if len(got) == 0 {
			missing++
		}
	}
	if missing < 190 {
		t.Fatalf("only %d of 200 random hashes are reported missing", missing)
	}
}

// An index holds every position of every term; merging indexes gives what one over all blocks holds.
func TestIndexAndMerge(t *testing.T) {
	m := chainmodel.New(5, 7)
	var all []*chain.Block
	var parts []*Index
	cache := NewCache(1 << 20)
	for i, n := range []int{100, 1, 37, 60} {
		var blocks []*chain.Block
		for range n {
			blocks = append(blocks, m.Block())
		}
		_, raw := buildPair(t, blocks, codec.None)
		x := openIndex(t, raw, uint64(10+i), cache)
		checkIndex(t, x, blocks, m.Rand)
		parts = append(parts, x)
		all = append(all, blocks...)
	}
	var out bytes.Buffer
	info, digest, err := MergeIndexes(t.Context(), &out, parts)
	if err != nil {
		t.Fatal(err)
	}
	x := openIndex(t, out.Bytes(), 99, cache)
	if x.Info() != info || x.Digest() != digest {
		t.Fatalf("info %+v, want %+v", x.Info(), info)
	}
	if _, built := buildPair(t, all, codec.None); !bytes.Equal(out.Bytes(), built) {
		t.Fatal("the merged index has other bytes than one built from all blocks")
	}
	checkIndex(t, x, all, m.Rand)
	if _, _, err := MergeIndexes(t.Context(), &out, []*Index{parts[0], parts[2]}); err == nil {
		t.Fatal("merge of distant ranges accepted")
	}
}

func TestSendersRoundTrip(t *testing.T) {
	m := chainmodel.New(3, 0)
	raw, _ := buildPair(t, []*chain.Block{m.Block(), m.Block(), m.Block(), m.Block()}, codec.None)
	d := openData(t, raw, nil)
	var senders []common.Address
	for range d.Info().Transactions {
		h := m.Hash()
		senders = append(senders, common.Address(h[:20]))
	}
	var out bytes.Buffer
	if _, _, err := WriteSenders(&out, d.Info(), senders); err != nil {
		t.Fatal(err)
	}
	f, err := Open("senders", 2, memorySource(out.Bytes()), nil)
	if err != nil {
		t.Fatal(err)
	}
	s, err := NewSenders(f)
	if err != nil {
		t.Fatal(err)
	}
	got, err := s.Append(nil, 0, uint32(len(senders)), nil)
	if err != nil || !slices.Equal(got, senders) || s.Of(d) != nil {
		t.Fatalf("senders differ (%v)", err)
	}
	if _, _, err := WriteSenders(&out, d.Info(), senders[1:]); err == nil {
		t.Fatal("one sender too few accepted")
	}
}
