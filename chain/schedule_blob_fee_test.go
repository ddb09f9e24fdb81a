package chain

import (
	"errors"
	"math/big"
	"testing"

	"github.com/ethereum/go-ethereum/consensus/misc/eip4844"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/params"
	"github.com/holiman/uint256"
	"pgregory.net/rapid"
)

// RPC-110: published prices.
func TestFee(t *testing.T) {
	for _, c := range []struct {
		fraction, excess uint64
		want             string
	}{
		{3_338_477, 0, "1"},
		{3_338_477, 30_539_776, "9393"},
		{3_338_477, 107_610_112, "99710729314173"},
		{3_338_477, 250_000_000, "332584186920530080845367541284883"},
		{5_007_716, 0, "1"},
		{5_007_716, 30_539_776, "445"},
		{5_007_716, 107_610_112, "2150273305"},
		{8_346_193, 0, "1"},
		{8_346_193, 30_539_776, "38"},
		{8_346_193, 107_610_112, "397645"},
		{11_684_671, 0, "1"},
		{11_684_671, 30_539_776, "13"},
		{11_684_671, 107_610_112, "9991"},
	} {
		got, err := BlobParameters{UpdateFraction: c.fraction}.Fee(c.excess)
		if err != nil || got.Dec() != c.want {
			t.Errorf("fraction %d, excess %d: got %s, %v; want %s", c.fraction, c.excess, got.Dec(), err, c.want)
		}
	}
}

// The price is go-ethereum's wherever that fits 128 bits, and the error is returned exactly
// where it does not. RPC-110, RPC-117
func TestFeeEqualsGeth(t *testing.T) {
	at := uint64(0)
	rapid.Check(t, func(t *rapid.T) {
		fraction := rapid.Uint64Range(1, 1<<uint(rapid.IntRange(1, 63).Draw(t, "bits"))).Draw(t, "fraction")
		multiple := rapid.Uint64Range(0, 95).Draw(t, "multiple")
		if hi := ^uint64(0) / fraction; multiple >= hi {
			multiple = hi - 1
		}
		excess := multiple*fraction + rapid.Uint64Range(0, fraction).Draw(t, "rest")
		want := eip4844.CalcBlobFee(&params.ChainConfig{
			LondonBlock: new(big.Int), CancunTime: &at,
			BlobScheduleConfig: &params.BlobScheduleConfig{Cancun: &params.BlobConfig{UpdateFraction: fraction}},
		}, &types.Header{ExcessBlobGas: &excess})
		got, err := BlobParameters{UpdateFraction: fraction}.Fee(excess)
		if want.BitLen() > 128 {
			if !errors.Is(err, ErrQuantityExceedsU128) {
				t.Fatalf("got %s, %v; want %v", got.Dec(), err, ErrQuantityExceedsU128)
			}
			return
		}
		if err != nil || got.ToBig().Cmp(want) != 0 {
			t.Fatalf("got %s, %v; want %s", got.Dec(), err, want)
		}
	})
}

// Either side of 2^128, found by bisection.
func TestFeeAtTheLimit(t *testing.T) {
	p := BlobParameters{UpdateFraction: 3_338_477}
	low, high := uint64(0), uint64(100*3_338_477)
	for high-low > 1 {
		if middle := (low + high) / 2; errorOf(p.Fee(middle)) == nil {
			low = middle
		} else {
			high = middle
		}
	}
	if got, _ := p.Fee(low); got.BitLen() != 128 {
		t.Errorf("largest price has %d bits, want 128", got.BitLen())
	}
	for _, excess := range []uint64{high, 145 * 3_338_477, 1 << 40, 1<<64 - 1} {
		if _, err := p.Fee(excess); !errors.Is(err, ErrQuantityExceedsU128) {
			t.Errorf("excess %d: got error %v, want %v", excess, err, ErrQuantityExceedsU128)
		}
	}
}

func errorOf(_ uint256.Int, err error) error { return err }

// RPC-114, RPC-115, RPC-116, RPC-117: what fails, and with what.
func TestBlobGasPrice(t *testing.T) {
	const cancun = 1_710_338_135
	excess := func(v uint64) *uint64 { return &v }
	for _, c := range []struct {
		name    string
		network *Network
		time    uint64
		excess  *uint64
		want    error
	}{
		{"covered", Mainnet(), cancun, excess(0), nil},
		{"before the schedule", Mainnet(), cancun - 1, excess(0), ErrBlobScheduleUnavailable},
		{"another chain", UnscheduledNetwork("sepolia", 11_155_111), cancun, excess(0), ErrBlobScheduleUnavailable},
		{"no excess", Mainnet(), cancun, nil, ErrExcessBlobGasMissing},
		{"too dear", Mainnet(), cancun, excess(1<<64 - 1), ErrQuantityExceedsU128},
	} {
		price, err := c.network.BlobGasPrice(c.time, c.excess)
		if !errors.Is(err, c.want) || (err == nil) != (c.want == nil) {
			t.Errorf("%s: got error %v, want %v", c.name, err, c.want)
		}
		if err == nil && !price.Eq(uint256.NewInt(1)) {
			t.Errorf("%s: got price %s, want 1", c.name, price.Dec())
		}
	}
}
