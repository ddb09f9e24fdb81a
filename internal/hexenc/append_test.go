package hexenc

import (
	"bytes"
	"math/big"
	"testing"

	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/holiman/uint256"
	"pgregory.net/rapid"
)

// Every Append function agrees with hexutil on any input, keeps what the buffer held before,
// and works in a buffer that is too small as well as in one with room.
func TestAppendEqualsHexutil(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		prefix := rapid.SliceOfN(rapid.Byte(), 0, 5).Draw(t, "prefix")
		room := rapid.SampledFrom([]int{0, 3, 200}).Draw(t, "room")
		data := rapid.SliceOfN(rapid.Byte(), 0, 70).Draw(t, "data")
		if rapid.Bool().Draw(t, "zeros") {
			data = append(make([]byte, rapid.IntRange(0, 9).Draw(t, "leading")), data...)
		}
		v := rapid.Uint64().Draw(t, "v")
		word := new(uint256.Int).SetBytes(data)
		wordBytes := word.Bytes32()

		buffer := func() []byte {
			return append(make([]byte, 0, len(prefix)+room), prefix...)
		}
		for _, c := range []struct {
			name      string
			got, want string
		}{
			{"bytes", string(AppendBytes(buffer(), data)), hexutil.Encode(data)},
			{"digits", "0x" + string(AppendDigits(nil, data)), hexutil.Encode(data)},
			{"quantity", string(AppendQuantity(buffer(), v)), hexutil.EncodeUint64(v)},
			{"quantity bytes", string(AppendQuantityBytes(buffer(), data)), hexutil.EncodeBig(new(big.Int).SetBytes(data))},
			{"uint256", string(AppendUint256(buffer(), word)), hexutil.EncodeBig(new(big.Int).SetBytes(wordBytes[:]))},
		} {
			want := c.want
			if c.name != "digits" {
				want = string(prefix) + want
			}
			if c.got != want {
				t.Fatalf("%s: got %q, want %q", c.name, c.got, want)
			}
		}
	})
}

// Each power of two and its neighbours: all lengths of a quantity.
func TestAppendQuantityLengths(t *testing.T) {
	for shift := range 64 {
		for _, v := range []uint64{1<<shift - 1, 1 << shift, 1<<shift + 1} {
			if got, want := string(AppendQuantity(nil, v)), hexutil.EncodeUint64(v); got != want {
				t.Errorf("%d: got %s, want %s", v, got, want)
			}
		}
	}
}

func TestAppendAllocatesNothing(t *testing.T) {
	data := bytes.Repeat([]byte{0xab}, 100)
	word := new(uint256.Int).SetAllOne()
	buffer := make([]byte, 0, 512)
	if n := testing.AllocsPerRun(100, func() {
		b := AppendBytes(buffer, data)
		b = AppendQuantity(b, 1<<63)
		b = AppendQuantityBytes(b, data[:40])
		AppendUint256(b, word)
	}); n != 0 {
		t.Errorf("got %v allocations, want 0", n)
	}
}
