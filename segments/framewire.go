package segments

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/ethereum/go-ethereum/common"

	"github.com/leani-go/leani/chain"
)

// A frame is stored beside its block row and the profile of its file, which say what it is a frame of; see
// docs/formats/frames.md. What a section holds is told by the flags before all of them.
const (
	frameHasHeader = 1 << iota
	frameHasTransactions
	frameHasSenders
	frameHasTransactionPlaces
	frameHasOmmers
	frameHasWithdrawals
	frameHasReceipts // as material, which may be none
	frameHasReceiptRows
	frameHasReceiptPlaces
	frameHasLogs
	frameHasLogPlaces
	frameHasProvenance
	frameHasChecks
	frameHasAnchor

	frameFlags = 1<<iota - 1
)

// appendFrame appends the encoding of what a frame holds, apart from its reference and its profile.
func appendFrame(dst []byte, f *chain.Frame) ([]byte, error) {
	if err := checkFrame(f); err != nil {
		return dst, err
	}
	flags := frameFlagsOf(f)
	has := func(flag uint64) bool { return flags&flag != 0 }
	dst = append(dst, byte(f.Finality))
	dst = binary.AppendUvarint(dst, flags)
	if has(frameHasHeader) {
		dst = appendBytes(dst, f.Header)
	}
	if has(frameHasTransactions) {
		dst = binary.AppendUvarint(dst, uint64(len(f.TransactionHashes)))
		for i := range f.TransactionHashes {
			dst = append(dst, f.TransactionHashes[i][:]...)
			dst = appendBytes(dst, f.Transactions[i])
		}
	}
	if has(frameHasSenders) {
		for i := range f.Senders {
			dst = append(dst, f.Senders[i][:]...)
		}
	}
	if has(frameHasTransactionPlaces) {
		dst = appendPlaces(dst, f.TransactionIndexes)
	}
	if has(frameHasOmmers) {
		dst = appendBytes(dst, f.Ommers)
	}
	if has(frameHasWithdrawals) {
		dst = appendBytes(dst, f.Withdrawals)
	}
	if has(frameHasReceiptRows) {
		dst = appendFrameReceipts(dst, f.Receipts)
	}
	if has(frameHasReceiptPlaces) {
		dst = appendPlaces(dst, f.ReceiptIndexes)
	}
	if has(frameHasLogs) {
		dst = appendFrameLogs(dst, f.Logs)
	}
	if has(frameHasLogPlaces) {
		for i := range f.LogPlaces {
			p := &f.LogPlaces[i]
			dst = appendFlag(dst, p.TransactionHash != nil)
			if p.TransactionHash != nil {
				dst = append(dst, p.TransactionHash[:]...)
			}
			dst = binary.AppendUvarint(dst, uint64(p.TransactionIndex))
			dst = binary.AppendUvarint(dst, uint64(p.LogIndex))
		}
	}
	return appendClaims(dst, f, flags), nil
}

func frameFlagsOf(f *chain.Frame) (flags uint64) {
	for i, is := range [...]bool{
		f.Header != nil, len(f.TransactionHashes) > 0, len(f.Senders) > 0, len(f.TransactionIndexes) > 0, f.Ommers != nil,
		f.Withdrawals != nil, f.HasReceipts, len(f.Receipts) > 0, len(f.ReceiptIndexes) > 0, len(f.Logs) > 0,
		len(f.LogPlaces) > 0, len(f.Provenance) > 0, hasChecks(&f.Verification), f.Verification.Anchor != nil,
	} {
		if is {
			flags |= 1 << i
		}
	}
	return flags
}

func hasChecks(r *chain.VerificationReport) bool {
	for _, c := range r.Checks() {
		if *c != (chain.Check{}) {
			return true
		}
	}
	return false
}

