package rpc

import (
	"fmt"

	"github.com/leani-go/leani/chain"
)

// receiptParts is the material of a receipt answer: effective gas prices need transactions and
// base fee, contract addresses need senders.
const receiptParts = transactionParts | chain.PartReceipts

// transactionReceipt answers eth_getTransactionReceipt.
func transactionReceipt(c *call) error {
	index, found, err := c.loadTransaction(receiptParts)
	if err != nil || !found {
		return c.orNull(err)
	}
	if err := c.checkReceipts(); err != nil {
		return err
	}
	if err := c.out.grow(c.context, receiptSize(&c.block, int(index))); err != nil {
		return err
	}
	buf, err := c.encode.AppendReceipt(c.out.buf, &c.block, int(index))
	if err != nil {
		return fmt.Errorf("encode receipt %d of block %v: %w", index, c.block.BlockRef, err)
	}
	c.out.buf = buf
	return nil
}

// blockReceipts answers eth_getBlockReceipts. A string of the length of a hash is one; any
// other names a block by number or tag; an object, as go-ethereum's client sends it, says which it is.
func blockReceipts(c *call) error {
	p, err := readPositions(c.params, 1)
	if err != nil {
		return err
	}
	block, byHash := p[0], isHashText(p[0])
	if block.kind() == '{' {
		if block, byHash, err = readBlockName(block); err != nil {
			return err
		}
	}
	if byHash {
		hash, err := readHash(block, "block hash")
		if err != nil {
			return err
		}
		return c.answerHash(hash, receiptParts, c.appendReceipts)
	}
	sel, err := readSelector(block, "block")
	if err != nil {
		return err
	}
	return c.answerSelected(sel, receiptParts, c.appendReceipts)
}

// appendReceipts appends the receipts of the loaded block.
func (c *call) appendReceipts() error {
	if err := c.checkReceipts(); err != nil {
		return err
	}
	if err := c.out.grow(c.context, receiptsSize(&c.block)); err != nil {
		return err
	}
	buf, err := c.encode.AppendReceipts(c.out.buf, &c.block)
	if err != nil {
		return fmt.Errorf("encode receipts of block %v: %w", c.block.BlockRef, err)
	}
	c.out.buf = buf
	return nil
}

// checkReceipts refuses a block that was loaded without receipts: no receipts are not the same
// as an empty list of them.
func (c *call) checkReceipts() error {
	if b := &c.block; !b.HasReceipts {
		return &chain.NotRetainedError{Range: chain.Range{From: b.Number, To: b.Number + 1}}
	}
	return nil
}
