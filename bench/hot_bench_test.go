package bench

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"github.com/leani-go/leani/api/ethjson"
	"github.com/leani-go/leani/chain"
	"github.com/leani-go/leani/codec"
)

// hotBlocks is the hot tier of the benchmarks.
const hotBlocks = 256

// hotStore is a store of the corpus whose newest blocks are in the hot tier, and a copy of the newest one.
func hotStore(b *testing.B, recent uint64) (*Store, *chain.Block) {
	b.Helper()
	c := NewCorpus(1, corpusBlocks)
	s, err := OpenStore(StoreOptions{Dir: filepath.Join(b.TempDir(), "store"), ChainID: corpusNetwork().ChainID(), CacheBytes: 1 << 30, Compression: codec.Snappy})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := s.Close(); err != nil {
			b.Error(err)
		}
	})
	if err := c.WriteHot(b.Context(), s, recent); err != nil {
		b.Fatal(err)
	}
	if _, err := s.History.Compact(b.Context()); err != nil {
		b.Fatal(err)
	}
	v, err := s.History.View()
	if err != nil {
		b.Fatal(err)
	}
	defer v.Close()
	head, _ := v.Head()
	newest := new(chain.Block)
	if err := v.LoadBlock(b.Context(), head, chain.PartsAll, newest); err != nil {
		b.Fatal(err)
	}
	return s, newest
}

// BenchmarkLogsHot asks what a log query over files and 256 recent blocks costs in process and encoded, at rest
// and while the newest block is replaced fifty times a second, which is some six hundred times as often as on the main
// network. commit-p50-us and commit-p99-us are what those replacements take, with their fsync.
func BenchmarkLogsHot(b *testing.B) {
	queries := LogQueries(corpusQueries(b))
	for _, c := range []struct {
		name   string
		recent uint64
		pause  time.Duration
	}{{"Sealed", 0, 0}, {"Hot", hotBlocks, 0}, {"Writing", hotBlocks, 20 * time.Millisecond}} {
		b.Run(c.name, func(b *testing.B) {
			s, newest := hotStore(b, c.recent)
			for _, class := range Classes(queries) {
				b.Run(class, func(b *testing.B) { benchmarkHot(b, s, newest, c.pause, OfClass(queries, class)) })
			}
		})
	}
}

func benchmarkHot(b *testing.B, s *Store, newest *chain.Block, pause time.Duration, queries []Query) {
	encoder := ethjson.NewEncoder(corpusNetwork())
	var buf []byte
	ask := func(q *Query) {
		a, err := s.Ask(b.Context(), q, encoder, buf)
		if err != nil {
			b.Fatal(err)
		}
		buf = a.JSON
	}
	for i := range queries {
		ask(&queries[i])
	}
	ctx, stop := context.WithCancel(b.Context())
	defer stop()
	type result struct {
		times Times
		err   error
	}
	done := make(chan result, 1)
	if pause > 0 {
		head := Head{History: s.History, Block: newest, Pause: pause}
		go func() {
			times, err := head.Run(ctx)
			done <- result{times, err}
		}()
	}
	var times Times
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		start := time.Now()
		ask(&queries[i%len(queries)])
		times = append(times, time.Since(start))
	}
	b.ReportMetric(microseconds(times.Median()), "p50-us")
	b.ReportMetric(microseconds(times.Quantile(0.99)), "p99-us")
	if pause == 0 {
		return
	}
	stop()
	r := <-done
	if r.err != nil {
		b.Fatal(r.err)
	}
	if len(r.times) > 0 {
		b.ReportMetric(microseconds(r.times.Median()), "commit-p50-us")
		b.ReportMetric(microseconds(r.times.Quantile(0.99)), "commit-p99-us")
	}
}

// corpusQueries are the queries of the corpus with what they must find.
func corpusQueries(b *testing.B) []Query {
	b.Helper()
	queries, err := NewCorpus(1, corpusBlocks).Queries()
	if err != nil {
		b.Fatal(err)
	}
	return queries
}

// BenchmarkArrival measures one full block from memory to where views show it, durable: encoding, batch, fsync.
func BenchmarkArrival(b *testing.B) {
	s, newest := hotStore(b, hotBlocks)
	b.ReportMetric(float64(len(newest.Logs)), "logs/block")
	ctx, stop := context.WithCancel(b.Context())
	defer stop()
	head := Head{History: s.History, Block: newest}
	var times Times
	for b.Loop() {
		t, err := head.Once(ctx)
		if err != nil {
			b.Fatal(err)
		}
		times = append(times, t)
	}
	b.ReportMetric(microseconds(times.Median()), "p50-us")
	b.ReportMetric(microseconds(times.Quantile(0.99)), "p99-us")
}
