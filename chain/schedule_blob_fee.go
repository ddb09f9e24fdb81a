package chain

import (
	"errors"
	"fmt"

	"github.com/holiman/uint256"
)

// What computing a blob gas price fails with.
var (
	// ErrBlobScheduleUnavailable says that no scheduled fork covers the block, because the
	// block is older than the schedule or because the chain has none.
	ErrBlobScheduleUnavailable = errors.New("no blob schedule for the block")
	// ErrExcessBlobGasMissing says that the header carries no excess blob gas.
	ErrExcessBlobGasMissing = errors.New("header has no excess blob gas")
	// ErrQuantityExceedsU128 says that the price takes more than 128 bits.
	ErrQuantityExceedsU128 = errors.New("quantity exceeds 128 bits")
)

// maximumFeeExponent is the smallest whole number of update fractions at which the blob fee
// is certain to pass 128 bits: e^88 < 2^128 < e^89.
const maximumFeeExponent = 89

// BlobParameters are the parameters of the blob fee market (EIP-4844, EIP-7840).
type BlobParameters struct {
	Target, Max uint64 // blobs a block
	// UpdateFraction is by how much the excess blob gas has to grow for the fee to grow by a
	// factor of e. Never 0.
	UpdateFraction uint64
}

// Fee is the price in wei of a unit of blob gas at this excess: the integer expansion of
// EIP-4844 with the minimum of 1 wei. It fails with ErrQuantityExceedsU128. The work is bounded for
// every input: at most about 310 steps of 256-bit arithmetic.
func (p BlobParameters) Fee(excessBlobGas uint64) (uint256.Int, error) {
	if excessBlobGas/p.UpdateFraction >= maximumFeeExponent {
		return uint256.Int{}, fmt.Errorf("%w: blob fee at excess blob gas %d", ErrQuantityExceedsU128, excessBlobGas)
	}
	// The terms are fraction·x^i/i! with x below 89, at most 2^64·89^89/89! < 2^188; times the
	// excess that is below 2^252. Nothing here overflows.
	var sum, step uint256.Int
	excess, fraction := uint256.NewInt(excessBlobGas), uint256.NewInt(p.UpdateFraction)
	term := new(uint256.Int).Set(fraction)
	for i := uint64(1); !term.IsZero(); i++ {
		sum.Add(&sum, term)
		term.Mul(term, excess)
		term.Div(term, fraction)
		term.Div(term, step.SetUint64(i))
	}
	sum.Div(&sum, fraction)
	if sum.BitLen() > 128 {
		return uint256.Int{}, fmt.Errorf("%w: blob fee at excess blob gas %d", ErrQuantityExceedsU128, excessBlobGas)
	}
	return sum, nil
}

// BlobGasPrice is the price in wei of a unit of blob gas in a block with this timestamp and
// header field, nil when the header has no such field. It fails with
// ErrBlobScheduleUnavailable, ErrExcessBlobGasMissing or ErrQuantityExceedsU128.
func (n *Network) BlobGasPrice(timestamp uint64, excessBlobGas *uint64) (uint256.Int, error) {
	fork, err := n.ForkAt(timestamp)
	if err != nil {
		return uint256.Int{}, fmt.Errorf("%w: %w", ErrBlobScheduleUnavailable, err)
	}
	if excessBlobGas == nil {
		return uint256.Int{}, ErrExcessBlobGasMissing
	}
	return fork.Blobs.Fee(*excessBlobGas)
}
