package ethjson

import (
	"fmt"
	"slices"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/params"
	"github.com/holiman/uint256"

	"github.com/leani-go/leani/chain"
	"github.com/leani-go/leani/internal/bloom"
	"github.com/leani-go/leani/internal/header"
	"github.com/leani-go/leani/internal/hexenc"
	"github.com/leani-go/leani/internal/rlp"
)

// AppendReceipts appends the array of all receipts of a block, which needs its header,
// transactions, their hashes and senders, receipts and logs.
//
// A block with a blob transaction needs the price of blob gas: where that cannot be computed,
// no receipt of the block is given and the error is the one of chain.Network.BlobGasPrice.
// Otherwise it fails with ErrMaterial, ErrType or an error of the rlp package.
func (e *Encoder) AppendReceipts(dst []byte, b *chain.Block) ([]byte, error) {
	blobPrice, err := e.startReceipts(b, 0, len(b.Receipts))
	if err != nil {
		return dst, err
	}
	e.computeBlooms(b, 0, len(b.Receipts))
	start := len(dst)
	dst = append(dst, '[')
	for i := range b.Receipts {
		if i > 0 {
			dst = append(dst, ',')
		}
		if dst, err = e.appendReceipt(dst, b, i, &e.blooms[i], &blobPrice); err != nil {
			return dst[:start], err
		}
	}
	return append(dst, ']'), nil
}

// AppendReceipt appends the receipt at an index of a block. It needs and refuses what
// AppendReceipts does, and fails with ErrIndex for an index beyond the transactions.
func (e *Encoder) AppendReceipt(dst []byte, b *chain.Block, index int) ([]byte, error) {
	if err := checkIndex(b, index); err != nil {
		return dst, err
	}
	blobPrice, err := e.startReceipts(b, index, index+1)
	if err != nil {
		return dst, err
	}
	e.computeBlooms(b, index, index+1)
	return e.appendReceipt(dst, b, index, &e.blooms[0], &blobPrice)
}

// startReceipts checks the block as far as receipts [from, to) need it, reads its header and prices blob
// gas if any transaction of the block needs it.
func (e *Encoder) startReceipts(b *chain.Block, from, to int) (blobPrice uint256.Int, err error) {
	if err := checkTransactions(b); err != nil {
		return blobPrice, err
	}
	if err := checkReceipts(b, from, to); err != nil {
		return blobPrice, err
	}
	if err := e.readHeader(b); err != nil {
		return blobPrice, err
	}
	// A receipt has the type of its transaction, and is there also when other transactions are not.
	isBlob := func(envelope []byte) bool { return len(envelope) > 0 && envelope[0] == blobType }
	hasBlob := func(r chain.Receipt) bool { return r.Type == blobType }
	if !slices.ContainsFunc(b.Receipts, hasBlob) && !slices.ContainsFunc(b.Transactions, isBlob) {
		return blobPrice, nil
	}
	var excess *uint64
	if e.header.Fields >= header.FieldsCancun {
		excess = &e.header.ExcessBlobGas
	}
	blobPrice, err = e.network.BlobGasPrice(e.header.Timestamp, excess)
	if err != nil {
		return blobPrice, fmt.Errorf("block %d: %w", b.Number, err)
	}
	return blobPrice, nil
}

// checkReceipts checks that receipts and logs fit each other and the transactions, and that the logs of
// receipts [from, to) are there.
func checkReceipts(b *chain.Block, from, to int) error {
	if !b.HasReceipts || len(b.Receipts) != len(b.Transactions) {
		return fmt.Errorf("%w: block %d has %d transactions and %d receipts", ErrMaterial,
			b.Number, len(b.Transactions), len(b.Receipts))
	}
	var gas uint64
	var logs uint32
	for i := range b.Receipts {
		r := &b.Receipts[i]
		if r.CumulativeGasUsed < gas || r.LogsEnd < logs || int64(r.LogsEnd) > int64(len(b.Logs)) {
			return fmt.Errorf("%w: block %d: receipt %d goes back in gas or logs", ErrMaterial, b.Number, i)
		}
		gas, logs = r.CumulativeGasUsed, r.LogsEnd
	}
	if from == to {
		return nil
	}
	first := uint32(0)
	if from > 0 {
		first = b.Receipts[from-1].LogsEnd
	}
	for i := first; i < b.Receipts[to-1].LogsEnd; i++ {
		l := &b.Logs[i]
		complete := l.Address != nil && l.NumTopics <= chain.MaximumTopics
		for t := 0; complete && t < int(l.NumTopics); t++ {
			complete = l.Topics[t] != nil
		}
		if !complete {
			return fmt.Errorf("%w: block %d: log %d", ErrMaterial, b.Number, i)
		}
	}
	return nil
}

