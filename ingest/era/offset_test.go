package era

import (
	"reflect"
	"testing"

	"github.com/ethereum/go-ethereum/core/types"

	"github.com/leani-go/leani/chain"
)

// TestOffset finds the records of blocks by their parts, in both layouts.
func TestOffset(t *testing.T) {
	grouped1, interleaved1 := tiny(t)
	for _, c := range []struct {
		name    string
		content []byte
	}{{"EraE", grouped1}, {"era1", interleaved1}} {
		f, err := open(c.content, Options{})
		if err != nil {
			t.Fatal(err)
		}
		for n := f.Range().From; n < f.Range().To; n++ {
			for part, want := range map[chain.Parts]component{
				chain.PartHeader: componentHeader, chain.PartTransactions: componentBody, chain.PartOmmers: componentBody,
				chain.PartWithdrawals: componentBody, chain.PartReceipts: componentReceipts,
			} {
				offset := f.Offset(n, part)
				r, err := parseRecord(c.content[offset : offset+recordHeaderSize])
				if err != nil || r.tag != f.tags[want] {
					t.Errorf("%s: block %d: the %v is not at %d: %v %v", c.name, n, want, offset, r.tag, err)
				}
			}
		}
	}
}

// TestSizes compares the sizes that Memory counts with with those of the compiler.
func TestSizes(t *testing.T) {
	for of, want := range map[reflect.Type]uintptr{
		reflect.TypeFor[*types.Bloom](): pointerBytes, reflect.TypeFor[place](): placeBytes, reflect.TypeFor[pieces](): piecesBytes,
	} {
		if got := of.Size(); got != want {
			t.Errorf("%v: %d bytes, Memory counts %d", of, got, want)
		}
	}
}

// TestMemory compares what a buffer says it holds with what reading a file into it allocated.
func TestMemory(t *testing.T) {
	content := many(t, 40)
	f, err := open(content, Options{})
	if err != nil {
		t.Fatal(err)
	}
	var buf Buffer
	empty := buf.Memory()
	if _, err := f.ReadBlocks(f.Range(), chain.PartsAll, &buf, make([]chain.Block, 40)); err != nil {
		t.Fatal(err)
	}
	grown := buf.Memory() - empty
	if least := f.StoredBytes(f.Range(), chain.PartsAll) + int64(len(buf.plain)); grown < least || grown > 2*least {
		t.Errorf("got %d bytes, %d were read and decoded", grown, least)
	}
}
