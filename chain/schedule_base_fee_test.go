package chain

import (
	"errors"
	"math/big"
	"testing"

	"github.com/ethereum/go-ethereum/consensus/misc/eip1559"
	"github.com/ethereum/go-ethereum/consensus/misc/eip4844"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/params"
	"github.com/holiman/uint256"
	"pgregory.net/rapid"
)

// The base fee of the next block is go-ethereum's for any block.
func TestNextBaseFeeEqualsGeth(t *testing.T) {
	config := params.MainnetChainConfig
	rapid.Check(t, func(t *rapid.T) {
		fee := rapid.Uint64().Draw(t, "base fee")
		limit := rapid.Uint64Range(5000, 1<<62).Draw(t, "gas limit")
		used := rapid.OneOf(rapid.Uint64Range(0, limit), rapid.Just(limit/2), rapid.Just(limit/2+1), rapid.Just(limit)).Draw(t, "gas used")
		want := eip1559.CalcBaseFee(config, &types.Header{
			Number: config.LondonBlock, GasLimit: limit, GasUsed: used, BaseFee: new(big.Int).SetUint64(fee),
		})
		got, err := NextBaseFee(uint256.NewInt(fee), used, limit)
		if err != nil || got.ToBig().Cmp(want) != 0 {
			t.Fatalf("got %v, %v; want %v", got, err, want)
		}
	})
	if _, err := NextBaseFee(new(uint256.Int).Lsh(uint256.NewInt(1), 128), 1, 30_000_000); !errors.Is(err, ErrQuantityExceedsU128) {
		t.Errorf("a fee of 129 bits: %v", err)
	}
	if got, err := NextBaseFee(uint256.NewInt(7), 1, 0); err != nil || got.Uint64() != 7 {
		t.Errorf("without a gas limit: %v, %v", got, err)
	}
}

// The next excess blob gas is go-ethereum's in every fork of Mainnet, on both sides of the reserve
// price of EIP-7918.
func TestNextExcessBlobGasEqualsGeth(t *testing.T) {
	forks := Mainnet().Forks()
	rapid.Check(t, func(t *rapid.T) {
		fork := &forks[rapid.IntRange(0, len(forks)-1).Draw(t, "fork")]
		excess := rapid.Uint64Range(0, 80*fork.Blobs.UpdateFraction).Draw(t, "excess")
		used := rapid.Uint64Range(0, fork.Blobs.Max).Draw(t, "blobs") * params.BlobTxBlobGasPerBlob
		fee := rapid.Uint64().Draw(t, "base fee") >> rapid.IntRange(0, 63).Draw(t, "shift")
		want := eip4844.CalcExcessBlobGas(params.MainnetChainConfig, &types.Header{
			ExcessBlobGas: &excess, BlobGasUsed: &used, BaseFee: new(big.Int).SetUint64(fee),
		}, fork.ActivationTime)
		got, err := fork.NextExcessBlobGas(excess, used, uint256.NewInt(fee))
		if err != nil || got != want {
			t.Fatalf("%s: got %d, %v; want %d", fork.Name, got, err, want)
		}
	})
	osaka := &forks[2]
	for _, c := range [][2]uint64{{1<<64 - 1, 1}, {0, 1<<64 - 1}, {1<<64 - 1, 0}} {
		if got, err := osaka.NextExcessBlobGas(c[0], c[1], uint256.NewInt(1)); err != nil && !errors.Is(err, ErrQuantityExceedsU128) {
			t.Errorf("%v: got %d, %v", c, got, err)
		}
	}
}

// London decides which blocks have a base fee, and a chain without schedule does not say.
func TestHasBaseFee(t *testing.T) {
	for number, want := range map[uint64]bool{0: false, 12_964_999: false, 12_965_000: true, 1<<64 - 1: true} {
		if got, err := Mainnet().HasBaseFee(number); err != nil || got != want {
			t.Errorf("block %d: %v, %v", number, got, err)
		}
	}
	if _, err := UnscheduledNetwork("x", 5).HasBaseFee(1); !errors.Is(err, ErrScheduleUnavailable) {
		t.Errorf("a chain without schedule: %v", err)
	}
	if fee := InitialBaseFee(); fee.Uint64() != params.InitialBaseFee {
		t.Errorf("initial base fee %v", &fee)
	}
}