// checkFrame refuses a frame whose parts do not fit together, or that no reader would accept.
func checkFrame(f *chain.Frame) error {
	n := len(f.TransactionHashes)
	switch {
	case !f.Finality.Valid():
		return fmt.Errorf("%w: finality %d", ErrMalformedBlock, f.Finality)
	case len(f.Transactions) != n, len(f.Senders) != 0 && len(f.Senders) != n, len(f.TransactionIndexes) != 0 && len(f.TransactionIndexes) != n:
		return fmt.Errorf("%w: %d transactions, %d hashes, %d senders, %d places", ErrMalformedBlock, len(f.Transactions), n, len(f.Senders), len(f.TransactionIndexes))
	case len(f.ReceiptIndexes) != 0 && len(f.ReceiptIndexes) != len(f.Receipts):
		return fmt.Errorf("%w: %d receipts, %d places", ErrMalformedBlock, len(f.Receipts), len(f.ReceiptIndexes))
	case len(f.LogPlaces) != 0 && len(f.LogPlaces) != len(f.Logs):
		return fmt.Errorf("%w: %d logs, %d places", ErrMalformedBlock, len(f.Logs), len(f.LogPlaces))
	case n > maximumBlockRows, len(f.Receipts) > maximumBlockRows, len(f.Logs) > maximumBlockRows:
		return fmt.Errorf("%w: %d transactions and %d logs pass the limit of %d", ErrMalformedBlock, n, len(f.Logs), maximumBlockRows)
	case f.Header != nil && len(f.Header) == 0, f.Ommers != nil && len(f.Ommers) == 0, f.Withdrawals != nil && len(f.Withdrawals) == 0:
		return fmt.Errorf("%w: a list without its bytes", ErrMalformedBlock)
	}
	for i, t := range f.Transactions {
		if t != nil && len(t) == 0 {
			return fmt.Errorf("%w: transaction %d is empty", ErrMalformedBlock, i)
		}
	}
	end := uint32(0)
	for i := range f.Receipts {
		r := &f.Receipts[i]
		if r.LogsEnd < end || int(r.LogsEnd) > len(f.Logs) || (r.PostState != nil && (len(r.PostState) != common.HashLength || r.Status != 0)) || r.Status > 1 || r.Type > maximumType {
			return fmt.Errorf("%w: receipt %d", ErrMalformedBlock, i)
		}
		end = r.LogsEnd
	}
	for i := range f.Logs {
		l := &f.Logs[i]
		if l.Address == nil || l.NumTopics > chain.MaximumTopics || len(l.Data) > maximumLogData {
			return fmt.Errorf("%w: log %d", ErrMalformedBlock, i)
		}
	}
	return nil
}

func appendPlaces(dst []byte, list []uint32) []byte {
	for _, p := range list {
		dst = binary.AppendUvarint(dst, uint64(p))
	}
	return dst
}

func appendFrameReceipts(dst []byte, receipts []chain.Receipt) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(receipts)))
	end := uint32(0)
	for i := range receipts {
		r := &receipts[i]
		outcome := uint64(r.Status)
		if r.PostState != nil {
			outcome = outcomePostState
		}
		dst = binary.AppendUvarint(dst, uint64(r.Type)<<2|outcome)
		dst = binary.AppendUvarint(dst, r.CumulativeGasUsed)
		dst = binary.AppendUvarint(dst, uint64(r.LogsEnd-end))
		dst = append(dst, r.PostState...)
		end = r.LogsEnd
	}
	return dst
}

func appendFrameLogs(dst []byte, logs []chain.Log) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(logs)))
	for i := range logs {
		l := &logs[i]
		dst = append(dst, l.Address[:]...)
		dst = append(dst, l.NumTopics)
		for k := range int(l.NumTopics) {
			dst = append(dst, l.Topics[k][:]...)
		}
		dst = appendBytes(dst, l.Data)
	}
	return dst
}

