package verify

import (
	"errors"
	"fmt"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"

	"github.com/leani-go/leani/chain"
	"github.com/leani-go/leani/internal/header"
)

// Frame proves a frame as far as its material allows, and reports in f.Verification what was checked and nothing
// more:
//
//   - HeaderHash: that the header in RLP hashes to the block hash, and agrees with the reference. Where the ommers are
//     there their hash was compared too, and the remark says so.
//   - TransactionsRoot, ReceiptsRoot, WithdrawalsRoot: that complete material in its encodings has the root in
//     that header. For receipts the bloom and the gas of the header were compared too.
//
// What is there and cannot be proved, for want of a header or because a selection has no root, is reported as
// unavailable; what is not there as not checked. DatasetChecksum and ParentContinuity are for whoever read the
// frame, and stay; a consensus anchor is dropped, which is nobody's here to check.
//
// The error is an *Error: the frame is not what its header commits to, or not the block that is expected. It must
// not be used then. Other than Block, Frame changes nothing but the report.
func (v *Verifier) Frame(f *chain.Frame, want Expected) error {
	old := f.Verification
	f.Verification = chain.VerificationReport{DatasetChecksum: old.DatasetChecksum, ParentContinuity: old.ParentContinuity}
	check, err := v.frame(f, want)
	if err == nil {
		return nil
	}
	return &Error{Block: want.Number, Check: check, Err: err}
}

// errClaim reports a check that a frame claims and that cannot be made again.
var errClaim = errors.New("the frame says that it was verified, and it cannot be")

// ProveFrame makes the checks again that a frame says were made of its own content. It does not change the
// frame.
func (v *Verifier) ProveFrame(f *chain.Frame) error {
	again := *f
	if err := v.Frame(&again, Expected{Number: f.Number, Hash: f.Hash}); err != nil {
		return err
	}
	claims, made := f.Verification.Checks(), again.Verification.Checks()
	for i, check := range map[int]Check{0: CheckHash, 2: CheckTransactionsRoot, 3: CheckReceiptsRoot, 4: CheckWithdrawalsRoot} {
		if claims[i].Status == chain.Verified && made[i].Status != chain.Verified {
			return &Error{Block: f.Number, Check: check, Err: errClaim}
		}
	}
	return nil
}

func (v *Verifier) frame(f *chain.Frame, want Expected) (Check, error) {
	var unknown common.Hash
	switch {
	case f.Number != want.Number:
		return CheckNumber, fmt.Errorf("got %d want %d", f.Number, want.Number)
	case want.Hash != unknown && f.Hash != want.Hash:
		return CheckHash, mismatch(f.Hash, want.Hash)
	case want.ParentHash != unknown && f.ParentHash != want.ParentHash:
		return CheckParent, mismatch(f.ParentHash, want.ParentHash)
	}
	h, check, err := v.frameHeader(f)
	if err != nil {
		return check, err
	}
	for _, prove := range []func(*chain.Frame, *header.Header) (Check, error){v.frameBody, v.frameReceipts, v.frameLogs} {
		if check, err := prove(f, h); err != nil {
			return check, err
		}
	}
	return 0, nil
}

// frameHeader proves the header. It is nil when there is none that could prove anything.
func (v *Verifier) frameHeader(f *chain.Frame) (*header.Header, Check, error) {
	m := f.Material(chain.CapabilityHeader)
	if !m.Complete() || f.Details&chain.DetailHeaderRLP == 0 || f.Header == nil {
		if m.Present() {
			f.Verification.HeaderHash = unavailable("no header in RLP")
		}
		return nil, 0, nil
	}
	h := &v.header
	if err := header.Parse(f.Header, h); err != nil {
		return nil, CheckHeader, err
	}
	if got := v.hasher.Keccak(f.Header); got != f.Hash {
		return nil, CheckHash, mismatch(got, f.Hash)
	}
	switch {
	case h.Number != f.Number:
		return nil, CheckNumber, fmt.Errorf("the header has %d, the frame %d", h.Number, f.Number)
	case *h.ParentHash != f.ParentHash:
		return nil, CheckParent, mismatch(*h.ParentHash, f.ParentHash)
	case h.Timestamp != f.Timestamp:
		return nil, CheckHeader, fmt.Errorf("timestamp: got %d, the frame has %d", h.Timestamp, f.Timestamp)
	}
	f.Verification.HeaderHash.Status = chain.Verified
	if f.Ommers == nil {
		return h, 0, nil
	}
	if got := v.hasher.Keccak(f.Ommers); got != *h.OmmersHash {
		return nil, CheckOmmersHash, mismatch(got, *h.OmmersHash)
	}
	f.Verification.HeaderHash.Detail = "and the hash of the ommers"
	return h, 0, nil
}

