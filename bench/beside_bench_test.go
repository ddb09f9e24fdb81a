package bench

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"
)

// childVariable makes this test program a child of a measurement.
const childVariable = "LEANI_BENCH_CHILD"

// runAsChild runs the part of a measurement that the environment names, and tells whether it names
// one.
func runAsChild() bool {
	var err error
	switch os.Getenv(childVariable) {
	case "":
		return false
	case "beside":
		err = BesideChild(context.Background(), os.Stdin, os.Stdout, os.Args[1:])
	case "largecold":
		err = LargeColdChild(context.Background(), os.Stdout, os.Args[1:])
	default:
		err = fmt.Errorf("unknown value of %s", childVariable)
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "error: %v\n", err)
		os.Exit(1)
	}
	return true
}

// closeLab makes the store of the test chain and closes it, as another process will open it.
func closeLab(tb testing.TB) {
	tb.Helper()
	s, _ := labStore(tb, false)
	if err := s.Close(); err != nil {
		tb.Fatal(err)
	}
	delete(stores.lab, false)
}

// BenchmarkBeside asks how long a query for a rare address takes while two clients ask for 10,000 logs
// one query after the other, and while senders are filled besides as the node does it, or blocks in a
// process of its own or in the node's. An operation is a rare query every two milliseconds; p99-us is the figure of the goal.
func BenchmarkBeside(b *testing.B) {
	c := testChain(b)
	if len(c.Queries) == 0 {
		b.Skip("the test chain has no queries")
	}
	closeLab(b)
	self, err := os.Executable()
	if err != nil {
		b.Fatal(err)
	}
	b.Setenv(childVariable, "beside")
	for _, k := range []struct {
		name     string
		clients  int
		backfill Backfill
	}{
		{"Nothing", 0, NoBackfill},
		{"Heavy", 2, NoBackfill},
		{"HeavyAndSenders", 2, SendersBackfill},
		{"HeavyAndBlocksElsewhere", 2, ProcessBackfill},
		{"HeavyAndBlocksInNode", 2, NodeBackfill},
	} {
		b.Run(k.name, func(b *testing.B) {
			r, err := Beside(b.Context(), BesideOptions{
				Self: []string{self}, Chain: chainFolder(b), Store: labFolder(c, false),
				Light: []string{"b_rare_addr_full"}, Heavy: []string{"a1_hot_addr_10k", "f1_100addr_topic0"},
				HeavyClients: k.clients, Backfill: k.backfill, Requests: b.N, Pause: 2 * time.Millisecond,
			})
			if err != nil {
				b.Fatal(err)
			}
			b.ReportMetric(microseconds(r.Times.Median()), "p50-us")
			b.ReportMetric(microseconds(r.Times.Quantile(0.99)), "p99-us")
			b.ReportMetric(microseconds(r.Times.Quantile(1)), "max-us")
			b.ReportMetric(r.HeavyPerSecond, "heavy/s")
			b.ReportMetric(r.FilledPerSecond, "filled-blocks/s")
		})
	}
}
