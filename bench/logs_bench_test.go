package bench

import (
	"testing"
	"time"

	"github.com/leani-go/leani/api/ethjson"
	"github.com/leani-go/leani/chain"
	"github.com/leani-go/leani/segments"
)

// BenchmarkLogsLab asks what a log query costs on the test chain, by class, when the page cache holds
// what it needs: in process and encoded to JSON, and over HTTP and WebSocket from clients in Go. An operation
// is one query; the queries of a class take turns. p50-us is what the goals are about, pages/op what a
// query touches, readB/op what it would read with an empty page cache.
func BenchmarkLogsLab(b *testing.B) {
	s, c := labStore(b, false)
	benchmarkLogs(b, s, c.Network, c.Queries)
}

// BenchmarkLogsCorpus asks the same of the generated corpus, which needs no data from outside.
func BenchmarkLogsCorpus(b *testing.B) {
	s, queries := corpusStore(b)
	benchmarkLogs(b, s, corpusNetwork(), queries)
}

func benchmarkLogs(b *testing.B, s *Store, network *chain.Network, queries []Query) {
	queries = LogQueries(queries)
	b.Run("InProcess", func(b *testing.B) {
		for _, class := range Classes(queries) {
			b.Run(class, func(b *testing.B) { benchmarkInProcess(b, s, network, OfClass(queries, class)) })
		}
	})
	benchmarkTransports(b, s, network, queries)
}

// benchmarkTransports asks over HTTP and over a WebSocket.
func benchmarkTransports(b *testing.B, s *Store, network *chain.Network, queries []Query) {
	node, err := Serve(s, network)
	if err != nil {
		b.Fatal(err)
	}
	defer func() {
		if err := node.Close(); err != nil {
			b.Error(err)
		}
	}()
	for _, transport := range []struct {
		name    string
		connect func() (Asker, error)
	}{
		{"HTTP", func() (Asker, error) { return node.Client(), nil }},
		{"WebSocket", func() (Asker, error) { return node.SocketClient(b.Context()) }},
	} {
		b.Run(transport.name, func(b *testing.B) {
			client, err := transport.connect()
			if err != nil {
				b.Fatal(err)
			}
			defer client.Close()
			for _, class := range Classes(queries) {
				b.Run(class, func(b *testing.B) { benchmarkAsker(b, client, OfClass(queries, class)) })
			}
		})
	}
}

func benchmarkInProcess(b *testing.B, s *Store, network *chain.Network, queries []Query) {
	ctx, encoder := b.Context(), ethjson.NewEncoder(network)
	var buf []byte
	var cold segments.Access
	for i := range queries {
		s.History.Cache().Drop()
		a, err := s.Ask(ctx, &queries[i], encoder, buf)
		if err != nil {
			b.Fatal(err)
		}
		buf = a.JSON
		cold.BytesRead += a.Access.BytesRead
	}
	for i := range queries { // the cache was dropped: fill it again
		if _, err := s.Ask(ctx, &queries[i], nil, nil); err != nil {
			b.Fatal(err)
		}
	}
	var times Times
	var pages, logs uint64
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		start := time.Now()
		a, err := s.Ask(ctx, &queries[i%len(queries)], encoder, buf)
		if err != nil {
			b.Fatal(err)
		}
		times = append(times, time.Since(start))
		buf = a.JSON
		pages += a.Access.Pages
		logs += uint64(a.Logs)
	}
	n := float64(len(times))
	b.ReportMetric(microseconds(times.Median()), "p50-us")
	b.ReportMetric(float64(logs)/n, "logs/op")
	b.ReportMetric(float64(pages)/n, "pages/op")
	b.ReportMetric(float64(cold.BytesRead)/float64(len(queries)), "readB/op")
}

func benchmarkAsker(b *testing.B, client Asker, queries []Query) {
	ctx := b.Context()
	for i := range queries {
		if err := Check(ctx, client, &queries[i]); err != nil {
			b.Fatal(err)
		}
	}
	var times Times
	var size int
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		start := time.Now()
		answer, err := client.Ask(ctx, &queries[i%len(queries)])
		if err != nil {
			b.Fatal(err)
		}
		times = append(times, time.Since(start))
		size += len(answer)
	}
	n := float64(len(times))
	b.ReportMetric(microseconds(times.Median()), "p50-us")
	b.ReportMetric(microseconds(times.Quantile(0.99)), "p99-us")
	b.ReportMetric(float64(size)/n, "answerB/op")
}

// BenchmarkLookUpsLab asks what blocks, receipts and transactions cost over HTTP and WebSocket when senders are in
// their files: receipts of a block, a block with its transactions, a receipt and a transaction by hash.
func BenchmarkLookUpsLab(b *testing.B) {
	if len(testChain(b).Queries) == 0 {
		b.Skip("the test chain has no queries")
	}
	s, c := labStore(b, true)
	benchmarkTransports(b, s, c.Network, LookUps(c.Queries))
}

func microseconds(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }
