package codec

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"testing"
)

func BenchmarkEliasFanoDecode128(b *testing.B) {
	rng := rand.New(rand.NewPCG(1, 1))
	values := make([]uint32, 128)
	for i := range values {
		values[i] = rng.Uint32N(1 << 20)
	}
	slices.Sort(values)
	shift := EliasFanoShift(len(values), 1<<20)
	enc := append(AppendEliasFano(nil, values, 0, shift, 1<<20), make([]byte, Slack)...)
	dst := make([]uint32, 128)
	b.ReportAllocs()
	b.SetBytes(128 * 4)
	for b.Loop() {
		if err := DecodeEliasFano(dst, enc, 0, shift, EliasFanoUnary(len(values), shift, 1<<20)); err != nil {
			b.Fatal(err)
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
