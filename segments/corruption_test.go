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

// Every flipped bit and every truncation of a file is noticed and located in the file.
func TestEveryFlippedBitIsNoticed(t *testing.T) {
	data, index := smallPair(t)
	for name, raw := range map[string][]byte{"data": data, "index": index} {
		if err := readEverything(t, raw); err != nil {
			t.Fatal(err)
		}
		step := 1
		if testing.Short() {
			step = 7
		}
		bad := slices.Clone(raw)
		for i := 0; i < len(raw); i += step {
			bad[i] ^= 1 << (i % 8)
			err := readEverything(t, bad)
			var unsupported *UnsupportedError
			if !corrupt.Is(err) && !errors.As(err, &unsupported) {
				t.Fatalf("%s: flip in byte %d of %d: %v", name, i, len(raw), err)
			}
			bad[i] = raw[i]
		}
		for n := 0; n < len(raw); n += 1 + len(raw)/97 {
			if err := readEverything(t, raw[:n]); !corrupt.Is(err) {
				t.Fatalf("%s: first %d of %d bytes: %v", name, n, len(raw), err)
			}
		}
		if err := readEverything(t, append(slices.Clone(raw), 0)); !corrupt.Is(err) {
			t.Fatalf("%s: surplus byte: %v", name, err)
		}
	}
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

// reseal makes the checksums of a damaged file right again, so that readers see the damage itself.
func reseal(raw []byte) []byte {
	raw = slices.Clone(raw)
	f, err := Open("f", 1, memorySource(raw), nil)
	if err != nil {
		return raw
	}
	pages, _, err := f.pages(first)
	if err != nil {
		return raw
	}
	for _, p := range pages {
		end := p.entry.offset + uint64(p.entry.size)
		if p.entry.size < codec.PageHeader || end > uint64(len(raw)) {
			continue
		}
		page := raw[p.entry.offset:end]
		if page[3] == byte(codec.None) {
			copy(page, codec.AppendPage(nil, codec.None, page[codec.PageHeader:]))
		}
	}
	return raw
}

// FuzzFile damages a valid file at some places, repairs the checksums, and reads all of it: any
// answer but a panic or endless memory will do.
func FuzzFile(f *testing.F) {
	data, index := smallPair(f)
	f.Add(true, uint32(100), byte(1), uint32(2000), byte(0xff))
	f.Add(false, uint32(100), byte(1), uint32(500), byte(0x80))
	f.Fuzz(func(t *testing.T, useData bool, at uint32, value byte, at2 uint32, value2 byte) {
		raw := index
		if useData {
			raw = data
		}
		bad := slices.Clone(raw)
		bad[int(at)%len(bad)] ^= value
		bad[int(at2)%len(bad)] ^= value2
		bad = reseal(bad)
		file, err := Open("f", 1, memorySource(bad), nil)
		if err != nil {
			return
		}
		_ = file.CheckRows(t.Context())
	})
}

// FuzzFooter opens arbitrary footers behind a right trailer.
func FuzzFooter(f *testing.F) {
	data, _ := smallPair(f)
	file, err := Open("f", 1, memorySource(data), nil)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(file.footer.encode())
	f.Fuzz(func(t *testing.T, body []byte) {
		var ft footer
		if ft.decode(body, 1<<20) == nil && !bytes.Equal(ft.encode(), body) {
			// Reserved fields are the only bytes that decoding may drop.
			if len(ft.encode()) != len(body) {
				t.Fatal("footer decodes to another length")
			}
		}
	})
}
