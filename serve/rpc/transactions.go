package rpc

import (
	"fmt"

	"github.com/ethereum/go-ethereum/common"

	"github.com/leani-go/leani/api/jsonrpc"
	"github.com/leani-go/leani/chain"
)

// transactionParts is the material of a transaction answer; the header has the base fee.
const transactionParts = chain.PartHeader | chain.PartTransactions | chain.PartTransactionHashes | chain.PartSenders

// transactionByNumberAndIndex answers eth_getTransactionByBlockNumberAndIndex.
func transactionByNumberAndIndex(c *call) error {
	sel, index, err := readTwo(c.params, readSelector, "block", readQuantity, "index")
	if err != nil {
		return err
	}
	return c.answerSelected(sel, transactionParts, func() error { return c.appendTransaction(index) })
}

// transactionByBlockHashAndIndex answers eth_getTransactionByBlockHashAndIndex.
func transactionByBlockHashAndIndex(c *call) error {
	hash, index, err := readTwo(c.params, readHash, "block hash", readQuantity, "index")
	if err != nil {
		return err
	}
	return c.answerHash(hash, transactionParts, func() error { return c.appendTransaction(index) })
}

// transactionByHash answers eth_getTransactionByHash.
func transactionByHash(c *call) error {
	index, found, err := c.loadTransaction(transactionParts)
	if err != nil || !found {
		return c.orNull(err)
	}
	return c.appendTransaction(uint64(index))
}

// appendTransaction appends the transaction of the loaded block at an index, null beyond the
// last one.
func (c *call) appendTransaction(index uint64) error {
	if index >= uint64(len(c.block.Transactions)) {
		return c.null()
	}
	if err := c.out.grow(c.context, transactionSize(c.block.Transactions[index])); err != nil {
		return err
	}
	buf, err := c.encode.AppendTransaction(c.out.buf, &c.block, int(index))
	if err != nil {
		return fmt.Errorf("encode transaction %d of block %v: %w", index, c.block.BlockRef, err)
	}
	c.out.buf = buf
	return nil
}

// loadTransaction reads a transaction hash as the only parameter and loads the block that
// holds it. It returns false when the chain has no such transaction up to the head, which is
// known only if history is complete; else the transaction is reported as missing: no history source finds
// transactions by hash.
func (c *call) loadTransaction(parts chain.Parts) (index uint32, found bool, err error) {
	hash, err := readOne(c.params, readHash, "transaction hash")
	if err != nil {
		return 0, false, err
	}
	if err := c.openView(); err != nil {
		return 0, false, err
	}
	number, index, found, err := c.view.LocateTransaction(hash)
	switch {
	case err != nil:
		return 0, false, fmt.Errorf("locate transaction %x: %w", hash, err)
	case !found && c.completeHistory():
		return 0, false, nil
	case !found:
		return 0, false, jsonrpc.Unavailable(jsonrpc.ReasonTransactionNotRetained)
	}
	if err := c.loadOne(number, index, parts); err != nil {
		return 0, false, err
	}
	return index, true, c.checkLocated(hash, index)
}

// checkLocated makes sure that the locator and the block agree: a wrong entry must not answer
// with another transaction.
func (c *call) checkLocated(hash common.Hash, index uint32) error {
	hashes := c.block.TransactionHashes
	if int(index) < len(hashes) && hashes[index] == hash {
		return nil
	}
	return fmt.Errorf("locator gives index %d of block %v for transaction %x, which is not there", index, c.block.BlockRef, hash)
}
