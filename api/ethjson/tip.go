package ethjson

import (
	"fmt"

	"github.com/holiman/uint256"

	"github.com/leani-go/leani/chain"
)

// AppendTips appends what each transaction of a block pays its proposer for a unit of gas, in wei:
// the effective gas price without the base fee, in the order of the transactions (EIP-1559). It
// needs header and transactions.
//
// It fails with ErrMaterial, ErrType or an error of the rlp package; a price below the base fee,
// which no valid block has, is ErrMaterial.
func (e *Encoder) AppendTips(dst []uint256.Int, b *chain.Block) ([]uint256.Int, error) {
	if err := e.readHeader(b); err != nil {
		return dst, err
	}
	var baseFee uint256.Int
	baseFee.SetBytes(e.header.BaseFee)
	for i := range b.Transactions {
		if err := e.readTransaction(b, i); err != nil {
			return dst, err
		}
		tip := e.transaction.effectiveGasPrice(e.header.BaseFee)
		if tip.Lt(&baseFee) {
			return dst, fmt.Errorf("%w: block %d: transaction %d pays less than the base fee", ErrMaterial, b.Number, i)
		}
		tip.Sub(&tip, &baseFee)
		dst = append(dst, tip)
	}
	return dst, nil
}
