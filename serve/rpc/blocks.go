package rpc

import (
	"fmt"

	"github.com/ethereum/go-ethereum/common"

	"github.com/leani-go/leani/api/jsonrpc"
	"github.com/leani-go/leani/chain"
)

// blockByNumber answers eth_getBlockByNumber.
func blockByNumber(c *call) error {
	sel, full, err := readTwo(c.params, readSelector, "block", readBool, "fullTransactions")
	if err != nil {
		return err
	}
	return c.answerSelected(sel, blockParts(full), func() error { return c.appendBlock(full) })
}

// blockByHash answers eth_getBlockByHash.
func blockByHash(c *call) error {
	hash, full, err := readTwo(c.params, readHash, "block hash", readBool, "fullTransactions")
	if err != nil {
		return err
	}
	return c.answerHash(hash, blockParts(full), func() error { return c.appendBlock(full) })
}

// transactionCountByNumber answers eth_getBlockTransactionCountByNumber.
func transactionCountByNumber(c *call) error {
	sel, err := readOne(c.params, readSelector, "block")
	if err != nil {
		return err
	}
	return c.answerSelected(sel, chain.PartTransactionHashes, c.appendTransactionCount)
}

// transactionCountByHash answers eth_getBlockTransactionCountByHash.
func transactionCountByHash(c *call) error {
	hash, err := readOne(c.params, readHash, "block hash")
	if err != nil {
		return err
	}
	return c.answerHash(hash, chain.PartTransactionHashes, c.appendTransactionCount)
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

func (c *call) appendTransactionCount() error {
	return c.quantity(uint64(len(c.block.TransactionHashes)))
}

// answerSelected answers with the block that a selector names, which is in c.block while answer runs. The answer is null
// for a number above every known block, the one case in which a number has no block and yet nothing is missing.
func (c *call) answerSelected(sel selector, parts chain.Parts, answer func() error) error {
	if err := c.openView(); err != nil {
		return err
	}
	head, known := c.view.Head()
	if sel.tag == tagLatest && !known {
		return jsonrpc.Unavailable(jsonrpc.ReasonBlockNotRetained)
	}
	number, err := c.resolve(sel, head)
	if err != nil {
		return err
	}
	// A node without blocks reports 0 as its head. So block 0 is missing there, and higher
	// blocks lie above.
	if sel.tag == tagNone && number > head {
		return c.null()
	}
	if c.history != nil && !holds(c.view.Coverage(), number) {
		return c.fetchBlock(number, anchor{}, parts, answer)
	}
	if err := c.load(number, parts); err != nil {
		return err
	}
	return answer()
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

// answerHash answers with the block with a hash, which is in c.block while answer runs. The answer is null when no block
// of the chain has the hash, which is known only if history is complete or a history source can look it up; else the
// block is reported as missing.
func (c *call) answerHash(hash common.Hash, parts chain.Parts, answer func() error) error {
	if err := c.openView(); err != nil {
		return err
	}
	number, ok, err := c.view.NumberByHash(hash)
	switch {
	case err != nil:
		return fmt.Errorf("find block %x: %w", hash, err)
	case !ok && c.completeHistory():
		return c.null()
	case !ok && c.findsHashes():
		number, ok, err = c.lookUp(hash)
		if err != nil || !ok {
			return c.orNull(err)
		}
		return c.fetchBlock(number, anchor{true, hash}, parts, answer)
	case !ok:
		return jsonrpc.Unavailable(jsonrpc.ReasonBlockNotRetained)
	}
	if err := c.load(number, parts); err != nil {
		return err
	}
	if c.block.Hash != hash {
		return jsonrpc.Unavailable(jsonrpc.ReasonBlockNotRetained)
	}
	return answer()
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
