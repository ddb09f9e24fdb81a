package sender

import (
	"bytes"
	"errors"
	"fmt"
	"math/big"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/holiman/uint256"

	"github.com/leani-go/leani/internal/keccak"
	"github.com/leani-go/leani/internal/rlp"
)

// What recovering fails with, beside errors of the rlp package.
var (
	// ErrType says that the envelope is empty or of an unknown transaction type.
	ErrType = errors.New("unknown transaction type")
	// ErrChainID says that the transaction was signed for another chain.
	ErrChainID = errors.New("transaction of another chain")
	// ErrSignature says that no key can have made the signature.
	ErrSignature = errors.New("invalid transaction signature")
)

// The transaction types (EIP-2718). A first byte from firstLegacy on starts the list of a
// legacy transaction.
const (
	accessListType = 1 // EIP-2930
	dynamicFeeType = 2 // EIP-1559
	blobType       = 3 // EIP-4844
	setCodeType    = 4 // EIP-7702

	firstLegacy = 0xc0
)

// legacyFields is the number of fields that a legacy transaction signs.
const legacyFields = 6

// signedFields is the number of fields that a typed transaction signs, by type. The chain id
// is the first of them.
var signedFields = [...]int{accessListType: 8, dynamicFeeType: 9, blobType: 11, setCodeType: 10}

// The v values of a legacy signature: unprotectedV plus the parity, or with the chain id mixed
// in protectedV plus twice the chain id plus the parity (EIP-155).
const (
	unprotectedV = 27
	protectedV   = 35
)

// The order of the secp256k1 group and its half, as big-endian numbers. r and s lie below the
// order, s at or below the half since Homestead (EIP-2).
var (
	order     = number(crypto.S256().Params().N)
	halfOrder = number(new(big.Int).Rsh(crypto.S256().Params().N, 1))
)

func number(v *big.Int) (b [32]byte) {
	v.FillBytes(b[:])
	return b
}

// Recoverer recovers the senders of one chain's transactions. It belongs to one goroutine at
// a time and allocates once a recovery, inside the curve library.
type Recoverer struct {
	chainID     uint64
	protectedV  uint256.Int // v of a protected legacy signature of this chain with even parity
	signedChain []byte      // what EIP-155 appends to the signed fields
	hasher      keccak.Hasher

	// Scratch space. It lies here because the hash and curve calls would make locals escape.
	prefix    []byte
	digest    common.Hash
	signature [crypto.SignatureLength]byte
}

// New makes a Recoverer for the chain with the id.
func New(chainID uint64) *Recoverer {
	r := &Recoverer{chainID: chainID}
	r.protectedV.SetUint64(chainID)
	r.protectedV.Lsh(&r.protectedV, 1)
	r.protectedV.AddUint64(&r.protectedV, protectedV)
	r.signedChain = rlp.AppendUint64(nil, chainID)
	r.signedChain = rlp.AppendUint64(r.signedChain, 0)
	r.signedChain = rlp.AppendUint64(r.signedChain, 0)
	return r
}

// Recover gives the sender of a transaction from its EIP-2718 envelope. The fields that play
// no part in the signature are not looked into.
//
// It fails with ErrType, ErrChainID, ErrSignature or an error of the rlp package.
func (r *Recoverer) Recover(envelope []byte) (common.Address, error) {
	switch {
	case len(envelope) == 0:
		return common.Address{}, fmt.Errorf("%w: empty envelope", ErrType)
	case envelope[0] >= firstLegacy:
		return r.recoverLegacy(envelope)
	case envelope[0] >= accessListType && int(envelope[0]) < len(signedFields):
		return r.recoverTyped(envelope)
	}
	return common.Address{}, fmt.Errorf("%w: %#x", ErrType, envelope[0])
}

