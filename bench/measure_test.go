package bench

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/leani-go/leani/api/ethjson"
)

// testCorpus makes a small corpus in a folder that all tests share.
func testCorpus(t *testing.T, blocks uint64) *CorpusStore {
	t.Helper()
	made, err := MakeCorpusStore(t.Context(), filepath.Join(stores.temporary, "test-corpus"), NewCorpus(7, blocks), nil)
	if err != nil {
		t.Fatal(err)
	}
	return made
}

// What a query costs follows what it returns and how many terms it has, not how long the chain is.
func TestPagesOfQueries(t *testing.T) {
	made := testCorpus(t, 400)
	s, err := OpenStore(StoreOptions{Dir: made.Store(), ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	encoder := ethjson.NewEncoder(made.Network())
	for i := range made.Queries {
		q := &made.Queries[i]
		s.History.Cache().Drop()
		a, err := s.Ask(t.Context(), q, encoder, nil)
		if err != nil {
			t.Fatal(err)
		}
		terms := len(q.Filter.Addresses)
		for _, topics := range q.Filter.Topics {
			terms += len(topics)
		}
		// A term is found in two pages, and its postings take a few more. A log is in a page with
		// others, and its values in pages of dictionaries, each shared at best by all. The logs of
		// a short range are all read, without the index: some 16 pages and what they refer to.
		limit := uint64(40 + 8*terms + 4*a.Logs)
		if a.Access.Pages > limit || a.Access.Misses > a.Access.Pages || a.Access.BytesRead > a.Access.Misses*16<<10 {
			t.Errorf("query %s: %d terms, %d logs: %d pages, %d read with %d bytes; want at most %d pages", q.ID, terms, a.Logs,
				a.Access.Pages, a.Access.Misses, a.Access.BytesRead, limit)
		}
	}
}

// Measure has figures of every class, and finds an answer that is wrong.
func TestMeasure(t *testing.T) {
	made := testCorpus(t, 400)
	s, err := OpenStore(StoreOptions{Dir: made.Store(), ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	figures, err := Measure(t.Context(), s, made.Network(), made.Queries, 1)
	if err != nil {
		t.Fatal(err)
	}
	if len(figures) != 16 {
		t.Errorf("got %d classes", len(figures))
	}
	for _, f := range figures {
		if f.Queries != queriesOfClass || f.Warm <= 0 || f.HTTP <= 0 || f.Cold <= 0 || f.Pages < f.Reads || f.Reads == 0 || f.Bytes == 0 {
			t.Errorf("figures %+v", f)
		}
	}
	made.Queries[3].Expect++
	if _, err := Measure(t.Context(), s, made.Network(), made.Queries, 1); !errors.Is(err, errCount) {
		t.Errorf("a wrong answer gave %v", err)
	}
}

// A corpus that is there is not made again, one of other parameters is.
func TestMakeCorpusStoreOnce(t *testing.T) {
	folder := t.TempDir()
	for _, k := range []struct {
		blocks uint64
		made   bool
	}{{40, true}, {40, false}, {41, true}} {
		made := false
		c, err := MakeCorpusStore(t.Context(), folder, NewCorpus(1, k.blocks), func(uint64) { made = true })
		if err != nil {
			t.Fatal(err)
		}
		if made != k.made || len(c.Queries) != 16*queriesOfClass {
			t.Errorf("%d blocks: made %t, want %t; %d queries", k.blocks, made, k.made, len(c.Queries))
		}
	}
}

// The whole of LargeCold on short chains, in processes of its own, within 512 MiB.
func TestLargeCold(t *testing.T) {
	if testing.Short() {
		t.Skip("slow, starts many processes: left out with -short")
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv(childVariable, "largecold")
	var log bytes.Buffer
	chains, err := LargeCold(t.Context(), LargeColdOptions{
		Dir: t.TempDir(), Self: self, Blocks: []uint64{60, 120}, Seed: 1, Runs: 1, Passes: 1, Log: &log,
		Class: []string{"b_rare_addr_full", "h1_nomatch_addr_full"},
	})
	if err != nil {
		t.Fatalf("%v\n%s", err, log.String())
	}
	var out strings.Builder
	if err := WriteLargeCold(&out, chains); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(out.String(), "| h1_nomatch_addr_full |"); n != 3 {
		t.Errorf("a class is in %d tables, want 3:\n%s", n, out.String())
	}
	for _, c := range chains {
		if c.PeakMemory == 0 || c.PeakMemory > largeColdMemory || len(c.Classes) != 2 {
			t.Errorf("%d blocks: peak memory %d, %d classes", c.Blocks, c.PeakMemory, len(c.Classes))
		}
	}
}

// Beside measures with its processes running, and ends them.
func TestBeside(t *testing.T) {
	if testing.Short() {
		t.Skip("slow, fills a store: left out with -short")
	}
	c := testChain(t)
	closeLab(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv(childVariable, "beside")
	for _, backfill := range []Backfill{NoBackfill, SendersBackfill, ProcessBackfill, NodeBackfill} {
		r, err := Beside(t.Context(), BesideOptions{
			Self: []string{self}, Chain: chainFolder(t), Store: labFolder(c, false),
			Light: []string{"b_rare_addr_full"}, Heavy: []string{"g_open_20blk"}, HeavyClients: 1, Backfill: backfill,
			Requests: 100, Pause: time.Millisecond,
		})
		if err != nil {
			t.Fatal(err)
		}
		// How many heavy queries end meanwhile depends on what else the machine does; on a busy one it may be none.
		if len(r.Times) != 100 || r.NodeCPUPerSecond == 0 {
			t.Errorf("%s: got %d times, %f processors", backfill, len(r.Times), r.NodeCPUPerSecond)
		}
		t.Logf("%s: %f heavy queries a second", backfill, r.HeavyPerSecond)
	}
}

func TestTimes(t *testing.T) {
	times := Times{5, 1, 4, 2, 3}
	for q, want := range map[float64]time.Duration{0: 1, 0.5: 3, 0.99: 5, 1: 5} {
		if got := times.Quantile(q); got != want {
			t.Errorf("quantile %v: got %v want %v", q, got, want)
		}
	}
	if got := Times(nil).Median(); got != 0 {
		t.Errorf("median of nothing: got %v", got)
	}
	if got := times.Ratio(Times{6}); got != 0.5 {
		t.Errorf("ratio: got %v", got)
	}
}

// The columns of a store add up to its files, but for header, footer and trailer.
func TestColumns(t *testing.T) {
	made := testCorpus(t, 400)
	s, err := OpenStore(StoreOptions{Dir: made.Store(), ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	columns, err := s.Columns(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	space := s.Space()
	g := columns.Groups(space.Transactions)
	sum := g.Logs + g.Index + g.Hashes + g.Locators + g.Cold + g.Senders + g.Rest
	all := space.DataBytes + space.IndexBytes
	if outside := all - sum; outside < 0 || outside > all/1000+4096*int64(space.Files) {
		t.Errorf("columns %+v take %d of %d bytes", g, sum, all)
	}
	if g.Logs <= 0 || g.Index <= 0 || g.Locators <= 0 || g.Cold <= 0 || g.Rest <= 0 {
		t.Errorf("groups %+v", g)
	}
}
