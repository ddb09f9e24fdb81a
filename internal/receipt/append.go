package receipt

import (
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"

	"github.com/leani-go/leani/chain"
	"github.com/leani-go/leani/internal/rlp"
)

// Encoded sizes in bytes of strings of fixed length, header included.
const (
	addressSize = 1 + common.AddressLength
	hashSize    = 1 + common.HashLength
	bloomSize   = 3 + types.BloomByteLength
)

// AppendCanonical appends the canonical encoding of a receipt with the given logs and bloom:
// the value that the receipts root commits to.
func AppendCanonical(dst []byte, r *chain.Receipt, logs []chain.Log, bloom *types.Bloom) []byte {
	logsContent := logsContentSize(logs)
	if r.Type != 0 {
		dst = append(dst, r.Type)
	}
	dst = rlp.AppendListHeader(dst, canonicalContentSize(r, logsContent))
	dst = appendOutcome(dst, r)
	dst = rlp.AppendUint64(dst, r.CumulativeGasUsed)
	dst = rlp.AppendString(dst, bloom[:])
	return appendLogs(dst, logs, logsContent)
}

func canonicalContentSize(r *chain.Receipt, logsContent int) int {
	return outcomeSize(r) + rlp.SizeUint64(r.CumulativeGasUsed) + bloomSize + rlp.SizeList(logsContent)
}

// The outcome is the status (EIP-658) or, before Byzantium, the state root.

func outcomeSize(r *chain.Receipt) int {
	if r.PostState != nil {
		return rlp.SizeString(r.PostState)
	}
	return 1
}

func appendOutcome(dst []byte, r *chain.Receipt) []byte {
	if r.PostState != nil {
		return rlp.AppendString(dst, r.PostState)
	}
	return rlp.AppendUint64(dst, uint64(r.Status))
}

func logsContentSize(logs []chain.Log) int {
	size := 0
	for i := range logs {
		size += rlp.SizeList(logContentSize(&logs[i]))
	}
	return size
}

func logContentSize(l *chain.Log) int {
	return addressSize + rlp.SizeList(hashSize*int(l.NumTopics)) + rlp.SizeString(l.Data)
}

func appendLogs(dst []byte, logs []chain.Log, content int) []byte {
	dst = rlp.AppendListHeader(dst, content)
	for i := range logs {
		l := &logs[i]
		dst = rlp.AppendListHeader(dst, logContentSize(l))
		dst = rlp.AppendString(dst, l.Address[:])
		dst = rlp.AppendListHeader(dst, hashSize*int(l.NumTopics))
		for _, topic := range l.Topics[:l.NumTopics] {
			dst = rlp.AppendString(dst, topic[:])
		}
		dst = rlp.AppendString(dst, l.Data)
	}
	return dst
}
