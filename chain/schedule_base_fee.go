package chain

import (
	"fmt"
	"math/bits"

	"github.com/ethereum/go-ethereum/params"
	"github.com/holiman/uint256"
)

// The parameters of EIP-1559, which no chain changes.
const (
	elasticityMultiplier     = 2 // gas limit over gas target
	baseFeeChangeDenominator = 8 // the fee moves by at most an eighth a block
)

// blobBaseCost is the gas of execution that a blob has to be worth at least (EIP-7918).
const blobBaseCost = 1 << 13

// HasBaseFee tells whether blocks of this number have a base fee (EIP-1559, from London on). It
// fails with ErrScheduleUnavailable.
func (n *Network) HasBaseFee(number uint64) (bool, error) {
	if n.genesis == nil {
		return false, fmt.Errorf("%w: chain %d", ErrScheduleUnavailable, n.chainID)
	}
	return n.london != nil && number >= *n.london, nil
}

// InitialBaseFee is the base fee in wei of the first block that has one (EIP-1559).
func InitialBaseFee() uint256.Int { return *uint256.NewInt(params.InitialBaseFee) }

// NextBaseFee is the base fee in wei of the block after one with this base fee, gas used and gas
// limit (EIP-1559). It fails with ErrQuantityExceedsU128 for a base fee of more than 128 bits.
func NextBaseFee(baseFee *uint256.Int, gasUsed, gasLimit uint64) (uint256.Int, error) {
	if baseFee.BitLen() > 128 {
		return uint256.Int{}, fmt.Errorf("%w: base fee", ErrQuantityExceedsU128)
	}
	next, target := *baseFee, gasLimit/elasticityMultiplier
	if gasUsed == target || target == 0 { // no valid block has a limit below 5000
		return next, nil
	}
	var delta, divisor uint256.Int
	if gasUsed > target {
		delta.SetUint64(gasUsed - target)
	} else {
		delta.SetUint64(target - gasUsed)
	}
	delta.Mul(&delta, baseFee) // 64 and 128 bits
	delta.Div(&delta, divisor.SetUint64(target))
	delta.Div(&delta, divisor.SetUint64(baseFeeChangeDenominator))
	switch {
	case gasUsed < target: // the delta is at most an eighth of the fee
		next.Sub(&next, &delta)
	case delta.IsZero():
		next.AddUint64(&next, 1)
	default:
		next.Add(&next, &delta)
	}
	return next, nil
}

// NextExcessBlobGas is the excess blob gas of a block of this fork whose parent has this excess,
// blob gas used and base fee in wei (EIP-4844; EIP-7918 where the fork has the reserve price). It
// fails with ErrQuantityExceedsU128.
func (f *Fork) NextExcessBlobGas(excess, used uint64, baseFee *uint256.Int) (uint64, error) {
	target := f.Blobs.Target * params.BlobTxBlobGasPerBlob
	sum, carry := bits.Add64(excess, used, 0)
	if carry != 0 || baseFee.BitLen() > 128 {
		return 0, fmt.Errorf("%w: excess blob gas", ErrQuantityExceedsU128)
	}
	if sum < target {
		return 0, nil
	}
	if f.ReservePrice && f.Blobs.Max >= f.Blobs.Target && f.Blobs.Max > 0 {
		fee, err := f.Blobs.Fee(excess)
		if err != nil {
			return 0, err
		}
		var reserve, price uint256.Int
		reserve.Mul(baseFee, uint256.NewInt(blobBaseCost))
		price.Mul(&fee, uint256.NewInt(params.BlobTxBlobGasPerBlob))
		if price.Lt(&reserve) {
			high, low := bits.Mul64(used, f.Blobs.Max-f.Blobs.Target)
			if high >= f.Blobs.Max {
				return 0, fmt.Errorf("%w: excess blob gas", ErrQuantityExceedsU128)
			}
			scaled, _ := bits.Div64(high, low, f.Blobs.Max)
			next, carry := bits.Add64(excess, scaled, 0)
			if carry != 0 {
				return 0, fmt.Errorf("%w: excess blob gas", ErrQuantityExceedsU128)
			}
			return next, nil
		}
	}
	return sum - target, nil
}