// computeBlooms fills e.blooms with the blooms of the receipts [from, to).
func (e *Encoder) computeBlooms(b *chain.Block, from, to int) {
	if e.memo == nil {
		e.memo = bloom.NewMemo(memoEntries)
	}
	e.blooms = slices.Grow(e.blooms[:0], to-from)[:to-from]
	clear(e.blooms)
	for i := range e.blooms {
		e.memo.AddLogs(&e.blooms[i], b.ReceiptLogs(from+i))
	}
	e.memo.Flush()
}

// appendReceipt appends a receipt of a block that startReceipts prepared.
func (e *Encoder) appendReceipt(dst []byte, b *chain.Block, index int, logsBloom *types.Bloom, blobPrice *uint256.Int) ([]byte, error) {
	if err := e.readTransaction(b, index); err != nil {
		return dst, err
	}
	r, t := &b.Receipts[index], &e.transaction
	var gasBefore uint64
	var logIndex uint32
	if index > 0 {
		gasBefore, logIndex = b.Receipts[index-1].CumulativeGasUsed, b.Receipts[index-1].LogsEnd
	}
	e.place.setBlock(&b.BlockRef)
	e.place.setTransaction(&b.TransactionHashes[index], uint32(index))

	dst = append(dst, '{')
	dst = append(dst, e.place.blockNumberText()...)
	dst = append(dst, e.place.transactionText()...)
	dst = appendUint(dst, `,"type":"`, uint64(t.kind))
	dst = appendData(dst, `,"from":"`, b.Senders[index][:])
	dst = appendRecipient(dst, `,"to":`, t.to)
	if len(t.to) == 0 {
		dst = appendData(dst, `,"contractAddress":"`, e.createdAddress(&b.Senders[index], t.nonce))
	} else {
		dst = append(dst, `,"contractAddress":null`...)
	}
	if r.PostState != nil {
		dst = appendData(dst, `,"root":"`, r.PostState)
	} else {
		dst = appendUint(dst, `,"status":"`, uint64(r.Status))
	}
	dst = appendUint(dst, `,"cumulativeGasUsed":"`, r.CumulativeGasUsed)
	dst = appendUint(dst, `,"gasUsed":"`, r.CumulativeGasUsed-gasBefore)
	price := t.effectiveGasPrice(e.header.BaseFee)
	dst = append(hexenc.AppendUint256(append(dst, `,"effectiveGasPrice":"`...), &price), '"')
	if t.kind == blobType {
		dst = appendUint(dst, `,"blobGasUsed":"`, uint64(t.blobs())*params.BlobTxBlobGasPerBlob)
		dst = append(hexenc.AppendUint256(append(dst, `,"blobGasPrice":"`...), blobPrice), '"')
	}
	dst = appendData(dst, `,"logsBloom":"`, logsBloom[:])
	dst = append(dst, `,"logs":[`...)
	for i := logIndex; i < r.LogsEnd; i++ {
		if i > logIndex {
			dst = append(dst, ',')
		}
		dst = e.appendLog(dst, &b.Logs[i], i)
	}
	return append(dst, "]}"...), nil
}

// createdAddress is the address of the contract that a transaction creates: the tail of the
// Keccak-256 of rlp([sender, nonce]) (Yellow Paper 7).
func (e *Encoder) createdAddress(sender *common.Address, nonce uint64) []byte {
	content := rlp.SizeString(sender[:]) + rlp.SizeUint64(nonce)
	e.scratch = rlp.AppendListHeader(e.scratch[:0], content)
	e.scratch = rlp.AppendString(e.scratch, sender[:])
	e.scratch = rlp.AppendUint64(e.scratch, nonce)
	e.hasher.Sum(&e.digest, e.scratch)
	return e.digest[common.HashLength-common.AddressLength:]
}
