package ingest

import (
	"context"
	"errors"
	"reflect"
	"testing"

	"pgregory.net/rapid"

	"github.com/leani-go/leani/chain"
)

// TestPoolBound lends and takes back chunks at random: charges never exceed the limit, but for a
// chunk that is too large for it by itself or that turned out larger than expected. SRC-011, STO-016
func TestPoolBound(t *testing.T) {
	const limit = 1000
	rapid.Check(t, func(t *rapid.T) {
		active := rapid.IntRange(1, 5).Draw(t, "active")
		p := newPool(limit, active, rapid.Int64Range(0, limit).Draw(t, "keep"))
		var lent []*chunk
		sum := func() (total int64) {
			for _, c := range append(append([]*chunk(nil), lent...), p.idle...) {
				total += c.charge
			}
			return total
		}
		grown := false // beyond what was expected
		t.Repeat(map[string]func(*rapid.T){
			"get": func(t *rapid.T) {
				cost := rapid.Int64Range(1, 1200).Draw(t, "cost")
				c := p.try(cost)
				if c == nil {
					if len(lent) == 0 {
						t.Fatal("refused although nothing is lent")
					}
					return
				}
				lent = append(lent, c)
				if p.used > limit && len(lent) > 1 {
					t.Fatalf("%d bytes for %d chunks", p.used, len(lent))
				}
			},
			"settle": func(t *rapid.T) {
				if len(lent) == 0 {
					t.Skip("nothing is lent")
				}
				c := rapid.SampledFrom(lent).Draw(t, "chunk")
				memory := rapid.Int64Range(1, 1100).Draw(t, "memory")
				grown = grown || memory > c.charge
				p.settle(c, memory)
			},
			"put": func(t *rapid.T) {
				if len(lent) == 0 {
					t.Skip("nothing is lent")
				}
				i := rapid.IntRange(0, len(lent)-1).Draw(t, "chunk")
				c := lent[i]
				lent = append(lent[:i], lent[i+1:]...)
				p.put(c)
			},
			"": func(t *rapid.T) {
				switch {
				case p.used != sum():
					t.Fatalf("used: got %d want %d", p.used, sum())
				case p.lent != len(lent) || p.lent > active:
					t.Fatalf("lent: got %d want %d, at most %d", p.lent, len(lent), active)
				case p.used > limit && p.lent == 0 && !grown:
					t.Fatalf("%d bytes in reserve", p.used)
				case p.used > limit && p.lent > 1 && !grown:
					t.Fatalf("%d bytes for %d chunks", p.used, p.lent)
				}
			},
		})
	})
}

func TestPoolStopsWaiting(t *testing.T) {
	p := newPool(100, 9, 100)
	if _, err := p.get(context.Background(), 60); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := p.get(ctx, 60); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

// TestSizes compares the sizes that chunks are counted with with those of the compiler.
func TestSizes(t *testing.T) {
	for of, want := range map[reflect.Type]uintptr{
		reflect.TypeFor[chain.Block](): blockBytes, reflect.TypeFor[[]byte](): sliceBytes,
		reflect.TypeFor[chain.Receipt](): receiptBytes, reflect.TypeFor[chain.Log](): logBytes,
	} {
		if got := of.Size(); got != want {
			t.Errorf("%v: %d bytes, chunks count %d", of, got, want)
		}
	}
}
