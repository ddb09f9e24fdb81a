package bench

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/zeebo/xxh3"

	"github.com/leani-go/leani/chain"
)

// digest is over everything in the blocks of a corpus.
func digest(t *testing.T, c *Corpus) string {
	t.Helper()
	h := xxh3.New()
	err := c.Each(t.Context(), func(b *chain.Block) error {
		_, _ = h.Write(b.Header)
		for i := range b.Transactions {
			_, _ = h.Write(b.Transactions[i])
			_, _ = h.Write(b.TransactionHashes[i][:])
			_, _ = h.Write([]byte{b.Receipts[i].Type, b.Receipts[i].Status, byte(b.Receipts[i].CumulativeGasUsed), byte(b.Receipts[i].LogsEnd)})
		}
		for i := range b.Logs {
			l := &b.Logs[i]
			_, _ = h.Write(l.Address[:])
			for k := range l.NumTopics {
				_, _ = h.Write(l.Topics[k][:])
			}
			_, _ = h.Write(l.Data)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	sum := h.Sum128().Bytes()
	return hex.EncodeToString(sum[:])
}

// The corpus is the same on every machine and in every release: figures compare only then. When it has
// to change, all figures have to be measured again.
func TestCorpusIsPinned(t *testing.T) {
	const want = "ca9e1abcb6170856dec9b8b6bab2e043"
	if got := digest(t, NewCorpus(1, 64)); got != want {
		t.Errorf("blocks: got digest %s want %s", got, want)
	}
	queries, err := NewCorpus(1, 64).Queries()
	if err != nil {
		t.Fatal(err)
	}
	var text []byte
	for i := range queries {
		text = append(text, queries[i].Body()...)
	}
	const wantQueries = "2c308b6e6a382fcd"
	if got := hex.EncodeToString(crypto.Keccak256(text)[:8]); got != wantQueries {
		t.Errorf("queries: got digest %s want %s", got, wantQueries)
	}
}

// Blocks follow each other and are complete, and a prefix of a longer corpus is the same chain.
func TestCorpusBlocks(t *testing.T) {
	const blocks = 500
	var parent common.Hash
	var transactions, logs int
	next := uint64(0)
	err := NewCorpus(3, blocks).Each(t.Context(), func(b *chain.Block) error {
		if b.Number != next || b.ParentHash != parent || crypto.Keccak256Hash(b.Header) != b.Hash || !bytes.Contains(b.Header, parent[:]) {
			t.Fatalf("block %d does not follow %d %x", b.Number, next, parent)
		}
		if len(b.TransactionHashes) != len(b.Transactions) || len(b.Receipts) != len(b.Transactions) {
			t.Fatalf("block %d: %d transactions, %d hashes, %d receipts", b.Number, len(b.Transactions), len(b.TransactionHashes), len(b.Receipts))
		}
		if n := len(b.Receipts); n > 0 && int(b.Receipts[n-1].LogsEnd) != len(b.Logs) {
			t.Fatalf("block %d: receipts have %d of %d logs", b.Number, b.Receipts[n-1].LogsEnd, len(b.Logs))
		}
		next, parent = next+1, b.Hash
		transactions += len(b.Transactions)
		logs += len(b.Logs)
		return nil
	})
	if err != nil || next != blocks {
		t.Fatalf("got %d blocks, %v", next, err)
	}
	// The averages that the package comment promises, within five of a hundred.
	for _, c := range []struct {
		what      string
		got, want float64
	}{{"transactions", float64(transactions) / blocks, 228}, {"logs", float64(logs) / blocks, 432}} {
		if c.got < c.want*0.95 || c.got > c.want*1.05 {
			t.Errorf("%s a block: got %.1f, want about %.0f", c.what, c.got, c.want)
		}
	}
	var hashes []common.Hash
	for _, c := range []*Corpus{NewCorpus(3, 10), NewCorpus(3, blocks)} {
		h, err := c.Hashes([]uint64{0, 9})
		if err != nil {
			t.Fatal(err)
		}
		hashes = append(hashes, h...)
	}
	if hashes[0] != hashes[2] || hashes[1] != hashes[3] {
		t.Error("a longer corpus has other blocks")
	}
}

// Each stops with the error of its callback and with the context, and leaves no goroutine behind.
func TestCorpusEachStops(t *testing.T) {
	stop := errors.New("enough")
	if err := NewCorpus(1, 1000).Each(t.Context(), func(b *chain.Block) error {
		if b.Number == 3 {
			return stop
		}
		return nil
	}); err != stop {
		t.Errorf("got %v, want the error of the callback", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	if err := NewCorpus(1, 1000).Each(ctx, func(*chain.Block) error { cancel(); return nil }); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want cancellation", err)
	}
}

// The expected number of logs of every query is what a plain walk over all blocks counts.
func TestCorpusExpectations(t *testing.T) {
	c := NewCorpus(2, 300)
	queries, err := c.Queries()
	if err != nil {
		t.Fatal(err)
	}
	got := make([]int, len(queries))
	if err := c.Each(t.Context(), func(b *chain.Block) error {
		for i := range queries {
			q := &queries[i]
			if q.BlockHash != nil && *q.BlockHash != b.Hash || q.BlockHash == nil && !q.Blocks.Contains(b.Number) {
				continue
			}
			for k := range b.Logs {
				if q.Filter.Match(&b.Logs[k]) {
					got[i]++
				}
			}
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	classes := make(map[string]int)
	for i := range queries {
		if got[i] != queries[i].Expect {
			t.Errorf("query %s: %d logs match, %d are expected", queries[i].ID, got[i], queries[i].Expect)
		}
		if got[i] > resultLimit {
			t.Errorf("query %s returns %d logs", queries[i].ID, got[i])
		}
		classes[queries[i].Class] += got[i]
	}
	if len(classes) != 16 || len(queries) != 16*queriesOfClass {
		t.Errorf("got %d classes with %d queries", len(classes), len(queries))
	}
	for class, n := range classes {
		if none := class[0] == 'h' && class[1] != '3'; none != (n == 0) && class[0] != 'h' {
			t.Errorf("class %s returns %d logs in all", class, n)
		}
	}
	t.Log(classes)
}

// Popularity falls as it should: the alias tables draw what they are made of.
func TestZipf(t *testing.T) {
	z := newZipf(100, 1.1, 1.5)
	counts := make([]int, 100)
	const draws = 1 << 20
	for i := range uint64(draws) {
		counts[z.draw(scramble(i))]++
	}
	// Ranks 0 and 9 have weights 1.5^-1.1 and 10.5^-1.1: a ratio of 8.5.
	if ratio := float64(counts[0]) / float64(counts[9]); ratio < 8 || ratio > 9 {
		t.Errorf("rank 0 is %.2f times as frequent as rank 9, want 8.5", ratio)
	}
	for i, n := range counts {
		if n == 0 {
			t.Errorf("rank %d is never drawn", i)
		}
	}
}

func BenchmarkCorpus(b *testing.B) {
	b.ReportAllocs()
	c := NewCorpus(1, uint64(b.N))
	logs := 0
	if err := c.Each(b.Context(), func(b *chain.Block) error { logs += len(b.Logs); return nil }); err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(float64(logs)/float64(b.N), "logs/block")
}