func unavailable(why string) chain.Check { return chain.Check{Status: chain.Unavailable, Detail: why} }

// provable tells whether material has a root to be compared with; if not it says so where the material is there.
func provable(f *chain.Frame, c chain.Capability, h *header.Header, encoded bool, report *chain.Check) bool {
	switch m := f.Material(c); {
	case !m.Present():
	case !m.Complete():
		*report = unavailable("a selection has no root")
	case h == nil:
		*report = unavailable("no header in RLP")
	case !encoded:
		*report = unavailable("not in its encodings")
	default:
		return true
	}
	return false
}

// frameBody proves transactions and withdrawals.
func (v *Verifier) frameBody(f *chain.Frame, h *header.Header) (Check, error) {
	r := &f.Verification
	if provable(f, chain.CapabilityTransactions, h, f.Details&chain.DetailEnvelopes != 0, &r.TransactionsRoot) {
		if check, err := v.frameTransactions(f, h); err != nil {
			return check, err
		}
		r.TransactionsRoot.Status = chain.Verified
	}
	if !provable(f, chain.CapabilityWithdrawals, h, true, &r.WithdrawalsRoot) {
		return 0, nil
	}
	switch {
	case h.WithdrawalsRoot == nil && f.Withdrawals != nil:
		return CheckWithdrawals, errors.New("got a list, the header has no root of one")
	case h.WithdrawalsRoot != nil && f.Withdrawals == nil:
		return CheckWithdrawals, errors.New("got none, the header has the root of a list")
	case h.WithdrawalsRoot == nil:
		return 0, nil // before EIP-4895 there is nothing to check
	}
	if check, err := v.withdrawals(f.Withdrawals, h); err != nil {
		return check, err
	}
	r.WithdrawalsRoot.Status = chain.Verified
	return 0, nil
}

func (v *Verifier) frameTransactions(f *chain.Frame, h *header.Header) (Check, error) {
	var err error
	if v.hashes, err = v.transactions(f.Transactions, v.hashes, h); err != nil {
		return CheckTransactionsRoot, err
	}
	if len(f.TransactionHashes) != len(v.hashes) {
		return CheckTransactionsRoot, fmt.Errorf("%d hashes for %d transactions", len(f.TransactionHashes), len(v.hashes))
	}
	for i := range v.hashes {
		if v.hashes[i] != f.TransactionHashes[i] {
			return CheckTransactionsRoot, fmt.Errorf("hash of transaction %d: %w", i, mismatch(f.TransactionHashes[i], v.hashes[i]))
		}
	}
	return 0, nil
}

// frameReceipts proves the receipts: against their transactions too where these were proved.
func (v *Verifier) frameReceipts(f *chain.Frame, h *header.Header) (Check, error) {
	r := &f.Verification
	if !provable(f, chain.CapabilityReceipts, h, f.Details&chain.DetailReceiptEncodings != 0, &r.ReceiptsRoot) {
		return 0, nil
	}
	whole := f.Block
	if r.TransactionsRoot.Status != chain.Verified {
		whole.Transactions = nil
	}
	if check, err := v.receiptsOf(&whole, h, r.TransactionsRoot.Status == chain.Verified); err != nil {
		return check, err
	}
	r.ReceiptsRoot.Status = chain.Verified
	return 0, nil
}

// frameLogs holds logs that are there without complete receipts against the bloom of the header. That can refute
// them and does not prove them, so that it is reported nowhere.
func (v *Verifier) frameLogs(f *chain.Frame, h *header.Header) (Check, error) {
	m := f.Material(chain.CapabilityLogs)
	if h == nil || !m.Present() || f.Material(chain.CapabilityReceipts).Complete() {
		return 0, nil
	}
	for i := range f.Logs {
		if f.Logs[i].Address == nil {
			return CheckLogs, fmt.Errorf("log %d has no address", i)
		}
	}
	v.hasher.LogsBloom(&v.bloom, f.Logs)
	if m.Complete() && v.bloom != *h.LogsBloom || !within(&v.bloom, h.LogsBloom) {
		return CheckLogsBloom, fmt.Errorf("got %x want %x", v.bloom, *h.LogsBloom)
	}
	return 0, nil
}

// within tells whether every bit of a is set in b.
func within(a, b *types.Bloom) bool {
	for i := range a {
		if a[i]&^b[i] != 0 {
			return false
		}
	}
	return true
}
