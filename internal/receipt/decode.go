package receipt

import (
	"errors"
	"fmt"
	"math"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"

	"github.com/leani-go/leani/chain"
	"github.com/leani-go/leani/internal/rlp"
)

// What can be wrong with a receipt beside its RLP.
var (
	// ErrType: the type is none of EIP-2718, or not written in the form it must have.
	ErrType = errors.New("receipt type")
	// ErrOutcome: neither a status (EIP-658) nor a 32-byte state root.
	ErrOutcome = errors.New("receipt status or state root")
	// ErrTopics: a log has more topics than an opcode can give it.
	ErrTopics = errors.New("too many log topics")
	// ErrTooMany: more logs than 32 bits can count.
	ErrTooMany = errors.New("too many logs in the block")
)

// maximumType is the largest EIP-2718 type.
const maximumType = 0x7f

// DecodeSlim reads an RLP list of slim receipts and appends them to b.Receipts and b.Logs.
// Both alias list. An error names the receipt and the offset in list; b then holds the
// receipts before it and perhaps a part of that one.
func DecodeSlim(list []byte, b *chain.Block) error {
	receipts := rlp.OpenList(list)
	for receipts.More() {
		index, offset := len(b.Receipts), receipts.Offset()
		fields := receipts.List()
		receiptType := fields.Uint64()
		outcome := fields.Bytes()
		gas := fields.Uint64()
		logs := fields.List()
		err := fields.End()
		if err == nil && receiptType > maximumType {
			err = &rlp.Error{Offset: offset, Err: ErrType}
		}
		if err == nil {
			r := chain.Receipt{Type: byte(receiptType), CumulativeGasUsed: gas}
			err = finish(b, r, offset, outcome, &logs)
		}
		if err != nil {
			return fmt.Errorf("receipt %d: %w", index, err)
		}
	}
	return receipts.End()
}

// DecodeCanonical reads an RLP list of canonical receipts, typed ones as strings, and appends
// them to b.Receipts and b.Logs and the blooms they carry to blooms. Everything aliases list.
// It does not compare the blooms with the logs. An error names the receipt and the offset in
// list.
func DecodeCanonical(list []byte, b *chain.Block, blooms []*types.Bloom) ([]*types.Bloom, error) {
	receipts := rlp.OpenList(list)
	for receipts.More() {
		index, offset := len(b.Receipts), receipts.Offset()
		receiptType, fields := openCanonical(&receipts)
		bloom, err := decodeCanonical(receiptType, &fields, offset, b)
		if err != nil {
			return blooms, fmt.Errorf("receipt %d: %w", index, err)
		}
		blooms = append(blooms, bloom)
	}
	return blooms, receipts.End()
}

// DecodeOne reads one canonical receipt and appends it to b.Receipts and b.Logs. They and the bloom
// alias encoded. An error gives the offset; b is then as it was, but for logs that were added.
func DecodeOne(encoded []byte, b *chain.Block) (*types.Bloom, error) {
	receiptType, fields := byte(0), rlp.Reader{}
	switch {
	case len(encoded) > 0 && encoded[0] > maximumType:
		fields = rlp.OpenList(encoded)
	case len(encoded) > 0 && encoded[0] != 0:
		receiptType, fields = encoded[0], rlp.OpenListAt(encoded[1:], 1)
	default:
		return nil, &rlp.Error{Err: ErrType}
	}
	return decodeCanonical(receiptType, &fields, 0, b)
}

// decodeCanonical reads the fields of a canonical receipt and appends it to b.
func decodeCanonical(receiptType byte, fields *rlp.Reader, offset int, b *chain.Block) (*types.Bloom, error) {
	outcome := fields.Bytes()
	gas := fields.Uint64()
	bloom := fields.Fixed(types.BloomByteLength)
	logs := fields.List()
	if err := fields.End(); err != nil {
		return nil, err
	}
	r := chain.Receipt{Type: receiptType, CumulativeGasUsed: gas}
	if err := finish(b, r, offset, outcome, &logs); err != nil {
		return nil, err
	}
	return (*types.Bloom)(bloom), nil
}

// openCanonical reads the next receipt of a list: a list of fields, or a string of a type
// byte and such a list.
func openCanonical(receipts *rlp.Reader) (receiptType byte, fields rlp.Reader) {
	peek := *receipts
	if kind, _ := peek.Next(); kind == rlp.List {
		return 0, receipts.List()
	}
	envelope := receipts.Bytes()
	start := receipts.Offset() - len(envelope)
	switch {
	case receipts.Err() != nil:
		return 0, *receipts
	case len(envelope) == 0 || envelope[0] == 0 || envelope[0] > maximumType:
		return 0, rlp.Failed(start, ErrType)
	}
	return envelope[0], rlp.OpenListAt(envelope[1:], start+1)
}

// finish reads what both encodings have alike, outcome and logs, and appends the receipt r and
// its logs to b.
func finish(b *chain.Block, r chain.Receipt, offset int, outcome []byte, logs *rlp.Reader) error {
	switch {
	case len(outcome) == 0:
	case len(outcome) == 1 && outcome[0] == 1:
		r.Status = 1
	case len(outcome) == common.HashLength:
		r.PostState = outcome
	default:
		return &rlp.Error{Offset: offset, Err: ErrOutcome}
	}
	for logs.More() {
		if len(b.Logs) == math.MaxUint32 {
			return &rlp.Error{Offset: logs.Offset(), Err: ErrTooMany}
		}
		fields := logs.List()
		b.Logs = append(b.Logs, chain.Log{})
		if err := decodeLog(&fields, &b.Logs[len(b.Logs)-1]); err != nil {
			return err
		}
	}
	if err := logs.End(); err != nil {
		return err
	}
	r.LogsEnd = uint32(len(b.Logs))
	b.Receipts = append(b.Receipts, r)
	return nil
}

func decodeLog(fields *rlp.Reader, l *chain.Log) error {
	address := fields.Fixed(common.AddressLength)
	topics := fields.List()
	l.Data = fields.Bytes()
	if err := fields.End(); err != nil {
		return err
	}
	l.Address = (*common.Address)(address)
	for topics.More() {
		if l.NumTopics == chain.MaximumTopics {
			return &rlp.Error{Offset: topics.Offset(), Err: ErrTopics}
		}
		if topic := topics.Fixed(common.HashLength); topic != nil {
			l.Topics[l.NumTopics] = (*common.Hash)(topic)
			l.NumTopics++
		}
	}
	return topics.End()
}
