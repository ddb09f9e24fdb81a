package bloom

import (
	"reflect"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	"pgregory.net/rapid"

	"github.com/leani-go/leani/chain"
)

// TestBitsEqualGoEthereum compares the bits of single values with go-ethereum's bloom.
func TestBitsEqualGoEthereum(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		value := rapid.SliceOfN(rapid.Byte(), 0, 40).Draw(t, "value")
		other := rapid.SliceOfN(rapid.Byte(), 0, 40).Draw(t, "other")
		var got, want types.Bloom
		digest := crypto.Keccak256Hash(value)
		BitsOf(&digest).AddTo(&got)
		want.Add(value)
		if got != want {
			t.Fatalf("got %x want %x", got, want)
		}
		if !BitsOf(&digest).In(&want) {
			t.Fatal("the value is not in its own bloom")
		}
		digest = crypto.Keccak256Hash(other)
		if got, test := BitsOf(&digest).In(&want), want.Test(other); got != test {
			t.Fatalf("membership: got %v want %v", got, test)
		}
		want.Add(other)
		var b types.Bloom
		b.Add(other)
		if Union(&got, &b); got != want {
			t.Fatalf("union: got %x want %x", got, want)
		}
	})
}

// TestMemoEqualsGoEthereum adds logs out of a small world, so that values repeat, meet in one
// place of the table and recur while they wait, to the blooms of several receipts.
func TestMemoEqualsGoEthereum(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		world := make([]common.Hash, rapid.IntRange(1, 300).Draw(t, "world"))
		for i := range world {
			world[i] = crypto.Keccak256Hash([]byte{byte(i), byte(i >> 8)})
			if i%3 == 0 {
				copy(world[i][:], make([]byte, 31)) // numbers: they differ in the last byte alone
			}
			if i%5 == 0 {
				copy(world[i][20:], make([]byte, 12)) // an address and a topic with the same bytes
			}
		}
		pick := rapid.IntRange(0, len(world)-1)
		m := NewMemo(rapid.SampledFrom([]int{0, 4, 64, 1024}).Draw(t, "entries"))
		for range rapid.IntRange(1, 3).Draw(t, "blocks") {
			receipts := make([][]chain.Log, rapid.IntRange(0, 20).Draw(t, "receipts"))
			got := make([]types.Bloom, len(receipts))
			for i := range receipts {
				receipts[i] = make([]chain.Log, rapid.IntRange(0, 10).Draw(t, "logs"))
				for j := range receipts[i] {
					l := &receipts[i][j]
					l.Address = (*common.Address)(world[pick.Draw(t, "address")][:])
					l.NumTopics = uint8(rapid.IntRange(0, chain.MaximumTopics).Draw(t, "topics"))
					for k := range l.NumTopics {
						l.Topics[k] = &world[pick.Draw(t, "topic")]
					}
				}
				m.AddLogs(&got[i], receipts[i])
			}
			m.Flush()
			for i, logs := range receipts {
				var want types.Bloom
				for _, l := range logs {
					want.Add(l.Address[:])
					for _, topic := range l.Topics[:l.NumTopics] {
						want.Add(topic[:])
					}
				}
				if got[i] != want {
					t.Fatalf("receipt %d: got %x want %x", i, got[i], want)
				}
			}
		}
	})
}

func TestMemoAllocatesNothing(t *testing.T) {
	var m Memo
	var b types.Bloom
	var topic common.Hash
	if n := testing.AllocsPerRun(10, func() {
		for i := range 300 {
			topic[0], topic[31] = byte(i), topic[31]+1
			m.AddTopic(&b, &topic)
		}
		m.Flush()
	}); n != 0 {
		t.Fatalf("%v allocations", n)
	}
}

// TestSizes compares the sizes that Memory counts with with those of the compiler.
func TestSizes(t *testing.T) {
	if got := reflect.TypeFor[entry]().Size(); got != entryBytes {
		t.Errorf("entry: %d bytes, Memory counts %d", got, entryBytes)
	}
	if got := reflect.TypeFor[Memo]().Size(); got > memoBytes {
		t.Errorf("memo without table: %d bytes, Memory counts %d", got, memoBytes)
	}
	if got, least := NewMemo(1000).Memory(), int64(1024*entryBytes); got < least || got > least+memoBytes {
		t.Errorf("memo of 1024 entries: got %d bytes", got)
	}
}
