package harness

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/rlp"
)

// The script's lines; package ingest/scripted describes them.
type (
	material struct {
		Header       hexutil.Bytes   `json:"header"`
		Transactions []hexutil.Bytes `json:"transactions"`
		Withdrawals  *hexutil.Bytes  `json:"withdrawals,omitempty"`
		Receipts     []hexutil.Bytes `json:"receipts"`
	}
	blockName struct {
		Number uint64       `json:"number"`
		Hash   *common.Hash `json:"hash,omitempty"`
	}
	event struct {
		Apply     *apply     `json:"apply,omitempty"`
		Undo      *blockName `json:"undo,omitempty"`
		Finalized *blockName `json:"finalized,omitempty"`
	}
	apply struct {
		Blocks []material `json:"blocks"`
	}
)

// Apply makes blocks the newest ones of the node, oldest first, in commits of their own, and waits until they can be asked
// for. The first may be the child of any recent block: those above its parent are undone in the same step.
func (n *Node) Apply(blocks ...*Block) {
	n.tb.Helper()
	for _, b := range blocks {
		n.ApplyBranch(b)
	}
}

// ApplyBranch is Apply with all blocks in one commit: the way of a longer branch that replaces one.
func (n *Node) ApplyBranch(blocks ...*Block) {
	n.tb.Helper()
	a := new(apply)
	for _, b := range blocks {
		m, err := encode(b)
		if err != nil {
			n.tb.Fatalf("block %d: %v", b.NumberU64(), err)
		}
		a.Blocks = append(a.Blocks, m)
	}
	n.tell(event{Apply: a})
	for _, b := range blocks {
		n.await(b)
	}
}

// Undo makes the chain end at a block again. It does not wait: nothing tells of a block that is gone, but what is applied
// later comes after it.
func (n *Node) Undo(last *Block) {
	n.tb.Helper()
	hash := last.Hash()
	n.tell(event{Undo: &blockName{last.NumberU64(), &hash}})
}

// Finalize makes a block and all below it final. It does not wait.
func (n *Node) Finalize(b *Block) {
	n.tb.Helper()
	hash := b.Hash()
	n.tell(event{Finalized: &blockName{b.NumberU64(), &hash}})
}

func (n *Node) tell(e event) {
	n.tb.Helper()
	line, err := json.Marshal(e)
	if err == nil {
		_, err = fmt.Fprintf(n.script, "%s\n", line)
	}
	if err != nil {
		n.tb.Fatalf("write the node's script: %v", err)
	}
}

// await waits until the node tells of a block.
func (n *Node) await(b *Block) {
	n.tb.Helper()
	for {
		select {
		case h := <-n.heads:
			if h.Hash() == b.Hash() {
				return
			}
		case <-n.process.Exited:
			n.tb.Fatalf("the node ended before block %d was applied", b.NumberU64())
		case <-time.After(Patience):
			n.tb.Fatalf("block %d is not applied", b.NumberU64())
		}
	}
}

// encode gives a block as the script wants it.
func encode(b *Block) (m material, err error) {
	if m.Header, err = rlp.EncodeToBytes(b.Header()); err != nil {
		return m, err
	}
	m.Transactions, m.Receipts = []hexutil.Bytes{}, []hexutil.Bytes{}
	for _, tx := range b.Transactions() {
		envelope, err := tx.MarshalBinary()
		if err != nil {
			return m, err
		}
		m.Transactions = append(m.Transactions, envelope)
	}
	for _, r := range b.Receipts {
		encoded, err := r.MarshalBinary()
		if err != nil {
			return m, err
		}
		m.Receipts = append(m.Receipts, encoded)
	}
	if b.Withdrawals() != nil {
		list, err := rlp.EncodeToBytes(b.Withdrawals())
		if err != nil {
			return m, err
		}
		m.Withdrawals = (*hexutil.Bytes)(&list)
	}
	return m, nil
}
