package era

import (
	"errors"
	"fmt"
	"slices"

	"github.com/ethereum/go-ethereum/core/types"

	"github.com/leani-go/leani/chain"
	"github.com/leani-go/leani/internal/header"
	"github.com/leani-go/leani/internal/receipt"
	"github.com/leani-go/leani/internal/rlp"
)

// fill decompresses the pieces of a block into the start of free, fills b with them and
// returns what is left of free.
func (f *File) fill(b *chain.Block, number uint64, list *pieces, buf *Buffer, free []byte) ([]byte, error) {
	for c := range list {
		p := &list[c]
		if p.framed == nil {
			continue
		}
		plain := free[:p.size:p.size]
		free = free[p.size:]
		if err := decodeFramed(plain, p.framed); err != nil {
			return nil, f.badFrame(number, p, err)
		}
		var err error
		switch component(c) {
		case componentHeader:
			err = fillHeader(b, number, plain)
		case componentBody:
			err = fillBody(b, plain)
		case componentReceipts:
			err = f.fillReceipts(b, plain, buf)
		}
		if err != nil {
			return nil, f.corrupt(number, p.offset, err)
		}
	}
	return free, nil
}

func fillHeader(b *chain.Block, number uint64, plain []byte) error {
	var h header.Header
	if err := header.Parse(plain, &h); err != nil {
		return fmt.Errorf("header: %w", err)
	}
	if h.Number != number {
		return fmt.Errorf("header number: got %d, the index says %d", h.Number, number)
	}
	b.BlockRef = chain.BlockRef{Number: number, ParentHash: *h.ParentHash, Timestamp: h.Timestamp}
	b.Header = plain
	return nil
}

// fillBody splits a body: the list of transactions, ommers and, from Shanghai on,
// withdrawals. Transactions are lists (legacy) or strings with an EIP-2718 envelope.
func fillBody(b *chain.Block, plain []byte) error {
	body := rlp.OpenList(plain)
	transactions := body.List()
	kind, ommers := body.Raw()
	if body.Err() == nil && kind != rlp.List {
		return errors.New("body: ommers are not a list")
	}
	b.Ommers = ommers
	if body.More() {
		kind, b.Withdrawals = body.Raw()
		if body.Err() == nil && kind != rlp.List {
			return errors.New("body: withdrawals are not a list")
		}
	}
	if err := body.End(); err != nil {
		return fmt.Errorf("body: %w", err)
	}
	if err := countWithin(b.Withdrawals, maximumWithdrawals, "withdrawals"); err != nil {
		return fmt.Errorf("body: %w", err)
	}
	for transactions.More() {
		index := len(b.Transactions)
		if index == maximumTransactions {
			return fmt.Errorf("body: %w: more than %d transactions", ErrTooLarge, maximumTransactions)
		}
		envelope, err := nextTransaction(&transactions)
		if err != nil {
			return fmt.Errorf("body: transaction %d: %w", index, err)
		}
		b.Transactions = append(b.Transactions, envelope)
	}
	return transactions.Err()
}

// nextTransaction reads an item of the transaction list and returns the envelope.
func nextTransaction(list *rlp.Reader) ([]byte, error) {
	offset := list.Offset()
	kind, item := list.Raw()
	if err := list.Err(); err != nil || kind == rlp.List {
		return item, err
	}
	_, envelope, _, err := rlp.Split(item)
	if err != nil {
		return nil, err
	}
	if len(envelope) < 2 || envelope[0] == 0 || envelope[0] > maximumEnvelopeType {
		return nil, &rlp.Error{Offset: offset, Err: errEnvelope}
	}
	return envelope, nil
}

// maximumEnvelopeType is the largest transaction type (EIP-2718); above it a legacy
// transaction's list would begin.
const maximumEnvelopeType = 0x7f

var errEnvelope = errors.New("not an EIP-2718 envelope")

// countWithin refuses a list of more than limit items; nil is no list.
func countWithin(list []byte, limit int, what string) error {
	if list == nil {
		return nil
	}
	_, content, _, err := rlp.Split(list)
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	n, err := rlp.Count(content)
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	if n > limit {
		return fmt.Errorf("%w: %d %s", ErrTooLarge, n, what)
	}
	return nil
}

func (f *File) fillReceipts(b *chain.Block, plain []byte, buf *Buffer) error {
	if err := countWithin(plain, maximumTransactions, "receipts"); err != nil {
		return err
	}
	if f.info.Layout == EraE {
		if err := receipt.DecodeSlim(plain, b); err != nil {
			return err
		}
		b.HasReceipts = true
		return nil
	}
	var err error
	if buf.blooms, err = receipt.DecodeCanonical(plain, b, buf.blooms[:0]); err != nil {
		return err
	}
	buf.check = slices.Grow(buf.check[:0], len(buf.blooms))[:len(buf.blooms)]
	clear(buf.check)
	for i := range buf.check {
		buf.bits.AddLogs(&buf.check[i], b.ReceiptLogs(i))
	}
	buf.bits.Flush()
	for i := range buf.check {
		if buf.check[i] != *buf.blooms[i] {
			return bloomError(i, buf.blooms[i], &buf.check[i])
		}
	}
	b.HasReceipts = true
	return nil
}

func bloomError(i int, got, want *types.Bloom) error {
	return fmt.Errorf("receipt %d: stored bloom %x, its logs give %x", i, *got, *want)
}
