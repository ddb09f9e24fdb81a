package segments

import (
	"bytes"
	"errors"
	"slices"
	"testing"

	"github.com/leani-go/leani/chain"
	"github.com/leani-go/leani/codec"
	"github.com/leani-go/leani/internal/chainmodel"
	"github.com/leani-go/leani/internal/corrupt"
)

// readEverything opens a file of any kind and reads all of it through the ordinary readers.
func readEverything(t testing.TB, raw []byte) error {
	f, err := Open("f", 1, memorySource(raw), nil)
	if err != nil {
		return err
	}
	if err := f.CheckPages(t.Context(), nil); err != nil {
		return err
	}
	return f.CheckRows(t.Context())
}

func smallPair(t testing.TB) (data, index []byte) {
	m := chainmodel.New(11, 5)
	var blocks []*chain.Block
	for len(blocks) < 4 {
		if b := m.Block(); len(b.Logs) < 60 {
			blocks = append(blocks, b)
		} else {
			m.Next, m.Parent = b.Number, b.ParentHash
		}
	}
	return buildPair(t, blocks, codec.Snappy)
}

// Every flipped bit of a file is noticed by a check, and located: in the page that holds it, or in the
// header, footer or trailer. Every truncation is noticed.
func TestEveryFlippedBitIsNoticed(t *testing.T) {
	data, index := smallPair(t)
	for _, c := range []struct {
		name string
		raw  []byte
		step int // bits
	}{
		{"data example", example(t, KindData), 1},
		{"index example", example(t, KindIndex), 1},
		{"senders example", example(t, KindSenders), 1},
		{"frames example", example(t, KindFrames), 1},
		{"data", data, 101},
		{"index", index, 7},
	} {
		t.Run(c.name, func(t *testing.T) {
			if err := readEverything(t, c.raw); err != nil {
				t.Fatal(err)
			}
			pageAt := locatePages(t, c.raw)
			bad := slices.Clone(c.raw)
			for bit := 0; bit < 8*len(bad); bit += c.step {
				i := bit / 8
				bad[i] ^= 1 << (bit % 8)
				err := readEverything(t, bad)
				var unsupported *UnsupportedError
				var damage *corrupt.Error
				switch {
				case errors.As(err, &unsupported) && i >= len(bad)-trailerSize:
				case !errors.As(err, &damage):
					t.Fatalf("bit %d of byte %d of %d: %v", bit%8, i, len(bad), err)
				case pageAt[i] > 0 && damage.Offset != int64(pageAt[i]):
					t.Fatalf("bit %d of byte %d lies in the page at %d: %v", bit%8, i, pageAt[i], err)
				}
				bad[i] = c.raw[i]
			}
			for n := 0; n < len(c.raw); n += 1 + len(c.raw)/97 {
				if err := readEverything(t, c.raw[:n]); !corrupt.Is(err) {
					t.Fatalf("first %d of %d bytes: %v", n, len(c.raw), err)
				}
			}
			if err := readEverything(t, append(slices.Clone(c.raw), 0)); !corrupt.Is(err) {
				t.Fatalf("surplus byte: %v", err)
			}
		})
	}
}

// locatePages gives for each byte of a file where its page starts, 0 for header, footer and trailer.
func locatePages(t testing.TB, raw []byte) []uint64 {
	f, err := Open("f", 1, memorySource(raw), nil)
	if err != nil {
		t.Fatal(err)
	}
	pages, _, err := f.pages(first)
	if err != nil {
		t.Fatal(err)
	}
	c, err := f.column(columnDigests)
	if err != nil {
		t.Fatal(err)
	}
	for n := range c.pages {
		pages = append(pages, pageRef{c.fixedEntry(n), c.id, n, false})
	}
	at := make([]uint64, len(raw))
	for _, p := range pages {
		for i := p.entry.offset; i < p.entry.end(); i++ {
			at[i] = p.entry.offset
		}
	}
	return at
}

func TestUnknownVersionIsRefusedByNumber(t *testing.T) {
	data, _ := smallPair(t)
	data[len(data)-trailerSize+12] = 9
	_, err := Open("f", 1, memorySource(data), nil)
	var unsupported *UnsupportedError
	if !errors.As(err, &unsupported) || unsupported.What != "version" || unsupported.Number != 9 {
		t.Fatal(err)
	}
}

// FuzzFooter decodes arbitrary footers: each that is accepted has one encoding, which is what was read.
func FuzzFooter(f *testing.F) {
	for kind := KindData; kind <= KindSenders; kind++ {
		f.Add(storedFooter(example(f, kind))[codec.PageHeader:])
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		var ft footer
		if ft.decode(body, 1<<20) == nil && !bytes.Equal(ft.encode(), body) {
			t.Fatal("the footer has two encodings")
		}
	})
}
