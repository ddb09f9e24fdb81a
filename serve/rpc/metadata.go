package rpc

import (
	"strconv"

	"github.com/leani-go/leani/api/jsonrpc"
	"github.com/leani-go/leani/chain"
	"github.com/leani-go/leani/internal/hexenc"
)

// This file holds the methods about the node itself. None of them takes parameters.

func clientVersion(c *call) error {
	if _, err := readPositions(c.params, 0); err != nil {
		return err
	}
	return c.text(c.clientVersion)
}

func netVersion(c *call) error {
	if _, err := readPositions(c.params, 0); err != nil {
		return err
	}
	return c.text(strconv.FormatUint(c.network.ChainID(), 10))
}

func chainID(c *call) error {
	if _, err := readPositions(c.params, 0); err != nil {
		return err
	}
	return c.quantity(c.network.ChainID())
}

// blockNumber reports the highest retained block, 0 when there is none.
func blockNumber(c *call) error {
	if _, err := readPositions(c.params, 0); err != nil {
		return err
	}
	if err := c.openView(); err != nil {
		return err
	}
	head, _ := c.view.Head()
	return c.quantity(head)
}

// syncing answers false at the newest head that the node knows of, while its live source has nothing more. Otherwise it
// says how far the node is, and why that is not the head of the chain as far as it can know.
func syncing(c *call) error {
	if _, err := readPositions(c.params, 0); err != nil {
		return err
	}
	head, highest, reason, err := c.liveHead()
	if err != nil {
		return err
	}
	if reason == "" {
		c.out.buf = append(c.out.buf, "false"...)
		return nil
	}
	buf := append(c.out.buf, `{"startingBlock":"0x0","currentBlock":"`...)
	buf = hexenc.AppendQuantity(buf, head)
	buf = append(buf, `","highestBlock":"`...)
	buf = hexenc.AppendQuantity(buf, highest)
	c.out.buf = append(buf, `","leani":{"liveReady":false,"reason":"`+reason+`"}}`...)
	return nil
}

// forkConfig answers eth_config (EIP-7910). The newest retained block decides which fork is
// current; the clock and block numbers play no part.
func forkConfig(c *call) error {
	if _, err := readPositions(c.params, 0); err != nil {
		return err
	}
	if err := c.openView(); err != nil {
		return err
	}
	head, ok := c.view.Head()
	if !ok {
		return jsonrpc.Unavailable(jsonrpc.ReasonConfigTimestamp)
	}
	if err := c.load(head, chain.PartHeader); err != nil {
		return err
	}
	buf, err := c.encode.AppendConfig(c.out.buf, c.block.Timestamp)
	if err != nil {
		return err
	}
	c.out.buf = buf
	return nil
}
