package rpc

import (
	"fmt"

	"github.com/ethereum/go-ethereum/common"

	"github.com/leani-go/leani/api/jsonrpc"
	"github.com/leani-go/leani/chain"
)

// blockByNumber answers eth_getBlockByNumber.
func blockByNumber(c *call) error {
	p, err := readPositions(c.params, 2)
	if err != nil {
		return err
	}
	sel, err := readSelector(p[0], "block")
	if err != nil {
		return err
	}
	full, err := readBool(p[1], "fullTransactions")
	if err != nil {
		return err
	}
	if found, err := c.loadSelected(sel, blockParts(full)); err != nil || !found {
		return c.orNull(err)
	}
	return c.appendBlock(full)
}

// blockByHash answers eth_getBlockByHash.
func blockByHash(c *call) error {
	p, err := readPositions(c.params, 2)
	if err != nil {
		return err
	}
	hash, err := readHash(p[0], "block hash")
	if err != nil {
		return err
	}
	full, err := readBool(p[1], "fullTransactions")
	if err != nil {
		return err
	}
	if found, err := c.loadHash(hash, blockParts(full)); err != nil || !found {
		return c.orNull(err)
	}
	return c.appendBlock(full)
}

// transactionCountByNumber answers eth_getBlockTransactionCountByNumber.
func transactionCountByNumber(c *call) error {
	p, err := readPositions(c.params, 1)
	if err != nil {
		return err
	}
	sel, err := readSelector(p[0], "block")
	if err != nil {
		return err
	}
	if found, err := c.loadSelected(sel, chain.PartTransactionHashes); err != nil || !found {
		return c.orNull(err)
	}
	return c.quantity(uint64(len(c.block.TransactionHashes)))
}

// transactionCountByHash answers eth_getBlockTransactionCountByHash.
func transactionCountByHash(c *call) error {
	p, err := readPositions(c.params, 1)
	if err != nil {
		return err
	}
	hash, err := readHash(p[0], "block hash")
	if err != nil {
		return err
	}
	if found, err := c.loadHash(hash, chain.PartTransactionHashes); err != nil || !found {
		return c.orNull(err)
	}
	return c.quantity(uint64(len(c.block.TransactionHashes)))
}

// blockParts is the material of a block answer.
func blockParts(full bool) chain.Parts {
	parts := chain.PartHeader | chain.PartTransactions | chain.PartTransactionHashes | chain.PartOmmers | chain.PartWithdrawals
	if full {
		parts |= chain.PartSenders
	}
	return parts
}

func (c *call) appendBlock(full bool) error {
	if err := c.out.grow(c.context, blockSize(&c.block, full)); err != nil {
		return err
	}
	buf, err := c.encode.AppendBlock(c.out.buf, &c.block, full)
	if err != nil {
		return fmt.Errorf("encode block %v: %w", c.block.BlockRef, err)
	}
	c.out.buf = buf
	return nil
}

// loadSelected loads the block that a selector names. It returns false for a number above
// every known block, the one case in which a number has no block and yet nothing is missing.
func (c *call) loadSelected(sel selector, parts chain.Parts) (found bool, err error) {
	if err := c.openView(); err != nil {
		return false, err
	}
	head, known := c.view.Head()
	if sel.tag == tagLatest && !known {
		return false, jsonrpc.Unavailable(jsonrpc.ReasonBlockNotRetained)
	}
	number, err := c.resolve(sel, head)
	if err != nil {
		return false, err
	}
	// A node without blocks reports 0 as its head. So block 0 is missing there, and higher
	// blocks lie above.
	if sel.tag == tagNone && number > head {
		return false, nil
	}
	return true, c.load(number, parts)
}

// resolve gives the number of the block that a selector names.
func (c *call) resolve(sel selector, head uint64) (uint64, error) {
	switch sel.tag {
	case tagLatest:
		return head, nil
	case tagFinalized, tagSafe:
		final, ok := c.view.Finalized()
		if !ok {
			return 0, jsonrpc.Unavailable(jsonrpc.ReasonFinalizedBlock)
		}
		return final.Number, nil
	case tagPending:
		return 0, jsonrpc.Unavailable(jsonrpc.ReasonPendingBlock)
	}
	return sel.number, nil
}

// loadHash loads the block with a hash. It returns false when no block of the chain has it,
// which is known only if history is complete; else the block is reported as missing.
func (c *call) loadHash(hash common.Hash, parts chain.Parts) (found bool, err error) {
	if err := c.openView(); err != nil {
		return false, err
	}
	number, ok, err := c.view.NumberByHash(hash)
	if err != nil {
		return false, fmt.Errorf("find block %x: %w", hash, err)
	}
	if !ok {
		if c.completeHistory() {
			return false, nil
		}
		return false, jsonrpc.Unavailable(jsonrpc.ReasonBlockNotRetained)
	}
	if err := c.load(number, parts); err != nil {
		return false, err
	}
	if c.block.Hash != hash {
		return false, jsonrpc.Unavailable(jsonrpc.ReasonBlockNotRetained)
	}
	return true, nil
}

// completeHistory tells whether the view holds every block from 0 to its head, so that what
// it does not find does not exist.
func (c *call) completeHistory() bool {
	head, known := c.view.Head()
	if !known {
		return false
	}
	coverage := c.view.Coverage()
	return len(coverage) == 1 && coverage[0].Covers(chain.Range{From: 0, To: head + 1})
}

// orNull passes an error on, and appends null without one.
func (c *call) orNull(err error) error {
	if err != nil {
		return err
	}
	return c.null()
}
