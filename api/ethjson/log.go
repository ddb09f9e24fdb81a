package ethjson

import (
	"github.com/leani-go/leani/chain"
	"github.com/leani-go/leani/internal/hexenc"
)

// AppendLog appends a log with its place in the chain, as eth_getLogs gives it. The log must be
// complete: block, hash, address and as many topics as NumTopics says.
func (e *Encoder) AppendLog(dst []byte, l *chain.FoundLog) []byte {
	e.place.setBlock(l.Block)
	e.place.setTransaction(l.TransactionHash, l.TransactionIndex)
	return e.appendLog(dst, &l.Log, l.LogIndex)
}

// AppendRemovedLog appends a log of a block that a reorganization has undone, as subscriptions give it: like
// AppendLog, but marked as removed.
func (e *Encoder) AppendRemovedLog(dst []byte, l *chain.FoundLog) []byte {
	dst = e.AppendLog(dst, l)
	return append(dst[:len(dst)-len("false}")], "true}"...)
}

// appendLog appends a log of the transaction that e.place is at.
func (e *Encoder) appendLog(dst []byte, l *chain.Log, index uint32) []byte {
	dst = append(dst, `{"address":"`...)
	dst = hexenc.AppendBytes(dst, l.Address[:])
	dst = append(dst, `","topics":[`...)
	for i, topic := range l.Topics[:l.NumTopics] {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(dst, '"')
		dst = hexenc.AppendBytes(dst, topic[:])
		dst = append(dst, '"')
	}
	dst = append(dst, `],"data":"`...)
	dst = hexenc.AppendBytes(dst, l.Data)
	dst = append(dst, `",`...)
	dst = e.place.appendIndexed(dst, index)
	return append(dst, `","removed":false}`...)
}
