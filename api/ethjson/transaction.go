package ethjson

import (
	"github.com/ethereum/go-ethereum/common"
	"github.com/holiman/uint256"

	"github.com/leani-go/leani/chain"
	"github.com/leani-go/leani/internal/hexenc"
	"github.com/leani-go/leani/internal/rlp"
)

// AppendTransaction appends the transaction at an index of a block, which needs its header,
// transactions, their hashes and their senders.
//
// It fails with ErrIndex, ErrMaterial, ErrType or an error of the rlp package.
func (e *Encoder) AppendTransaction(dst []byte, b *chain.Block, index int) ([]byte, error) {
	if err := checkIndex(b, index); err != nil {
		return dst, err
	}
	if err := checkTransactions(b); err != nil {
		return dst, err
	}
	if err := e.readHeader(b); err != nil {
		return dst, err
	}
	return e.appendTransaction(dst, b, index)
}

// appendTransaction appends a transaction of a block whose header was read and whose parts
// were checked.
func (e *Encoder) appendTransaction(dst []byte, b *chain.Block, index int) ([]byte, error) {
	if err := e.readTransaction(b, index); err != nil {
		return dst, err
	}
	e.place.setBlock(&b.BlockRef)
	t := &e.transaction

	dst = append(dst, '{')
	dst = append(dst, e.place.blockText()...)
	dst = appendData(dst, `,"hash":"`, b.TransactionHashes[index][:])
	dst = appendUint(dst, `,"transactionIndex":"`, uint64(index))
	dst = appendUint(dst, `,"type":"`, uint64(t.kind))
	dst = appendUint(dst, `,"nonce":"`, t.nonce)
	dst = appendData(dst, `,"from":"`, b.Senders[index][:])
	dst = appendRecipient(dst, `,"to":`, t.to)
	dst = appendNumber(dst, `,"value":"`, t.value)
	dst = appendUint(dst, `,"gas":"`, t.gas)
	price := t.effectiveGasPrice(e.header.BaseFee)
	dst = append(hexenc.AppendUint256(append(dst, `,"gasPrice":"`...), &price), '"')
	if t.hasFees() {
		dst = appendNumber(dst, `,"maxFeePerGas":"`, t.feeCap)
		dst = appendNumber(dst, `,"maxPriorityFeePerGas":"`, t.tipCap)
	}
	dst = appendData(dst, `,"input":"`, t.input)
	if t.kind == legacyType {
		if id, ok := t.legacyChainID(); ok {
			dst = append(hexenc.AppendUint256(append(dst, `,"chainId":"`...), &id), '"')
		}
	} else {
		dst = appendNumber(dst, `,"chainId":"`, t.chainID)
		dst = appendAccessList(dst, t.accessList)
	}
	if t.kind == blobType {
		dst = appendNumber(dst, `,"maxFeePerBlobGas":"`, t.blobFeeCap)
		dst = appendBlobHashes(dst, t.blobHashes)
	}
	if t.kind == setCodeType {
		dst = appendAuthorizations(dst, t.authorizations)
	}
	dst = appendNumber(dst, `,"v":"`, t.v)
	dst = appendNumber(dst, `,"r":"`, t.r)
	dst = appendNumber(dst, `,"s":"`, t.s)
	if t.kind != legacyType {
		dst = appendUint(dst, `,"yParity":"`, uint64(min(1, len(t.v))))
	}
	return append(dst, '}'), nil
}

// appendRecipient appends an address, or null for a creation. The key ends with the colon.
func appendRecipient(dst []byte, key string, to []byte) []byte {
	dst = append(dst, key...)
	if len(to) == 0 {
		return append(dst, "null"...)
	}
	dst = append(dst, '"')
	dst = hexenc.AppendBytes(dst, to)
	return append(dst, '"')
}

// appendAccessList appends the list of [address, [key, …]], which was checked.
func appendAccessList(dst []byte, list rlp.Reader) []byte {
	dst = append(dst, `,"accessList":[`...)
	for separator := ""; list.More(); separator = "," {
		tuple := list.List()
		dst = append(dst, separator...)
		dst = appendData(dst, `{"address":"`, tuple.Fixed(common.AddressLength))
		dst = append(dst, `,"storageKeys":[`...)
		dst = appendHashes(dst, tuple.List())
		dst = append(dst, "]}"...)
	}
	return append(dst, ']')
}

// appendBlobHashes appends the versioned hashes, which were checked; no member for none.
func appendBlobHashes(dst []byte, list rlp.Reader) []byte {
	if !list.More() {
		return dst
	}
	dst = append(dst, `,"blobVersionedHashes":[`...)
	dst = appendHashes(dst, list)
	return append(dst, ']')
}

func appendHashes(dst []byte, list rlp.Reader) []byte {
	for separator := `"`; list.More(); separator = `,"` {
		dst = appendData(dst, separator, list.Fixed(common.HashLength))
	}
	return dst
}

// appendAuthorizations appends the list of [chain id, address, nonce, parity, r, s], which was
// checked; no member for an empty one.
func appendAuthorizations(dst []byte, list rlp.Reader) []byte {
	if !list.More() {
		return dst
	}
	dst = append(dst, `,"authorizationList":[`...)
	for separator := ""; list.More(); separator = "," {
		a := list.List()
		dst = append(dst, separator...)
		dst = appendNumber(dst, `{"chainId":"`, a.Integer(32))
		dst = appendData(dst, `,"address":"`, a.Fixed(common.AddressLength))
		dst = appendNumber(dst, `,"nonce":"`, a.Integer(8))
		dst = appendNumber(dst, `,"yParity":"`, a.Integer(1))
		dst = appendNumber(dst, `,"r":"`, a.Integer(32))
		dst = appendNumber(dst, `,"s":"`, a.Integer(32))
		dst = append(dst, '}')
	}
	return append(dst, ']')
}

// effectiveGasPrice is what a unit of gas of the transaction cost in a block with the base
// fee, which is nil before EIP-1559: min(tip cap + base fee, fee cap), or the price that the
// transaction names.
func (t *transaction) effectiveGasPrice(baseFee []byte) (price uint256.Int) {
	if !t.hasFees() {
		price.SetBytes(t.gasPrice)
		return price
	}
	var feeCap, fee uint256.Int
	feeCap.SetBytes(t.feeCap)
	if baseFee == nil {
		return feeCap
	}
	price.SetBytes(t.tipCap)
	fee.SetBytes(baseFee)
	if _, overflow := price.AddOverflow(&price, &fee); overflow || feeCap.Lt(&price) {
		return feeCap
	}
	return price
}

// legacyChainID is the chain id in the v value of a legacy transaction (EIP-155), false when
// it has none.
func (t *transaction) legacyChainID() (id uint256.Int, ok bool) {
	id.SetBytes(t.v)
	const (
		evenParity = 27 // v without chain id, and this plus one
		offset     = 35 // v less twice the chain id and the parity
	)
	if id.IsUint64() {
		v := id.Uint64()
		if v == evenParity || v == evenParity+1 {
			return id, false
		}
		// Values below the offset occur in no block. go-ethereum lets them wrap around.
		id.SetUint64((v - offset) / 2)
	} else {
		id.SubUint64(&id, offset)
		id.Rsh(&id, 1)
	}
	return id, !id.IsZero()
}
