package trieroot

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/trie"
	"pgregory.net/rapid"
)

// list makes go-ethereum derive the root of arbitrary values.
type list [][]byte

func (l list) Len() int                           { return len(l) }
func (l list) EncodeIndex(i int, b *bytes.Buffer) { b.Write(l[i]) }

func (l list) want() common.Hash { return types.DeriveSha(l, trie.NewStackTrie(nil)) }

func (l list) value(i int) []byte { return l[i] }

func TestEmptyRoot(t *testing.T) {
	var h Hasher
	if got := h.Root(0, nil); got != types.EmptyRootHash || Empty != got {
		t.Fatalf("got %x want %x", got, types.EmptyRootHash)
	}
}

// TestEveryCount compares every list length that changes the shape of the trie near its
// borders, with values that are embedded in their parents and values that are hashed.
func TestEveryCount(t *testing.T) {
	var counts []int
	for n := range 300 {
		if n < 40 || 110 < n && n < 150 || n > 240 {
			counts = append(counts, n)
		}
	}
	for _, border := range []int{512, 4096, 65_536} {
		counts = append(counts, border, border+1, border+17)
	}
	var h Hasher
	for _, size := range []int{1, 2, 27, 28, 29, 30, 31, 110} {
		for _, n := range counts {
			if n > 10_000 && size != 2 && size != 29 {
				continue
			}
			values := make(list, n)
			for i := range values {
				values[i] = make([]byte, size)
				for j := range values[i] {
					values[i][j] = byte(i*7 + j*13 + i>>8)
				}
				values[i][size-1] |= 1 // not empty in any encoding
			}
			if got, want := h.Root(n, values.value), values.want(); got != want {
				t.Fatalf("%d values of %d bytes: got %x want %x", n, size, got, want)
			}
		}
	}
}

func TestRootEqualsDeriveSha(t *testing.T) {
	var h Hasher
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.OneOf(rapid.IntRange(0, 300), rapid.SampledFrom([]int{0, 1, 2, 127, 128, 129, 255, 256, 257, 1000})).Draw(t, "n")
		maximum := rapid.SampledFrom([]int{1, 3, 33, 40, 200, 3000}).Draw(t, "max")
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		values := make(list, n)
		for i := range values {
			values[i] = make([]byte, 1+rng.IntN(maximum))
			for j := range values[i] {
				values[i][j] = byte(rng.Uint32())
			}
		}
		want := values.want()
		if got := h.Root(n, values.value); got != want {
			t.Fatalf("got %x want %x", got, want)
		}
		digests := make([]common.Hash, n)
		if got := h.RootAndDigests(digests, values.value); got != want {
			t.Fatalf("with digests: got %x want %x", got, want)
		}
		for i := range digests {
			if want := crypto.Keccak256Hash(values[i]); digests[i] != want {
				t.Fatalf("digest %d: got %x want %x", i, digests[i], want)
			}
		}
	})
}

// TestValueMayReuseItsBuffer pins the promise that a value is not needed after the next call,
// and that indexes come in order, across values larger than the arena.
func TestValueMayReuseItsBuffer(t *testing.T) {
	var h Hasher
	sizes := []int{10, chunkBytes + 1, 40, 3 * chunkBytes, 1, 200, 90_000, 90_000}
	values := make(list, len(sizes))
	for i, n := range sizes {
		values[i] = bytes.Repeat([]byte{byte(i + 1)}, n)
	}
	var buf []byte
	next := 0
	got := h.Root(len(values), func(i int) []byte {
		if i != next {
			t.Fatalf("index %d after %d", i, next-1)
		}
		next++
		for j := range buf {
			buf[j] = 0xee
		}
		buf = append(buf[:0], values[i]...)
		return buf
	})
	if want := values.want(); got != want || next != len(values) {
		t.Fatalf("got %x want %x", got, want)
	}
}

func TestNothingAllocates(t *testing.T) {
	var h Hasher
	for _, n := range []int{1, 5, 200, 400} {
		values := make(list, n)
		for i := range values {
			values[i] = bytes.Repeat([]byte{byte(i)}, 1+i%300)
		}
		digests := make([]common.Hash, n)
		run := func() { h.RootAndDigests(digests, values.value) }
		run()
		if allocations := testing.AllocsPerRun(10, run); allocations != 0 {
			t.Errorf("%d values: %v allocations", n, allocations)
		}
	}
}

func FuzzRoot(f *testing.F) {
	f.Add([]byte("seed"), uint16(1), uint8(1))
	f.Add([]byte{1, 2, 3, 40, 50}, uint16(129), uint8(33))
	f.Add([]byte{0xff}, uint16(300), uint8(2))
	f.Fuzz(func(t *testing.T, data []byte, n uint16, step uint8) {
		values := make(list, n%2000)
		for i := range values {
			from := i * int(step) % (len(data) + 1)
			values[i] = append(data[from:len(data):len(data)], byte(i+1)|1)
		}
		var h Hasher
		if got, want := h.Root(len(values), values.value), values.want(); got != want {
			t.Fatalf("%d values: got %x want %x", len(values), got, want)
		}
	})
}
