package codec

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"
)

// BenchmarkEliasFano asks what a block of 128 positions costs, dense ones and sparse ones: decoded, and
// probed for a few targets instead.
func BenchmarkEliasFano(b *testing.B) {
	for _, gap := range []uint32{2, 10, 8192} {
		rng := rand.New(rand.NewPCG(1, uint64(gap)))
		values, last := make([]uint32, 128), uint32(0)
		for i := range values {
			last += 1 + rng.Uint32N(2*gap-1)
			values[i] = last
		}
		bound := uint64(last) + 1
		shift := EliasFanoShift(len(values), bound)
		unary := EliasFanoUnary(len(values), shift, bound)
		enc := append(AppendEliasFano(nil, values, 0, shift, bound), make([]byte, Slack)...)
		b.Run(fmt.Sprintf("gap=%d/decode", gap), func(b *testing.B) {
			dst := make([]uint32, len(values))
			b.SetBytes(int64(4 * len(values)))
			for b.Loop() {
				if err := DecodeEliasFano(dst, enc, 0, shift, unary); err != nil {
					b.Fatal(err)
				}
			}
		})
		for _, n := range []uint32{4, 16, 32} {
			b.Run(fmt.Sprintf("gap=%d/probe=%d", gap, n), func(b *testing.B) {
				for b.Loop() {
					var p EliasFanoProbe
					if err := p.Reset(enc, len(values), shift, unary); err != nil {
						b.Fatal(err)
					}
					for i := range n {
						p.Has(i * last / n)
					}
				}
			})
		}
	}
}

func BenchmarkWordsDecode(b *testing.B) {
	data := make([]byte, 64)
	data[30], data[31], data[60] = 1, 2, 3
	enc := AppendWords(nil, data)
	var dst []byte
	b.ReportAllocs()
	b.SetBytes(64)
	for b.Loop() {
		var err error
		if dst, err = DecodeWords(dst[:0], enc, 64); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkPage(b *testing.B) {
	raw := bytes.Repeat([]byte("a log query touches scattered rows"), 500)
	for c := range compressions {
		stored := AppendPage(nil, c, raw)
		b.Run("append/"+c.String(), func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(raw)))
			var dst []byte
			for b.Loop() {
				dst = AppendPage(dst[:0], c, raw)
			}
		})
		b.Run("decode/"+c.String(), func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(raw)))
			for b.Loop() {
				if _, err := DecodePage(stored); err != nil {
					b.Fatal(err)
				}
			}
		})
		// Readers do not wait for each other: on more processors this is faster.
		b.Run("decode-parallel/"+c.String(), func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(raw)))
			b.RunParallel(func(p *testing.PB) {
				for p.Next() {
					if _, err := DecodePage(stored); err != nil {
						b.Error(err)
					}
				}
			})
		})
	}
}
