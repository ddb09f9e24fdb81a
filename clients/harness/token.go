package harness

import (
	"math/big"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
)

// Transfer is an ERC-20 transfer as an indexer stores it. Two are the same if they are equal with ==.
type Transfer struct {
	Block       uint64
	BlockHash   common.Hash
	Timestamp   uint64 // seconds
	Transaction common.Hash
	LogIndex    uint64 // within the block
	From, To    common.Address
	Value       string // decimal
}

// Transfers are those of a token in blocks, in order.
func Transfers(token common.Address, blocks []*Block) []Transfer {
	var transfers []Transfer
	for _, b := range blocks {
		for _, l := range b.Logs() {
			if !isTransferOf(token, l) {
				continue
			}
			transfers = append(transfers, Transfer{
				Block: b.NumberU64(), BlockHash: b.Hash(), Timestamp: b.Time(), Transaction: l.TxHash, LogIndex: uint64(l.Index),
				From: common.BytesToAddress(l.Topics[1][:]), To: common.BytesToAddress(l.Topics[2][:]), Value: new(big.Int).SetBytes(l.Data).String(),
			})
		}
	}
	return transfers
}

// isTransferOf tells whether a log is a token's Transfer. ERC-721 has the same first topic and one more.
func isTransferOf(token common.Address, l *types.Log) bool {
	return l.Address == token && len(l.Topics) == 3 && l.Topics[0] == TransferTopic && len(l.Data) == 32
}

// Balances are what accounts have after transfers, in decimal; below zero where the token has given them more by other ways.
// Whoever took part in a transfer has one.
func Balances(transfers []Transfer) map[common.Address]string {
	sums := make(map[common.Address]*big.Int)
	add := func(account common.Address, value *big.Int) {
		if sums[account] == nil {
			sums[account] = new(big.Int)
		}
		sums[account].Add(sums[account], value)
	}
	for _, t := range transfers {
		value, _ := new(big.Int).SetString(t.Value, 10)
		add(t.To, value)
		add(t.From, value.Neg(value))
	}
	balances := make(map[common.Address]string)
	for account, sum := range sums {
		balances[account] = sum.String()
	}
	return balances
}

// Branch makes competing blocks of those from the one above parent to last, as descendants of parent. They differ in the
// transfers of a token, and in a way that depends on the name: some are gone, some go the other way or are of another
// amount, and there are new ones to accounts that no other branch knows.
func (c *Chain) Branch(parent *Block, last uint64, token common.Address, name string) []*Block {
	c.tb.Helper()
	account := common.BytesToAddress([]byte(name))
	var branch []*Block
	for n := parent.NumberU64() + 1; n <= last; n++ {
		parent = c.Fork(parent, c.Block(n), func(d *Draft) {
			d.Header.Extra = []byte(name)
			for _, r := range d.Receipts {
				r.Logs = otherTransfers(token, account, r.Logs)
			}
		})
		branch = append(branch, parent)
	}
	return branch
}

// otherTransfers changes the transfers of a token among the logs of a transaction; what is done to one depends on its
// amount and on the account.
func otherTransfers(token, account common.Address, logs []*types.Log) (out []*types.Log) {
	for _, l := range logs {
		if !isTransferOf(token, l) {
			out = append(out, l)
			continue
		}
		value := new(big.Int).SetBytes(l.Data)
		switch (value.Uint64() + uint64(account[common.AddressLength-1])) % 5 {
		case 0:
			continue
		case 1:
			l.Topics[1], l.Topics[2] = l.Topics[2], l.Topics[1]
		case 2:
			l.Data = common.BigToHash(value.Add(value, common.Big1)).Bytes()
		case 3:
			out = append(out, &types.Log{
				Address: token, Topics: []common.Hash{TransferTopic, l.Topics[1], common.BytesToHash(account[:])}, Data: l.Data,
			})
		}
		out = append(out, l)
	}
	return out
}
