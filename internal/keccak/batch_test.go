package keccak

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/crypto"
)

func TestEmpty(t *testing.T) {
	if got := crypto.Keccak256Hash(nil); Empty != got {
		t.Fatalf("got %x want %x", Empty, got)
	}
}

func TestHasherJoinsParts(t *testing.T) {
	var h Hasher
	var got common.Hash
	for range 2 {
		h.Sum(&got, []byte("con"), nil, []byte("cat"))
		if want := crypto.Keccak256Hash([]byte("concat")); got != want {
			t.Fatalf("got %x want %x", got, want)
		}
	}
}

// TestBatchEqualsGoEthereum hashes batches of every size around the number of lanes with
// messages of every length around the block size, on every kernel this machine has.
func TestBatchEqualsGoEthereum(t *testing.T) {
	for _, k := range kernels() {
		t.Run(fmt.Sprintf("kernel%d", k), func(t *testing.T) {
			rng := rand.New(rand.NewPCG(1, 2))
			b := Batch{kernel: k}
			for length := range 3*rate + 2 {
				check(t, rng, &b, []int{length})
			}
			for n := range 40 {
				lengths := make([]int, n)
				for i := range lengths {
					lengths[i] = rng.IntN(5 * rate)
					if rng.IntN(3) == 0 {
						lengths[i] = rng.IntN(5)*rate - rng.IntN(2)
					}
					lengths[i] = max(0, lengths[i])
				}
				check(t, rng, &b, lengths)
			}
			check(t, rng, &b, []int{100_000, 1, 2, 3})
		})
	}
}

func check(t *testing.T, rng *rand.Rand, b *Batch, lengths []int) {
	t.Helper()
	messages := make([][]byte, len(lengths))
	sums := make([]common.Hash, len(lengths))
	for i, n := range lengths {
		messages[i] = make([]byte, n)
		for j := range messages[i] {
			messages[i][j] = byte(rng.Uint32())
		}
		b.Add(messages[i], &sums[i])
	}
	if len(b.queue) != len(lengths) {
		t.Fatalf("queued %d messages, have %d", len(lengths), len(b.queue))
	}
	b.Flush()
	if len(b.queue) != 0 {
		t.Fatal("messages left after the flush")
	}
	for i := range messages {
		if want := crypto.Keccak256Hash(messages[i]); sums[i] != want {
			t.Fatalf("message %d of %d, %d bytes: got %x want %x", i, len(messages), len(messages[i]), sums[i], want)
		}
	}
}

func TestBatchAllocatesNothing(t *testing.T) {
	for _, k := range kernels() {
		b := Batch{kernel: k}
		data := make([]byte, 500)
		sums := make([]common.Hash, 20)
		run := func() {
			for i := range sums {
				b.Add(data[:20*i], &sums[i])
			}
			b.Flush()
		}
		run()
		if n := testing.AllocsPerRun(20, run); n != 0 {
			t.Errorf("kernel %d: %v allocations a batch", k, n)
		}
	}
}

func FuzzBatch(f *testing.F) {
	f.Add([]byte("seed"), uint16(3), uint8(9))
	f.Add(bytes.Repeat([]byte{0xff}, 300), uint16(136), uint8(2))
	f.Fuzz(func(t *testing.T, data []byte, cut uint16, n uint8) {
		if len(data) == 0 {
			return
		}
		for _, k := range kernels() {
			b := Batch{kernel: k}
			sums := make([]common.Hash, n)
			piece := func(i int) []byte { return data[:(i*int(cut))%(len(data)+1)] }
			for i := range sums {
				b.Add(piece(i), &sums[i])
			}
			b.Flush()
			for i := range sums {
				if want := crypto.Keccak256Hash(piece(i)); sums[i] != want {
					t.Fatalf("kernel %d message %d: got %x want %x", k, i, sums[i], want)
				}
			}
		}
	})
}
