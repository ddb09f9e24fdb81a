package chain

import (
	"github.com/ethereum/go-ethereum/common"
)

// LogFilter selects logs by emitter and topics with the meaning that eth_getLogs gives them
// (ethereum/execution-apis).
type LogFilter struct {
	// Addresses match when the list is empty or holds the log's address.
	Addresses []common.Address
	// Topics match by position: position i matches when Topics[i] is empty or holds the
	// log's topic i. A log with fewer topics than len(Topics) does not match, even where
	// the surplus positions are empty.
	Topics [][]common.Hash
}

// Match tells whether the filter selects the log.
func (f *LogFilter) Match(l *Log) bool {
	if len(f.Topics) > int(l.NumTopics) {
		return false
	}
	if len(f.Addresses) > 0 && !contains(f.Addresses, l.Address) {
		return false
	}
	for i, alternatives := range f.Topics {
		if len(alternatives) > 0 && !contains(alternatives, l.Topics[i]) {
			return false
		}
	}
	return true
}

func contains[T comparable](list []T, v *T) bool {
	for i := range list {
		if list[i] == *v {
			return true
		}
	}
	return false
}

// FoundLog is a log with its place in the chain, as a query yields it. It and what it points
// to are valid only until the next log is yielded.
type FoundLog struct {
	Log
	// Block points to the same value for consecutive logs of one block.
	Block            *BlockRef
	TransactionHash  *common.Hash
	TransactionIndex uint32
	LogIndex         uint32 // position in the block
}
