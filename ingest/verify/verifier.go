package verify

import (
	"bytes"
	"errors"
	"fmt"
	"slices"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"

	"github.com/leani-go/leani/chain"
	"github.com/leani-go/leani/internal/blockroot"
	"github.com/leani-go/leani/internal/header"
)

// Expected is what the caller knows of a block before it is verified.
type Expected struct {
	Number uint64
	// ParentHash is the hash of the block before it, zero when that is not known.
	ParentHash common.Hash
	// Hash is the hash of the block itself, zero when that is not known.
	Hash common.Hash
}

// Verifier verifies blocks. The zero value is ready.
type Verifier struct {
	hasher blockroot.Hasher
	header header.Header
	bloom  types.Bloom
	hashes []common.Hash // of the transactions of a frame
}

// Block verifies b against its header and against what is expected, and fills in b.BlockRef
// and b.TransactionHashes. b must hold header, transactions and ommers, and withdrawals where
// the block has them. Receipts are verified when b.HasReceipts is set.
//
// The error is an *Error, except for a broken promise of the caller's. After an error b must
// not be used.
func (v *Verifier) Block(b *chain.Block, want Expected) error {
	check, err := v.block(b, want)
	if err == nil {
		return nil
	}
	return &Error{Block: want.Number, Check: check, Err: err}
}

// Header is the parsed header of the block verified last. It is valid as long as that block's
// header bytes and until the next call of Block.
func (v *Verifier) Header() *header.Header { return &v.header }

func (v *Verifier) block(b *chain.Block, want Expected) (Check, error) {
	h := &v.header
	if err := header.Parse(b.Header, h); err != nil {
		return CheckHeader, err
	}
	b.BlockRef = chain.BlockRef{
		Number: h.Number, Hash: v.hasher.Keccak(b.Header), ParentHash: *h.ParentHash, Timestamp: h.Timestamp,
	}
	var unknown common.Hash
	switch {
	case want.Hash != unknown && b.Hash != want.Hash:
		return CheckHash, mismatch(b.Hash, want.Hash)
	case h.Number != want.Number:
		return CheckNumber, fmt.Errorf("got %d want %d", h.Number, want.Number)
	case want.ParentHash != unknown && b.ParentHash != want.ParentHash:
		return CheckParent, mismatch(b.ParentHash, want.ParentHash)
	}
	if check, err := v.body(b, h); err != nil {
		return check, err
	}
	if !b.HasReceipts {
		return 0, nil
	}
	return v.receiptsOf(b, h, true)
}

func (v *Verifier) body(b *chain.Block, h *header.Header) (Check, error) {
	var err error
	if b.TransactionHashes, err = v.transactions(b.Transactions, b.TransactionHashes, h); err != nil {
		return CheckTransactionsRoot, err
	}
	ommers := blockroot.EmptyOmmers
	if !bytes.Equal(b.Ommers, emptyList) {
		ommers = v.hasher.Keccak(b.Ommers)
	}
	if ommers != *h.OmmersHash {
		return CheckOmmersHash, mismatch(ommers, *h.OmmersHash)
	}
	switch {
	case h.WithdrawalsRoot == nil && b.Withdrawals != nil:
		return CheckWithdrawals, errors.New("got a list, the header has no root of one")
	case h.WithdrawalsRoot != nil && b.Withdrawals == nil:
		return CheckWithdrawals, errors.New("got none, the header has the root of a list")
	case h.WithdrawalsRoot == nil:
		return 0, nil
	}
	return v.withdrawals(b.Withdrawals, h)
}

// transactions proves a list of transactions by its root, and gives their hashes in the memory of a list.
func (v *Verifier) transactions(list [][]byte, hashes []common.Hash, h *header.Header) ([]common.Hash, error) {
	for i, envelope := range list {
		if len(envelope) == 0 {
			return hashes, fmt.Errorf("transaction %d is empty", i)
		}
	}
	hashes = slices.Grow(hashes[:0], len(list))[:len(list)]
	if got := v.hasher.TransactionsRoot(list, hashes); got != *h.TransactionsRoot {
		return hashes, mismatch(got, *h.TransactionsRoot)
	}
	return hashes, nil
}

// withdrawals proves a list of withdrawals by its root, which the header has.
func (v *Verifier) withdrawals(list []byte, h *header.Header) (Check, error) {
	got, err := v.hasher.WithdrawalsRoot(list)
	if err != nil {
		return CheckWithdrawals, err
	}
	if got != *h.WithdrawalsRoot {
		return CheckWithdrawalsRoot, mismatch(got, *h.WithdrawalsRoot)
	}
	return 0, nil
}

// receiptsOf proves the receipts of b, against its transactions too if they are there.
func (v *Verifier) receiptsOf(b *chain.Block, h *header.Header, transactions bool) (Check, error) {
	if transactions && len(b.Receipts) != len(b.Transactions) {
		return CheckReceiptsCount, fmt.Errorf("got %d want %d, one for each transaction", len(b.Receipts), len(b.Transactions))
	}
	var gas uint64
	var logs uint32
	for i := range b.Receipts {
		r := &b.Receipts[i]
		if transactions {
			if want := transactionType(b.Transactions[i]); r.Type != want {
				return CheckReceiptType, fmt.Errorf("receipt %d: got %d, its transaction has %d", i, r.Type, want)
			}
		}
		if r.CumulativeGasUsed < gas {
			return CheckCumulativeGas, fmt.Errorf("receipt %d: got %d after %d", i, r.CumulativeGasUsed, gas)
		}
		if r.LogsEnd < logs || uint64(r.LogsEnd) > uint64(len(b.Logs)) {
			return CheckLogs, fmt.Errorf("receipt %d: logs %d to %d of %d", i, logs, r.LogsEnd, len(b.Logs))
		}
		gas, logs = r.CumulativeGasUsed, r.LogsEnd
	}
	if uint64(logs) != uint64(len(b.Logs)) {
		return CheckLogs, fmt.Errorf("%d belong to receipts, got %d", logs, len(b.Logs))
	}
	// From Amsterdam on the gas of a block is no longer the sum of what its transactions pay
	// for (EIP-7778, EIP-8037); the receipts root covers the receipts' gas all the same.
	if h.Fields <= header.FieldsPrague && gas != h.GasUsed {
		return CheckCumulativeGas, fmt.Errorf("last receipt: got %d, the header has %d", gas, h.GasUsed)
	}
	if got := v.hasher.ReceiptsRoot(b, &v.bloom); got != *h.ReceiptsRoot {
		return CheckReceiptsRoot, mismatch(got, *h.ReceiptsRoot)
	}
	if v.bloom != *h.LogsBloom {
		return CheckLogsBloom, fmt.Errorf("got %x want %x", v.bloom, *h.LogsBloom)
	}
	return 0, nil
}

// emptyList is the RLP of a list without items.
var emptyList = []byte{0xc0}

// transactionType is the EIP-2718 type of an envelope: its first byte, unless that begins the
// list of a legacy transaction.
func transactionType(envelope []byte) byte {
	if envelope[0] >= 0xc0 {
		return 0
	}
	return envelope[0]
}

func mismatch(got, want common.Hash) error { return fmt.Errorf("got %x want %x", got, want) }
