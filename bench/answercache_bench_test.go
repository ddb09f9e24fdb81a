package bench

import (
	"errors"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/leani-go/leani/chain"
)

// BenchmarkAnswerCache asks what a cache of finished answers could gain at most: every look-up, and the log
// queries of one block, from the node as it is, and from a server that holds all answers in memory, always has
// the one that is asked for and does nothing but send it. cpu-us is processor time of client and server together;
// MB is what the answers would hold.
//
// docs/adr/0015-no-answer-cache.md says what follows from it.
func BenchmarkAnswerCache(b *testing.B) {
	if len(testChain(b).Queries) == 0 {
		b.Skip("the test chain has no queries")
	}
	s, c := labStore(b, true)
	queries := slices.Concat(LookUps(c.Queries), OfClass(LogQueries(c.Queries), "i_blockhash"))
	for _, class := range Classes(queries) {
		list := OfClass(queries, class)
		b.Run(class+"/node", func(b *testing.B) {
			node, err := Serve(s, c.Network)
			if err != nil {
				b.Fatal(err)
			}
			client := node.Client()
			defer func() {
				client.Close()
				if err := node.Close(); err != nil {
					b.Error(err)
				}
			}()
			benchmarkAnswers(b, client, list)
		})
		b.Run(class+"/cached", func(b *testing.B) {
			url, held := serveAnswers(b, s, c.Network, list)
			client := newClient(url)
			defer client.Close()
			benchmarkAnswers(b, client, list)
			b.ReportMetric(float64(held)/1e6, "MB")
		})
	}
}

// benchmarkAnswers asks the queries in turns.
func benchmarkAnswers(b *testing.B, client *Client, queries []Query) {
	for i := range queries {
		if err := Check(b.Context(), client, &queries[i]); err != nil {
			b.Fatal(err)
		}
	}
	var times Times
	cpu := ProcessorTime()
	for i := 0; b.Loop(); i++ {
		start := time.Now()
		if _, err := client.Ask(b.Context(), &queries[i%len(queries)]); err != nil {
			b.Fatal(err)
		}
		times = append(times, time.Since(start))
	}
	b.ReportMetric(microseconds(ProcessorTime()-cpu)/float64(len(times)), "cpu-us")
	b.ReportMetric(microseconds(times.Median()), "p50-us")
}

// serveAnswers serves the answers of the node from memory until the benchmark ends, and gives their size.
func serveAnswers(b *testing.B, s *Store, network *chain.Network, queries []Query) (url string, held int) {
	b.Helper()
	node, err := Serve(s, network)
	if err != nil {
		b.Fatal(err)
	}
	client, answers := node.Client(), make(map[string][]byte)
	for i := range queries {
		answer, err := client.Ask(b.Context(), &queries[i])
		if err != nil {
			b.Fatal(err)
		}
		answers[string(queries[i].Body())] = slices.Clone(answer)
		held += len(answer)
	}
	client.Close()
	if err := node.Close(); err != nil {
		b.Fatal(err)
	}
	server := &fasthttp.Server{Handler: func(c *fasthttp.RequestCtx) {
		c.SetContentType("application/json")
		c.Response.SetBodyRaw(answers[string(c.PostBody())])
	}}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- server.Serve(listener) }() // ends with Shutdown
	b.Cleanup(func() {
		if err := errors.Join(server.Shutdown(), <-done); err != nil && !strings.Contains(err.Error(), "closed") {
			b.Error(err)
		}
	})
	return "http://" + listener.Addr().String(), held
}
