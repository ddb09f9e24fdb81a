package segments

import (
	"bytes"
	"io"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/leani-go/leani/chain"
	"github.com/leani-go/leani/codec"
	"github.com/leani-go/leani/ingest/era"
	"github.com/leani-go/leani/internal/shareddata"
)

// The benchmarks of this file run over the first labBlocks blocks of the test chain: 326,376 logs in
// 801 blocks, popular and rare contracts mixed as on Mainnet.
const labBlocks = 801

// lab is the test chain as files, made once for all benchmarks.
type lab struct {
	blocks      []chain.Block
	logs        int
	data, index []byte
}

var (
	labOnce sync.Once
	labMade *lab
)

// labChain builds the files of the test chain, or skips the benchmark where its data is absent.
func labChain(tb testing.TB) *lab {
	path := shareddata.Path(tb, "chainlab-800", "chainlab-00000-3b8d3ead-noproofs.ere")
	labOnce.Do(func() {
		f, err := era.OpenPath(path, era.Options{})
		if err != nil {
			tb.Fatal(err)
		}
		defer f.Close()
		l := &lab{blocks: make([]chain.Block, labBlocks)}
		for n := range l.blocks {
			b := &l.blocks[n]
			if err := f.ReadBlock(uint64(n), chain.PartsAll, new(era.Buffer), b); err != nil {
				tb.Fatal(err)
			}
			b.Hash = crypto.Keccak256Hash(b.Header)
			for _, tx := range b.Transactions {
				b.TransactionHashes = append(b.TransactionHashes, crypto.Keccak256Hash(tx))
			}
			l.logs += len(b.Logs)
		}
		pointers := make([]*chain.Block, labBlocks)
		for i := range l.blocks {
			pointers[i] = &l.blocks[i]
		}
		l.data, l.index = buildPair(tb, pointers, codec.Snappy)
		labMade = l
	})
	if labMade == nil {
		tb.Fatal("the test chain could not be read")
	}
	return labMade
}

// perLog reports time and bytes a log of a benchmark whose operations handle logs logs and write size
// bytes each.
func perLog(b *testing.B, logs, size int) {
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(logs), "ns/log")
	if size > 0 {
		b.ReportMetric(float64(size)/float64(logs), "B/log")
	}
}

func (l *lab) builder(tb testing.TB, out io.Writer) *DataBuilder {
	d := NewDataBuilder(out, DataOptions{Compression: codec.Snappy})
	for i := range l.blocks {
		if err := d.Add(&l.blocks[i]); err != nil {
			tb.Fatal(err)
		}
	}
	if _, _, err := d.Finish(); err != nil {
		tb.Fatal(err)
	}
	return d
}

// What does it cost to write a data file of the whole chain, decoded blocks given?
func BenchmarkDataBuild(b *testing.B) {
	l := labChain(b)
	b.ReportAllocs()
	b.SetBytes(int64(len(l.data)))
	for b.Loop() {
		l.builder(b, io.Discard)
	}
	perLog(b, l.logs, len(l.data))
}

// What does its index cost on top?
func BenchmarkIndexBuild(b *testing.B) {
	l := labChain(b)
	d := l.builder(b, io.Discard)
	b.ReportAllocs()
	b.SetBytes(int64(len(l.index)))
	for b.Loop() {
		if _, _, err := d.WriteIndex(io.Discard); err != nil {
			b.Fatal(err)
		}
	}
	perLog(b, l.logs, len(l.index))
}

// What does it cost to merge eight index files?
func BenchmarkMerge(b *testing.B) {
	l := labChain(b)
	var parts []*Index
	for i := range 8 {
		var blocks []*chain.Block
		for n := i * labBlocks / 8; n < (i+1)*labBlocks/8; n++ {
			blocks = append(blocks, &l.blocks[n])
		}
		_, raw := buildPair(b, blocks, codec.Snappy)
		parts = append(parts, openIndex(b, raw, uint64(i), nil))
	}
	b.ReportAllocs()
	b.SetBytes(int64(len(l.index)))
	var out bytes.Buffer
	for b.Loop() {
		out.Reset()
		if _, _, err := MergeIndexes(b.Context(), &out, parts); err != nil {
			b.Fatal(err)
		}
	}
	perLog(b, l.logs, out.Len())
}

// cacheStates runs a benchmark with every page in the cache, and with none.
func cacheStates(b *testing.B, run func(b *testing.B, cache *Cache)) {
	b.Run("warm", func(b *testing.B) { run(b, NewCache(256<<20)) })
	b.Run("uncached", func(b *testing.B) { run(b, nil) })
}

// pagesPerOp reports what an operation touched.
func pagesPerOp(b *testing.B, access *Access) {
	b.ReportMetric(float64(access.Pages)/float64(b.N), "pages/op")
}

// What does a row cost when all rows are read in order? An operation is a pass over all logs.
func BenchmarkScan(b *testing.B) {
	l := labChain(b)
	for name, filter := range map[string]*chain.LogFilter{
		"all":  {},
		"none": {Addresses: []common.Address{{1}}},
	} {
		b.Run(name, func(b *testing.B) {
			d := openData(b, l.data, NewCache(256<<20))
			m := NewMatcher(filter)
			b.ReportAllocs()
			for b.Loop() {
				c := d.Cursor(nil)
				for row := range d.Info().Logs {
					if _, err := c.Find(uint32(row), m); err != nil {
						b.Fatal(err)
					}
				}
				c.Close()
			}
			perLog(b, l.logs, 0)
		})
	}
}

// What does a row cost in an answer of rows that lie far apart? An operation is one row; queries of
// 64 rows each open a cursor of their own.
func BenchmarkFind(b *testing.B) {
	l := labChain(b)
	cacheStates(b, func(b *testing.B, cache *Cache) {
		d := openData(b, l.data, cache)
		m := NewMatcher(&chain.LogFilter{})
		rng := rand.New(rand.NewPCG(1, 1))
		rows := make([]uint32, 64*1024)
		for i := range rows {
			rows[i] = rng.Uint32N(uint32(l.logs))
		}
		for i := 0; i < len(rows); i += 64 {
			slices.Sort(rows[i : i+64])
		}
		var access Access
		i := 0
		c := d.Cursor(&access)
		b.ReportAllocs()
		for b.Loop() {
			if i%64 == 0 {
				c.Close()
				c = d.Cursor(&access)
			}
			if l, err := c.Find(rows[i%len(rows)], m); err != nil || l == nil {
				b.Fatal(l, err)
			}
			i++
		}
		c.Close()
		pagesPerOp(b, &access)
	})
}

// What does it cost to find the list of a term, and to learn that there is none?
func BenchmarkTermLookup(b *testing.B) {
	l := labChain(b)
	var present []uint32
	for i := range l.blocks {
		for k := range l.blocks[i].Logs {
			if log := &l.blocks[i].Logs[k]; log.NumTopics > 1 {
				present = append(present, TopicTerm(1, log.Topics[1]))
			}
		}
	}
	rng := rand.New(rand.NewPCG(1, 1))
	absent := make([]uint32, 1<<16)
	for i := range absent {
		absent[i] = rng.Uint32()
	}
	rng.Shuffle(len(present), func(i, j int) { present[i], present[j] = present[j], present[i] })
	for name, terms := range map[string][]uint32{"present": present, "absent": absent} {
		b.Run(name, func(b *testing.B) {
			cacheStates(b, func(b *testing.B, cache *Cache) {
				x := openIndex(b, l.index, 1, cache)
				var access Access
				b.ReportAllocs()
				i := 0
				for b.Loop() {
					if _, err := x.Find(terms[i%len(terms)], &access); err != nil {
						b.Fatal(err)
					}
					i++
				}
				pagesPerOp(b, &access)
			})
		})
	}
}

// What does it cost to find a transaction by its hash, without reading it?
func BenchmarkTransactionLookup(b *testing.B) {
	l := labChain(b)
	var hashes []common.Hash
	for i := range l.blocks {
		hashes = append(hashes, l.blocks[i].TransactionHashes...)
	}
	rng := rand.New(rand.NewPCG(1, 1))
	rng.Shuffle(len(hashes), func(i, j int) { hashes[i], hashes[j] = hashes[j], hashes[i] })
	cacheStates(b, func(b *testing.B, cache *Cache) {
		x, d := openIndex(b, l.index, 1, cache), openData(b, l.data, cache)
		d.id = 2
		var access Access
		b.ReportAllocs()
		i := 0
		for b.Loop() {
			h := &hashes[i%len(hashes)]
			positions, err := x.Transactions(h, &access)
			if err != nil || len(positions) == 0 {
				b.Fatal(positions, err)
			}
			if got, err := d.TransactionHash(positions[0], &access); err != nil || (*got != *h && len(positions) == 1) {
				b.Fatal(got, err)
			}
			i++
		}
		pagesPerOp(b, &access)
	})
}

// longestList is the term with the most positions.
func (l *lab) longestList(tb testing.TB) uint32 {
	counts := map[uint32]int{}
	for i := range l.blocks {
		for k := range l.blocks[i].Logs {
			if log := &l.blocks[i].Logs[k]; log.NumTopics > 0 {
				counts[TopicTerm(0, log.Topics[0])]++
			}
		}
	}
	best, most := uint32(0), 0
	for term, n := range counts {
		if n > most {
			best, most = term, n
		}
	}
	if most < 10000 {
		tb.Fatalf("the longest list has only %d positions", most)
	}
	return best
}

// What does a step cost that skips a distance in a long list? An operation is one Seek.
func BenchmarkListSeek(b *testing.B) {
	l := labChain(b)
	x := openIndex(b, l.index, 1, NewCache(256<<20))
	list, err := x.Find(l.longestList(b), nil)
	if err != nil {
		b.Fatal(err)
	}
	for _, distance := range []struct {
		name string
		rows uint32
	}{{"next", 1}, {"100", 100}, {"1000", 1000}, {"10000", 10000}} {
		b.Run(distance.name, func(b *testing.B) {
			b.ReportAllocs()
			c := x.Open(list, nil)
			target := uint32(0)
			for b.Loop() {
				ok, err := c.Seek(target)
				if err != nil {
					b.Fatal(err)
				}
				if !ok {
					c, target = x.Open(list, nil), 0
					continue
				}
				target = c.Values()[0] + distance.rows
			}
		})
	}
}

// What does it cost to get a page that is cached?
func BenchmarkCacheGet(b *testing.B) {
	const pages = 10000
	cache := NewCache(256 << 20)
	for i := range uint64(pages) {
		cache.put(cacheKey{1, i * 4104}, make([]byte, 4096))
	}
	b.Run("hit", func(b *testing.B) {
		b.ReportAllocs()
		i := uint64(0)
		for b.Loop() {
			if cache.get(cacheKey{1, i % pages * 4104}) == nil {
				b.Fatal("miss")
			}
			i += 7
		}
	})
	b.Run("parallel", func(b *testing.B) {
		b.ReportAllocs()
		b.RunParallel(func(pb *testing.PB) {
			for i := uint64(0); pb.Next(); i += 7 {
				if cache.get(cacheKey{1, i % pages * 4104}) == nil {
					b.Fatal("miss")
				}
			}
		})
	})
}

// What does it cost to read a whole block back?
func BenchmarkLoad(b *testing.B) {
	l := labChain(b)
	for _, parts := range []struct {
		name  string
		parts chain.Parts
	}{{"all", chain.PartsAll}, {"receipts", chain.PartReceipts}} {
		b.Run(parts.name, func(b *testing.B) {
			d := openData(b, l.data, NewCache(256<<20))
			var block chain.Block
			b.ReportAllocs()
			n := uint64(0)
			for b.Loop() {
				if err := d.Load(n%labBlocks, parts.parts, &block, nil); err != nil {
					b.Fatal(err)
				}
				n++
			}
		})
	}
}
