package header

import (
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"

	"github.com/leani-go/leani/internal/rlp"
)

// Header is a parsed block header (Yellow Paper 4.4; later fields by the EIPs named with
// them). Fields that a fork added are absent from earlier headers.
type Header struct {
	ParentHash       *common.Hash
	OmmersHash       *common.Hash
	Beneficiary      *common.Address
	StateRoot        *common.Hash
	TransactionsRoot *common.Hash
	ReceiptsRoot     *common.Hash
	LogsBloom        *types.Bloom
	Difficulty       []byte // big endian without leading zeros, at most 32 bytes
	Number           uint64
	GasLimit         uint64
	GasUsed          uint64
	Timestamp        uint64 // Unix seconds
	Extra            []byte
	MixHash          *common.Hash
	Nonce            *types.BlockNonce

	// Fields is the number of fields present: FieldsFrontier or more. The fields below are
	// there in this order up to it; the others are nil or 0.
	Fields int

	BaseFee             []byte       // EIP-1559, wei, as Difficulty; not nil when present
	WithdrawalsRoot     *common.Hash // EIP-4895
	BlobGasUsed         uint64       // EIP-4844
	ExcessBlobGas       uint64       // EIP-4844
	ParentBeaconRoot    *common.Hash // EIP-4788
	RequestsHash        *common.Hash // EIP-7685
	BlockAccessListHash *common.Hash // EIP-7928
	SlotNumber          uint64       // EIP-7843
}

// The values of Header.Fields after the forks that added fields.
const (
	FieldsFrontier  = 15
	FieldsLondon    = 16
	FieldsShanghai  = 17
	FieldsCancun    = 20
	FieldsPrague    = 21
	FieldsAmsterdam = 23
	FieldsMaximum   = FieldsAmsterdam
)

// Parse reads a header that is exactly encoded. It refuses anything but canonical RLP, a
// field of the wrong length, and fields beyond the ones of Header. The result aliases
// encoded. An error is an *rlp.Error, which gives the offset; h is then unspecified.
func Parse(encoded []byte, h *Header) error {
	r := rlp.OpenList(encoded)
	*h = Header{
		ParentHash:       hash(&r),
		OmmersHash:       hash(&r),
		Beneficiary:      address(&r),
		StateRoot:        hash(&r),
		TransactionsRoot: hash(&r),
		ReceiptsRoot:     hash(&r),
		LogsBloom:        bloom(&r),
		Difficulty:       r.Integer(32),
		Number:           r.Uint64(),
		GasLimit:         r.Uint64(),
		GasUsed:          r.Uint64(),
		Timestamp:        r.Uint64(),
		Extra:            r.Bytes(),
		MixHash:          hash(&r),
		Nonce:            nonce(&r),
		Fields:           FieldsFrontier,
	}
	for r.More() && h.Fields < FieldsMaximum {
		switch h.Fields {
		case 15:
			h.BaseFee = r.Integer(32)
		case 16:
			h.WithdrawalsRoot = hash(&r)
		case 17:
			h.BlobGasUsed = r.Uint64()
		case 18:
			h.ExcessBlobGas = r.Uint64()
		case 19:
			h.ParentBeaconRoot = hash(&r)
		case 20:
			h.RequestsHash = hash(&r)
		case 21:
			h.BlockAccessListHash = hash(&r)
		case 22:
			h.SlotNumber = r.Uint64()
		}
		h.Fields++
	}
	return r.End()
}

func hash(r *rlp.Reader) *common.Hash {
	if b := r.Fixed(common.HashLength); b != nil {
		return (*common.Hash)(b)
	}
	return nil
}

func address(r *rlp.Reader) *common.Address {
	if b := r.Fixed(common.AddressLength); b != nil {
		return (*common.Address)(b)
	}
	return nil
}

func bloom(r *rlp.Reader) *types.Bloom {
	if b := r.Fixed(types.BloomByteLength); b != nil {
		return (*types.Bloom)(b)
	}
	return nil
}

func nonce(r *rlp.Reader) *types.BlockNonce {
	if b := r.Fixed(len(types.BlockNonce{})); b != nil {
		return (*types.BlockNonce)(b)
	}
	return nil
}
