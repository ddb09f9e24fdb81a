package segments

import (
	"bytes"
	"context"
	"errors"
	"testing"

	"github.com/leani-go/leani/chain"
	"github.com/leani-go/leani/codec"
	"github.com/leani-go/leani/internal/chainmodel"
	"github.com/leani-go/leani/internal/corrupt"
)

// partOf describes blocks[from:to] as a part of an index over all blocks.
func partOf(t *testing.T, blocks []*chain.Block, from, to int) Part {
	t.Helper()
	data, _ := buildPair(t, blocks[from:to], codec.None)
	p := Part{Info: openData(t, data, nil).Info()}
	for _, b := range blocks[:from] {
		p.FirstLog += uint64(len(b.Logs))
		p.FirstTransaction += uint64(len(b.Transactions))
	}
	return p
}

// A slice of an index is, byte for byte, the index that would have been built for its blocks.
func TestSliceIndex(t *testing.T) {
	m := chainmodel.New(7, 500)
	var blocks []*chain.Block
	for range 120 {
		blocks = append(blocks, m.Block())
	}
	_, raw := buildPair(t, blocks, codec.None)
	x := openIndex(t, raw, 1, NewCache(1<<20))
	for _, cut := range [][2]int{{0, 120}, {0, 1}, {119, 120}, {0, 60}, {60, 120}, {37, 38}, {5, 111}} {
		_, want := buildPair(t, blocks[cut[0]:cut[1]], codec.None)
		part := partOf(t, blocks, cut[0], cut[1])
		var out bytes.Buffer
		info, digest, err := SliceIndex(t.Context(), &out, x, part)
		if err != nil {
			t.Fatalf("%v: %v", cut, err)
		}
		if !bytes.Equal(out.Bytes(), want) {
			t.Errorf("%v: the slice differs from the index of its blocks: %d bytes, want %d", cut, out.Len(), len(want))
		}
		got := openIndex(t, out.Bytes(), 2, NewCache(1<<20))
		if got.Info() != info || got.Digest() != digest || info.Kind != KindIndex || info.From != blocks[cut[0]].Number {
			t.Errorf("%v: info %+v", cut, info)
		}
		if err := got.CheckPages(t.Context(), nil); err != nil {
			t.Error(err)
		}
	}
}

// What is no part of the index, or an index that does not list what the part holds, is refused.
func TestSliceIndexRefuses(t *testing.T) {
	m := chainmodel.New(8, 500)
	var blocks []*chain.Block
	for range 40 {
		blocks = append(blocks, m.Block())
	}
	_, raw := buildPair(t, blocks, codec.None)
	x := openIndex(t, raw, 1, NewCache(1<<20))
	good := partOf(t, blocks, 10, 30)
	for name, change := range map[string]func(*Part){
		"empty":          func(p *Part) { p.Info.To = p.Info.From },
		"before":         func(p *Part) { p.Info.From = 499 },
		"behind":         func(p *Part) { p.Info.To = 541 },
		"logs":           func(p *Part) { p.FirstLog = x.Info().Logs },
		"no transaction": func(p *Part) { p.FirstTransaction = x.Info().Transactions },
	} {
		p := good
		change(&p)
		if _, _, err := SliceIndex(t.Context(), new(bytes.Buffer), x, p); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	damaged := bytes.Clone(raw)
	damaged[headerSize+60] ^= 1
	_, _, err := SliceIndex(t.Context(), new(bytes.Buffer), openIndex(t, damaged, 2, NewCache(1<<20)), good)
	if !corrupt.Is(err) {
		t.Errorf("damaged index: %v", err)
	}
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := SliceIndex(cancelled, new(bytes.Buffer), x, good); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

// The logical size of a file does not depend on its compression, and is below that of a file that has none.
func TestLogicalBytes(t *testing.T) {
	m := chainmodel.New(9, 0)
	var blocks []*chain.Block
	for range 100 {
		blocks = append(blocks, m.Block())
	}
	var want int64
	for c := range codec.Compression(4) {
		data, _ := buildPair(t, blocks, c)
		got, err := openData(t, data, NewCache(1<<20)).LogicalBytes()
		if err != nil {
			t.Fatal(err)
		}
		if c == codec.None {
			want = got
			if got >= int64(len(data)) || got < int64(len(data))*9/10 {
				t.Errorf("%d logical bytes in a file of %d without compression", got, len(data))
			}
		}
		if got != want || c != codec.None && int64(len(data)) >= want {
			t.Errorf("%s: %d logical bytes in a file of %d, want %d", c, got, len(data), want)
		}
	}
}
