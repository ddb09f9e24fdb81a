package ethjson

import (
	"fmt"

	"github.com/ethereum/go-ethereum/common"

	"github.com/leani-go/leani/chain"
	"github.com/leani-go/leani/internal/header"
	"github.com/leani-go/leani/internal/hexenc"
	"github.com/leani-go/leani/internal/rlp"
)

// AppendBlock appends a block with its full transactions, or with their hashes only. It needs
// header, transactions, hashes, ommers, withdrawals when the header commits to some, and the
// senders for full transactions.
//
// It fails with ErrMaterial, ErrType or an error of the rlp package.
func (e *Encoder) AppendBlock(dst []byte, b *chain.Block, fullTransactions bool) ([]byte, error) {
	start := len(dst)
	dst, err := e.appendBlock(dst, b, fullTransactions)
	if err != nil {
		return dst[:start], err
	}
	return dst, nil
}

// AppendHeader appends the header of a block, without transactions, as subscriptions give new heads. It needs the
// material of AppendBlock but the hashes: the size of a block is that of all its parts.
//
// It fails with ErrMaterial or an error of the rlp package.
func (e *Encoder) AppendHeader(dst []byte, b *chain.Block) ([]byte, error) {
	if err := e.readHeader(b); err != nil {
		return dst, err
	}
	dst = appendHeaderMembers(append(dst, '{'), b, &e.header)
	return append(appendUint(dst, `,"size":"`, blockSize(b)), '}'), nil
}

func (e *Encoder) appendBlock(dst []byte, b *chain.Block, fullTransactions bool) ([]byte, error) {
	if err := e.readHeader(b); err != nil {
		return dst, err
	}
	if len(b.TransactionHashes) != len(b.Transactions) {
		return dst, fmt.Errorf("%w: block %d has %d transactions and %d hashes", ErrMaterial,
			b.Number, len(b.Transactions), len(b.TransactionHashes))
	}
	if e.header.Fields >= header.FieldsShanghai && b.Withdrawals == nil {
		return dst, fmt.Errorf("%w: block %d has no withdrawals", ErrMaterial, b.Number)
	}
	dst = append(dst, '{')
	dst = appendHeaderMembers(dst, b, &e.header)
	dst = appendUint(dst, `,"size":"`, blockSize(b))

	dst = append(dst, `,"transactions":[`...)
	if fullTransactions {
		if err := checkTransactions(b); err != nil {
			return dst, err
		}
		for i := range b.Transactions {
			if i > 0 {
				dst = append(dst, ',')
			}
			var err error
			if dst, err = e.appendTransaction(dst, b, i); err != nil {
				return dst, err
			}
		}
	} else {
		separator := `"`
		for i := range b.TransactionHashes {
			dst = appendData(dst, separator, b.TransactionHashes[i][:])
			separator = `,"`
		}
	}

	dst, err := e.appendOmmerHashes(append(dst, `],"uncles":[`...), b.Ommers)
	if err != nil {
		return dst, fmt.Errorf("block %d: ommers: %w", b.Number, err)
	}
	dst = append(dst, ']')
	if b.Withdrawals != nil {
		dst, err = appendWithdrawals(append(dst, `,"withdrawals":[`...), b.Withdrawals)
		if err != nil {
			return dst, fmt.Errorf("block %d: withdrawals: %w", b.Number, err)
		}
		dst = append(dst, ']')
	}
	return append(dst, '}'), nil
}

