package ethjson

import (
	"errors"
	"fmt"

	"github.com/ethereum/go-ethereum/common"

	"github.com/leani-go/leani/internal/rlp"
)

// ErrType says that a transaction envelope is empty or of an unknown type.
var ErrType = errors.New("unknown transaction type")

// The transaction types (EIP-2718).
const (
	legacyType     = 0
	accessListType = 1 // EIP-2930
	dynamicFeeType = 2 // EIP-1559
	blobType       = 3 // EIP-4844
	setCodeType    = 4 // EIP-7702
)

// transaction is a parsed envelope. Numbers are big-endian without leading zeros; everything
// aliases the envelope.
type transaction struct {
	kind           byte
	chainID        []byte // typed
	nonce          uint64
	gasPrice       []byte // types 0 and 1
	tipCap, feeCap []byte // types 2 to 4
	gas            uint64
	to             []byte // 20 bytes, or none for a creation
	value          []byte
	input          []byte
	accessList     rlp.Reader // typed; checked through
	blobFeeCap     []byte     // type 3
	blobHashes     rlp.Reader // type 3; checked through
	authorizations rlp.Reader // type 4; checked through
	v, r, s        []byte
}

// hasFees tells whether the transaction names a tip and a fee cap in place of a price.
func (t *transaction) hasFees() bool { return t.kind >= dynamicFeeType }

// parse reads an envelope and checks its whole form. After an error t is unspecified.
func (t *transaction) parse(envelope []byte) error {
	const firstList = 0xc0 // the first byte of every RLP list and thus of a legacy transaction
	*t = transaction{}
	if len(envelope) == 0 {
		return fmt.Errorf("%w: empty envelope", ErrType)
	}
	payload := envelope
	if envelope[0] < firstList {
		t.kind, payload = envelope[0], envelope[1:]
		if t.kind < accessListType || t.kind > setCodeType {
			return fmt.Errorf("%w: %#x", ErrType, t.kind)
		}
	}
	fields := rlp.OpenList(payload)
	if t.kind != legacyType {
		t.chainID = fields.Integer(32)
	}
	t.nonce = fields.Uint64()
	if t.hasFees() {
		t.tipCap = fields.Integer(32)
		t.feeCap = fields.Integer(32)
	} else {
		t.gasPrice = fields.Integer(32)
	}
	t.gas = fields.Uint64()
	if t.kind >= blobType {
		t.to = fields.Fixed(common.AddressLength) // these types cannot create
	} else {
		t.to = fields.Bytes()
	}
	t.value = fields.Integer(32)
	t.input = fields.Bytes()
	var lists error
	if t.kind != legacyType {
		t.accessList = fields.List()
		lists = checkAccessList(t.accessList)
	}
	if t.kind == blobType {
		t.blobFeeCap = fields.Integer(32)
		t.blobHashes = fields.List()
		lists = errors.Join(lists, checkHashes(t.blobHashes))
	}
	if t.kind == setCodeType {
		t.authorizations = fields.List()
		lists = errors.Join(lists, checkAuthorizations(t.authorizations))
	}
	t.v = fields.Integer(32)
	t.r = fields.Integer(32)
	t.s = fields.Integer(32)
	if err := fields.End(); err != nil {
		return err
	}
	if n := len(t.to); n != 0 && n != common.AddressLength {
		return fmt.Errorf("recipient of %d bytes: %w", n, rlp.ErrStringSize)
	}
	return lists
}

// blobs is the number of versioned hashes of a checked transaction.
func (t *transaction) blobs() (n int) {
	for hashes := t.blobHashes; hashes.More(); n++ {
		hashes.Fixed(common.HashLength)
	}
	return n
}

func checkAccessList(list rlp.Reader) error {
	for list.More() {
		tuple := list.List()
		tuple.Fixed(common.AddressLength)
		keys := tuple.List()
		if err := errors.Join(tuple.End(), checkHashes(keys)); err != nil {
			return fmt.Errorf("access list: %w", err)
		}
	}
	return list.End()
}

func checkHashes(list rlp.Reader) error {
	for list.More() {
		list.Fixed(common.HashLength)
	}
	return list.End()
}

func checkAuthorizations(list rlp.Reader) error {
	for list.More() {
		a := list.List()
		a.Integer(32)
		a.Fixed(common.AddressLength)
		a.Uint64()
		a.Integer(1)
		a.Integer(32)
		a.Integer(32)
		if err := a.End(); err != nil {
			return fmt.Errorf("authorization list: %w", err)
		}
	}
	return list.End()
}