func (r *Recoverer) recoverLegacy(envelope []byte) (common.Address, error) {
	list := rlp.OpenList(envelope)
	start := list.Offset()
	for range legacyFields {
		list.Next()
	}
	signed := envelope[start:max(start, list.Offset())]
	v := list.Integer(32)
	r.readSignature(&list)
	if err := list.End(); err != nil {
		return common.Address{}, err
	}
	switch parity, protected, err := r.legacyParity(v); {
	case err != nil:
		return common.Address{}, err
	case protected:
		r.prefix = rlp.AppendListHeader(r.prefix[:0], len(signed)+len(r.signedChain))
		r.hasher.Sum(&r.digest, r.prefix, signed, r.signedChain)
		return r.address(parity, &halfOrder)
	default:
		r.prefix = rlp.AppendListHeader(r.prefix[:0], len(signed))
		r.hasher.Sum(&r.digest, r.prefix, signed)
		return r.address(parity, &order)
	}
}

// legacyParity takes a v value apart.
func (r *Recoverer) legacyParity(number []byte) (parity byte, protected bool, err error) {
	var v uint256.Int
	v.SetBytes(number)
	switch {
	case v.IsUint64() && (v[0] == unprotectedV || v[0] == unprotectedV+1):
		return byte(v[0] - unprotectedV), false, nil
	case v.LtUint64(protectedV):
		return 0, false, fmt.Errorf("%w: v is %d", ErrSignature, v[0])
	}
	var offset uint256.Int
	if _, underflow := offset.SubOverflow(&v, &r.protectedV); underflow || !offset.LtUint64(2) {
		return 0, false, fmt.Errorf("%w: v is %s on chain %d", ErrChainID, v.Dec(), r.chainID)
	}
	return byte(offset[0]), true, nil
}

func (r *Recoverer) recoverTyped(envelope []byte) (common.Address, error) {
	const typeSize = 1
	list := rlp.OpenList(envelope[typeSize:])
	start := list.Offset()
	chainID := list.Uint64()
	for range signedFields[envelope[0]] - 1 {
		list.Next()
	}
	signed := envelope[typeSize+start : typeSize+max(start, list.Offset())]
	parity := list.Uint64()
	r.readSignature(&list)
	switch err := list.End(); {
	case err != nil:
		return common.Address{}, err
	case chainID != r.chainID:
		return common.Address{}, fmt.Errorf("%w: got chain id %d, want %d", ErrChainID, chainID, r.chainID)
	case parity > 1:
		return common.Address{}, fmt.Errorf("%w: parity is %d", ErrSignature, parity)
	}
	r.prefix = rlp.AppendListHeader(append(r.prefix[:0], envelope[0]), len(signed))
	r.hasher.Sum(&r.digest, r.prefix, signed)
	return r.address(byte(parity), &halfOrder)
}

// readSignature reads r and s into the signature, left-padded with zeros.
func (r *Recoverer) readSignature(list *rlp.Reader) {
	clear(r.signature[:])
	for _, end := range []int{32, 64} {
		n := list.Integer(32)
		copy(r.signature[end-len(n):end], n)
	}
}

// address checks the signature, with s at or below the limit (below it if that is the order),
// and recovers the key over the digest.
func (r *Recoverer) address(parity byte, limit *[32]byte) (common.Address, error) {
	var zero [32]byte
	rv, sv := r.signature[:32], r.signature[32:64]
	switch {
	case bytes.Equal(rv, zero[:]) || bytes.Equal(sv, zero[:]):
		return common.Address{}, fmt.Errorf("%w: r or s is zero", ErrSignature)
	case bytes.Compare(rv, order[:]) >= 0 || bytes.Compare(sv, order[:]) >= 0:
		return common.Address{}, fmt.Errorf("%w: r or s is not below the group order", ErrSignature)
	case bytes.Compare(sv, limit[:]) > 0:
		return common.Address{}, fmt.Errorf("%w: s is above half the group order", ErrSignature)
	}
	r.signature[64] = parity
	key, err := crypto.Ecrecover(r.digest[:], r.signature[:])
	if err != nil {
		return common.Address{}, fmt.Errorf("%w: %w", ErrSignature, err)
	}
	const keyPrefix = 1 // 0x04, an uncompressed point
	r.hasher.Sum(&r.digest, key[keyPrefix:])
	return common.Address(r.digest[common.HashLength-common.AddressLength:]), nil
}