// decodeFrame is the inverse of appendFrame. It resets f; what it fills in aliases b.
func decodeFrame(b []byte, f *chain.Frame) error {
	f.Reset()
	r := wireReader{b: b}
	f.Finality = chain.Finality(r.octet(byte(chain.Finalized)))
	flags := r.number(frameFlags)
	has := func(flag uint64) bool { return flags&flag != 0 }
	if has(frameHasHeader) {
		f.Header = r.nonEmpty()
	}
	if has(frameHasTransactions) {
		for range r.positive(common.HashLength + 1) {
			f.TransactionHashes = append(f.TransactionHashes, r.hashValue())
			t := r.bytes()
			if len(t) == 0 {
				t = nil
			}
			f.Transactions = append(f.Transactions, t)
		}
	}
	if has(frameHasSenders) {
		for range f.TransactionHashes {
			a := r.address()
			if a == nil {
				break
			}
			f.Senders = append(f.Senders, *a)
		}
	}
	if has(frameHasTransactionPlaces) {
		f.TransactionIndexes = r.places(f.TransactionIndexes, len(f.TransactionHashes))
	}
	if has(frameHasOmmers) {
		f.Ommers = r.nonEmpty()
	}
	if has(frameHasWithdrawals) {
		f.Withdrawals = r.nonEmpty()
	}
	f.HasReceipts = has(frameHasReceipts)
	if has(frameHasReceiptRows) {
		r.receipts(f)
	}
	if has(frameHasReceiptPlaces) {
		f.ReceiptIndexes = r.places(f.ReceiptIndexes, len(f.Receipts))
	}
	if has(frameHasLogs) {
		r.logs(f)
	}
	if has(frameHasLogPlaces) {
		for range f.Logs {
			if r.bad {
				break
			}
			var p chain.LogPlace
			if r.flag() {
				p.TransactionHash = r.hash()
			}
			p.TransactionIndex, p.LogIndex = uint32(r.number(math.MaxUint32)), uint32(r.number(math.MaxUint32))
			f.LogPlaces = append(f.LogPlaces, p)
		}
	}
	r.claims(f, flags)
	if err := r.done(); err != nil {
		return err
	}
	if frameFlagsOf(f) != flags { // a section that is there and empty
		return errWire
	}
	return checkFrame(f)
}

// positive is count for what is written only when there is some.
func (r *wireReader) positive(size int) int {
	n := r.count(size)
	if n == 0 {
		r.fail()
	}
	return n
}

// nonEmpty is bytes that are never none.
func (r *wireReader) nonEmpty() []byte { return r.take(r.positive(1)) }

func (r *wireReader) places(dst []uint32, n int) []uint32 {
	for range n {
		if r.bad {
			break
		}
		dst = append(dst, uint32(r.number(math.MaxUint32)))
	}
	return dst
}

func (r *wireReader) receipts(f *chain.Frame) {
	end := uint64(0)
	for range r.positive(3) {
		kind := r.number(maximumType<<2 | outcomePostState)
		receipt := chain.Receipt{Type: byte(kind >> 2), CumulativeGasUsed: r.number(math.MaxUint64)}
		end += r.number(maximumBlockRows)
		switch kind & 3 {
		case outcomePostState:
			receipt.PostState = r.take(common.HashLength)
		case outcomeSuccess:
			receipt.Status = 1
		case outcomeFailure:
		default:
			r.fail()
		}
		if end > maximumBlockRows {
			r.fail()
		}
		if r.bad {
			return
		}
		receipt.LogsEnd = uint32(end)
		f.Receipts = append(f.Receipts, receipt)
	}
}

func (r *wireReader) logs(f *chain.Frame) {
	for range r.positive(common.AddressLength + 2) {
		l := chain.Log{Address: r.address(), NumTopics: r.octet(chain.MaximumTopics)}
		for k := range int(l.NumTopics) {
			l.Topics[k] = r.hash()
		}
		l.Data = r.bytes()
		if r.bad {
			return
		}
		f.Logs = append(f.Logs, l)
	}
}