// appendHeaderMembers appends the members that come from the header. Those of later forks are
// there where the header has the field.
func appendHeaderMembers(dst []byte, b *chain.Block, h *header.Header) []byte {
	dst = appendUint(dst, `"number":"`, h.Number)
	dst = appendData(dst, `,"hash":"`, b.Hash[:])
	dst = appendData(dst, `,"parentHash":"`, h.ParentHash[:])
	dst = appendData(dst, `,"nonce":"`, h.Nonce[:])
	dst = appendData(dst, `,"mixHash":"`, h.MixHash[:])
	dst = appendData(dst, `,"sha3Uncles":"`, h.OmmersHash[:])
	dst = appendData(dst, `,"logsBloom":"`, h.LogsBloom[:])
	dst = appendData(dst, `,"stateRoot":"`, h.StateRoot[:])
	dst = appendData(dst, `,"miner":"`, h.Beneficiary[:])
	dst = appendNumber(dst, `,"difficulty":"`, h.Difficulty)
	dst = appendData(dst, `,"extraData":"`, h.Extra)
	dst = appendUint(dst, `,"gasLimit":"`, h.GasLimit)
	dst = appendUint(dst, `,"gasUsed":"`, h.GasUsed)
	dst = appendUint(dst, `,"timestamp":"`, h.Timestamp)
	dst = appendData(dst, `,"transactionsRoot":"`, h.TransactionsRoot[:])
	dst = appendData(dst, `,"receiptsRoot":"`, h.ReceiptsRoot[:])
	// The order of the optional fields, each needing one more than those before it.
	for n := header.FieldsFrontier; n < h.Fields; n++ {
		switch n {
		case 15:
			dst = appendNumber(dst, `,"baseFeePerGas":"`, h.BaseFee)
		case 16:
			dst = appendData(dst, `,"withdrawalsRoot":"`, h.WithdrawalsRoot[:])
		case 17:
			dst = appendUint(dst, `,"blobGasUsed":"`, h.BlobGasUsed)
		case 18:
			dst = appendUint(dst, `,"excessBlobGas":"`, h.ExcessBlobGas)
		case 19:
			dst = appendData(dst, `,"parentBeaconBlockRoot":"`, h.ParentBeaconRoot[:])
		case 20:
			dst = appendData(dst, `,"requestsHash":"`, h.RequestsHash[:])
		case 21:
			dst = appendData(dst, `,"blockAccessListHash":"`, h.BlockAccessListHash[:])
		case 22:
			dst = appendUint(dst, `,"slotNumber":"`, h.SlotNumber)
		}
	}
	return dst
}

// blockSize is the size in bytes of the block's RLP: the list of header, transactions, ommers
// and, from Shanghai on, withdrawals. In it a typed transaction is a string.
func blockSize(b *chain.Block) uint64 {
	transactions := 0
	for _, envelope := range b.Transactions {
		if len(envelope) > 0 && envelope[0] <= setCodeType {
			transactions += rlp.SizeString(envelope)
		} else {
			transactions += len(envelope)
		}
	}
	return uint64(rlp.SizeList(len(b.Header) + rlp.SizeList(transactions) + len(b.Ommers) + len(b.Withdrawals)))
}

// appendOmmerHashes appends the hashes of a list of headers.
func (e *Encoder) appendOmmerHashes(dst, list []byte) ([]byte, error) {
	ommers := rlp.OpenList(list)
	for separator := `"`; ommers.More(); separator = `,"` {
		kind, encoded := ommers.Raw()
		if ommers.Err() != nil {
			break
		}
		if kind != rlp.List {
			return dst, rlp.ErrNotList
		}
		var hash common.Hash
		e.hasher.Sum(&hash, encoded)
		dst = appendData(dst, separator, hash[:])
	}
	return dst, ommers.End()
}

// appendWithdrawals appends a list of [index, validator index, address, amount] (EIP-4895).
func appendWithdrawals(dst, list []byte) ([]byte, error) {
	withdrawals := rlp.OpenList(list)
	for separator := ""; withdrawals.More(); separator = "," {
		w := withdrawals.List()
		index, validator := w.Uint64(), w.Uint64()
		address, amount := w.Fixed(common.AddressLength), w.Uint64()
		if err := w.End(); err != nil {
			return dst, err
		}
		dst = append(dst, separator...)
		dst = appendUint(dst, `{"index":"`, index)
		dst = appendUint(dst, `,"validatorIndex":"`, validator)
		dst = appendData(dst, `,"address":"`, address)
		dst = append(hexenc.AppendQuantity(append(dst, `,"amount":"`...), amount), `"}`...)
	}
	return dst, withdrawals.End()
}
