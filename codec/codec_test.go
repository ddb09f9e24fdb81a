package codec

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"pgregory.net/rapid"
)

func TestPackedRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		width := uint(rapid.IntRange(0, 32).Draw(t, "width"))
		values := rapid.SliceOf(rapid.Uint32Max(uint32(uint64(1)<<width-1))).Draw(t, "values")
		b := AppendPacked([]byte("prefix"), values, width)[6:]
		if got := len(b); got != PackedSize(len(values), width) {
			t.Fatalf("size %d, want %d", got, PackedSize(len(values), width))
		}
		p, rest, ok := NewPacked(append(b, make([]byte, Slack)...), len(values), width)
		if !ok || len(rest) != Slack {
			t.Fatalf("view refused (ok %v, rest %d)", ok, len(rest))
		}
		for i, v := range values {
			if got := p.At(i); got != uint64(v) {
				t.Fatalf("value %d: got %d, want %d", i, got, v)
			}
		}
	})
}

func TestBitWriterMixedWidths(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		widths := rapid.SliceOf(rapid.UintRange(0, MaximumWidth)).Draw(t, "widths")
		var w BitWriter
		var values []uint64
		for _, width := range widths {
			v := rapid.Uint64Max(1<<width-1).Draw(t, "v")
			values = append(values, v)
			w.Add(v, width)
		}
		b := append(w.Finish(), make([]byte, Slack)...)
		at := uint(0)
		for i, width := range widths {
			if got := ReadBits(b, at, width); got != values[i] {
				t.Fatalf("value %d of width %d: got %d, want %d", i, width, got, values[i])
			}
			at += width
		}
	})
}

func TestRank(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := rapid.SliceOfN(rapid.Byte(), 1, 40).Draw(t, "bits")
		n := rapid.UintRange(0, uint(len(b))*8).Draw(t, "n")
		var want uint
		for i := range n {
			want += uint(b[i>>3] >> (i & 7) & 1)
		}
		if got := Rank(append(slices.Clone(b), make([]byte, Slack)...), n); got != want {
			t.Fatalf("got %d, want %d", got, want)
		}
	})
}

func TestEliasFanoRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		base := rapid.Uint32Max(1<<20).Draw(t, "base")
		bound := rapid.Uint64Range(1, 1<<31).Draw(t, "bound")
		values := rapid.SliceOfN(rapid.Uint32Range(base, base+uint32(bound-1)), 0, 300).Draw(t, "values")
		slices.Sort(values)
		shift := EliasFanoShift(len(values), bound)
		b := AppendEliasFano(nil, values, base, shift, bound)
		if len(b) != EliasFanoSize(len(values), shift, bound) {
			t.Fatalf("size %d, want %d", len(b), EliasFanoSize(len(values), shift, bound))
		}
		b = append(b, make([]byte, Slack)...)
		got := make([]uint32, len(values))
		if err := DecodeEliasFano(got, b, base, shift, EliasFanoUnary(len(values), shift, bound)); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(got, values) {
			t.Fatalf("got %v, want %v", got, values)
		}
		for range 20 {
			target := rapid.Uint32Range(0, uint32(bound-1)).Draw(t, "target")
			if len(values) > 0 && rapid.Bool().Draw(t, "present") {
				target = rapid.SampledFrom(values).Draw(t, "value") - base
			}
			from, to := FindEliasFano(b, len(values), target, shift, EliasFanoUnary(len(values), shift, bound))
			wantFrom, found := slices.BinarySearch(values, base+target)
			wantTo := wantFrom
			for wantTo < len(values) && values[wantTo] == base+target {
				wantTo++
			}
			if !found {
				wantFrom, wantTo = 0, 0
			}
			if from != wantFrom || to != wantTo {
				t.Fatalf("find %d: got [%d, %d), want [%d, %d)", target, from, to, wantFrom, wantTo)
			}
		}
		targets := rapid.SliceOfN(rapid.Uint32Range(0, uint32(bound-1)), 0, 30).Draw(t, "targets")
		for _, v := range values {
			if v%3 == 0 {
				targets = append(targets, v-base)
			}
		}
		slices.Sort(targets)
		var p EliasFanoProbe
		if err := p.Reset(b, len(values), shift, EliasFanoUnary(len(values), shift, bound)); err != nil {
			t.Fatal(err)
		}
		for _, target := range targets {
			if _, want := slices.BinarySearch(values, base+target); p.Has(target) != want {
				t.Fatalf("probe of %d, want %v", target, want)
			}
		}
	})
}

func FuzzEliasFano(f *testing.F) {
	f.Add([]byte{1, 2, 3}, uint8(3), uint8(2), uint32(100))
	f.Fuzz(func(t *testing.T, b []byte, n, shift uint8, bound uint32) {
		dst := make([]uint32, n)
		_ = DecodeEliasFano(dst, b, 0, uint(shift), int(bound%1000))
		from, to := FindEliasFano(b, int(n), bound/2, uint(shift), int(bound%1000))
		if from < 0 || to < from || to > int(n) {
			t.Fatalf("positions [%d, %d) of %d", from, to, n)
		}
		var p EliasFanoProbe
		if err := p.Reset(b, int(n), uint(shift), int(bound%1000)); err != nil {
			return
		}
		for target := uint32(0); target < 1<<16; target += 1 + target/8 {
			has := p.Has(target)
			if from, to := FindEliasFano(b, int(n), target, uint(shift), int(bound%1000)); has && to == from {
				t.Fatalf("%d is in the list by probe alone", target)
			}
		}
	})
}

func TestWordsRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		data := rapid.SliceOfN(rapid.Byte(), 0, 200).Draw(t, "data")
		for i := 0; i+32 <= len(data); i += 32 { // fill words as the ABI does
			n := rapid.IntRange(0, 32).Draw(t, "fill")
			switch rapid.IntRange(0, 3).Draw(t, "kind") {
			case 0:
				clear(data[i : i+n])
			case 1:
				copy(data[i:i+n], bytes.Repeat([]byte{0xff}, n))
			case 2:
				clear(data[i+32-n : i+32])
			}
		}
		b := AppendWords([]byte{9}, data)[1:]
		got, err := DecodeWords([]byte{7}, b, len(data))
		if err != nil || !bytes.Equal(got[1:], data) {
			t.Fatalf("got %x (%v), want %x", got, err, data)
		}
		if _, err := DecodeWords(nil, append(b, 0), len(data)); err == nil {
			t.Fatal("surplus byte accepted")
		}
	})
}

func TestWordsTrim(t *testing.T) {
	word := func(lead byte, n int, tail ...byte) []byte {
		w := append(bytes.Repeat([]byte{lead}, n), tail...)
		return append(w, make([]byte, 32-len(w))...)
	}
	for name, c := range map[string]struct {
		word []byte
		size int
	}{
		"zero":           {word(0, 32), 1},
		"small":          {word(0, 31, 7), 2},
		"minus one":      {word(0xff, 32), 2},
		"negative":       {word(0xff, 29, 1, 2, 3), 4},
		"left aligned":   {word('a', 3), 4},
		"address":        {word(0, 12, bytes.Repeat([]byte{1}, 20)...), 21},
		"full":           {word(1, 32), 33},
		"long negative":  {word(0xff, 15, bytes.Repeat([]byte{1}, 17)...), 33},
		"long left part": {word('a', 16), 33},
	} {
		if got := len(AppendWords(nil, c.word)); got != c.size {
			t.Errorf("%s: %d bytes, want %d", name, got, c.size)
		}
	}
}

func FuzzWords(f *testing.F) {
	f.Add([]byte{0x21, 1, 2, 3}, uint16(64))
	f.Fuzz(func(t *testing.T, b []byte, size uint16) {
		out, err := DecodeWords(nil, b, int(size))
		if err == nil && len(out) != int(size) {
			t.Fatalf("%d bytes, want %d", len(out), size)
		}
	})
}

func TestPageRoundTripAndBitFlips(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	random := make([]byte, 5000)
	for i := range random {
		random[i] = byte(rng.Uint32())
	}
	for name, raw := range map[string][]byte{
		"empty": {}, "one byte": {1}, "zeros": make([]byte, 3000), "random": random,
		"text": bytes.Repeat([]byte("a log query touches scattered rows; "), 100),
	} {
		for c := range compressions {
			stored := AppendPage(nil, c, raw)
			got, err := DecodePage(slices.Clone(stored))
			if err != nil || !bytes.Equal(got, raw) {
				t.Fatalf("%s, %s: %v", name, c, err)
			}
			if tail := got[:len(got)+Slack][len(got):]; !bytes.Equal(tail, make([]byte, Slack)) {
				t.Fatalf("%s, %s: slack is %x", name, c, tail)
			}
			if name == "random" && Compression(stored[3]) != None {
				t.Fatalf("%s kept for random bytes", c)
			}
			// STO: every single flipped bit is noticed.
			for i := range min(len(stored), 300) {
				for bit := range 8 {
					bad := slices.Clone(stored)
					bad[i] ^= 1 << bit
					if _, err := DecodePage(bad); err == nil {
						t.Fatalf("%s, %s: flip of byte %d bit %d accepted", name, c, i, bit)
					}
				}
			}
			for n := range min(len(stored), 100) {
				if _, err := DecodePage(slices.Clone(stored[:n])); err == nil {
					t.Fatalf("%s, %s: first %d bytes accepted", name, c, n)
				}
			}
		}
	}
}

func FuzzPage(f *testing.F) {
	for c := range compressions {
		f.Add(AppendPage(nil, c, bytes.Repeat([]byte("abcd"), 50)))
	}
	f.Fuzz(func(t *testing.T, stored []byte) {
		if len(stored) >= PageHeader { // let damage reach the decompressors
			sum := pageChecksum(stored)
			stored = slices.Clone(stored)
			stored[4], stored[5], stored[6], stored[7] = byte(sum), byte(sum>>8), byte(sum>>16), byte(sum>>24)
		}
		raw, err := DecodePage(stored)
		if err == nil && len(raw) > MaximumPage {
			t.Fatalf("%d bytes", len(raw))
		}
	})
}

func TestCompressionNames(t *testing.T) {
	for c := range compressions {
		got, err := ParseCompression(c.String())
		if err != nil || got != c {
			t.Fatalf("%s: got %v, %v", c, got, err)
		}
	}
	if _, err := ParseCompression("lz4"); err == nil {
		t.Fatal("lz4 accepted")
	}
}

// Pages are compressed and decompressed by many at once, with shared encoders and decoders.
func TestConcurrentPages(t *testing.T) {
	var users sync.WaitGroup
	for user := range 8 {
		users.Go(func() {
			raw := bytes.Repeat([]byte{byte(user), 1, 2, 3}, 500+user)
			for c := range compressions {
				for range 20 {
					if got, err := DecodePage(AppendPage(nil, c, raw)); err != nil || !bytes.Equal(got, raw) {
						t.Errorf("%v: a page does not come back: %v", c, err)
					}
				}
			}
		})
	}
	users.Wait()
}
