package receipt

import (
	"github.com/leani-go/leani/chain"
	"github.com/leani-go/leani/internal/rlp"
)

// AppendSlim appends the list of slim receipts of a block, as EraE files hold it: for each receipt type,
// outcome, cumulative gas and logs, without bloom and envelope. DecodeSlim reads it back.
func AppendSlim(dst []byte, b *chain.Block) []byte {
	total := 0
	for i := range b.Receipts {
		total += rlp.SizeList(slimContentSize(&b.Receipts[i], logsContentSize(b.ReceiptLogs(i))))
	}
	dst = rlp.AppendListHeader(dst, total)
	for i := range b.Receipts {
		r, logs := &b.Receipts[i], b.ReceiptLogs(i)
		content := logsContentSize(logs)
		dst = rlp.AppendListHeader(dst, slimContentSize(r, content))
		dst = rlp.AppendUint64(dst, uint64(r.Type))
		dst = appendOutcome(dst, r)
		dst = rlp.AppendUint64(dst, r.CumulativeGasUsed)
		dst = appendLogs(dst, logs, content)
	}
	return dst
}

func slimContentSize(r *chain.Receipt, logsContent int) int {
	return rlp.SizeUint64(uint64(r.Type)) + outcomeSize(r) + rlp.SizeUint64(r.CumulativeGasUsed) + rlp.SizeList(logsContent)
}
