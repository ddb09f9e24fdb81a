package verify

import (
	"errors"
	"slices"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	gethrlp "github.com/ethereum/go-ethereum/rlp"

	"github.com/leani-go/leani/chain"
	"github.com/leani-go/leani/internal/chainfixture"
)

// statuses are the outcomes of the checks in the order of the report.
func statuses(r *chain.VerificationReport) (list [6]chain.CheckStatus) {
	for i, c := range r.Checks() {
		list[i] = c.Status
	}
	return list
}

// Every real block, also those of Ropsten and of a test network, is proved as far as its material goes, and the
// report says that and nothing more.
//
// INV-19
func TestFrameOfRealBlocks(t *testing.T) {
	var v Verifier
	kinds := map[[6]chain.CheckStatus]int{}
	for _, b := range chainfixture.RealBlocks(t) {
		f, _ := b.Frame(t)
		f.Verification = chain.VerificationReport{ // claims of somebody else
			HeaderHash: chain.Check{Status: chain.Failed}, TransactionsRoot: chain.Check{Status: chain.Verified},
			ReceiptsRoot: chain.Check{Status: chain.Verified}, WithdrawalsRoot: chain.Check{Status: chain.Verified},
			DatasetChecksum: chain.Check{Status: chain.Verified}, Anchor: &chain.ConsensusAnchor{ExecutionBlockHash: b.Hash},
		}
		if err := v.Frame(f, Expected{Number: b.Number, Hash: b.Hash, ParentHash: b.ParentHash}); err != nil {
			t.Errorf("%v", err)
			continue
		}
		var header types.Header
		decode(t, b.Header, &header)
		when := func(is bool) chain.CheckStatus {
			if is {
				return chain.Verified
			}
			return chain.NotChecked
		}
		got, want := statuses(&f.Verification), [6]chain.CheckStatus{
			chain.Verified, chain.NotChecked, when(b.HasBody), when(b.HasReceipts),
			when(f.Withdrawals != nil), chain.Verified,
		}
		if got != want || f.Verification.Anchor != nil {
			t.Errorf("block %d: got %v want %v", b.Number, got, want)
		}
		if ommers := f.Verification.HeaderHash.Detail != ""; ommers != (f.Ommers != nil) {
			t.Errorf("block %d: ommers are reported %v", b.Number, ommers)
		}
		if err := v.ProveFrame(f); err != nil {
			t.Error(err)
		}
		kinds[got]++
	}
	if len(kinds) < 5 {
		t.Errorf("the blocks are too much alike: %v", kinds)
	}
}

func decode(t *testing.T, encoded []byte, v any) {
	t.Helper()
	if err := gethrlp.DecodeBytes(encoded, v); err != nil {
		t.Fatal(err)
	}
}

// Whatever is changed in a frame, a check names it, as long as there is material that proves it.
func TestFrameRefuses(t *testing.T) {
	var frame *chain.Frame
	for _, b := range chainfixture.AnsweredBlocks(t) {
		if f, whole := b.Frame(t); whole && f.Withdrawals != nil && len(f.Logs) > 2 {
			frame = f
		}
	}
	if frame == nil {
		t.Fatal("no whole block")
	}
	want := Expected{Number: frame.Number, Hash: frame.Hash, ParentHash: frame.ParentHash}
	var v Verifier
	if err := v.Frame(frame, want); err != nil {
		t.Fatal(err)
	}
	logsAlone := func(f *chain.Frame, m chain.Material) {
		*f.Material(chain.CapabilityReceipts) = chain.MissingMaterial(chain.NotAvailable)
		*f.Material(chain.CapabilityLogs) = m
		f.Receipts, f.HasReceipts = nil, false
	}
	other := common.Address{0xde, 0xad}
	for name, c := range map[string]struct {
		check Check // 0: not refused
		edit  func(f *chain.Frame)
	}{
		"nothing":     {0, func(*chain.Frame) {}},
		"number":      {CheckNumber, func(f *chain.Frame) { f.Number++ }},
		"hash":        {CheckHash, func(f *chain.Frame) { f.Hash[0]++ }},
		"parent":      {CheckParent, func(f *chain.Frame) { f.ParentHash[0]++ }},
		"timestamp":   {CheckHeader, func(f *chain.Frame) { f.Timestamp++ }},
		"header":      {CheckHash, func(f *chain.Frame) { f.Header = slices.Clone(f.Header); f.Header[100]++ }},
		"no header":   {CheckHeader, func(f *chain.Frame) { f.Header = f.Header[:50] }},
		"ommers":      {CheckOmmersHash, func(f *chain.Frame) { f.Ommers = []byte{0xc1, 0xc0} }},
		"no ommers":   {0, func(f *chain.Frame) { f.Ommers = nil }},
		"transaction": {CheckTransactionsRoot, func(f *chain.Frame) { f.Transactions = slices.Clone(f.Transactions); f.Transactions[0] = []byte{1} }},
		"hash of it": {CheckTransactionsRoot, func(f *chain.Frame) {
			f.TransactionHashes = slices.Clone(f.TransactionHashes)
			f.TransactionHashes[0][0]++
		}},
		"withdrawals":    {CheckWithdrawalsRoot, func(f *chain.Frame) { f.Withdrawals = []byte{0xc0} }},
		"no withdrawals": {CheckWithdrawals, func(f *chain.Frame) { f.Withdrawals = nil }},
		"receipt": {CheckReceiptsRoot, func(f *chain.Frame) {
			f.Receipts = slices.Clone(f.Receipts)
			f.Receipts[0].Status ^= 1
		}},
		"receipts without transactions": {CheckReceiptsRoot, func(f *chain.Frame) {
			*f.Material(chain.CapabilityTransactions) = chain.MissingMaterial(chain.Pruned)
			f.Transactions, f.TransactionHashes = nil, nil
			f.Receipts = slices.Clone(f.Receipts)
			f.Receipts[0].Status ^= 1
		}},
		"logs alone":       {0, func(f *chain.Frame) { logsAlone(f, chain.CompleteMaterial()) }},
		"fewer logs alone": {CheckLogsBloom, func(f *chain.Frame) { logsAlone(f, chain.CompleteMaterial()); f.Logs = f.Logs[:1] }},
		"a selection of logs": {0, func(f *chain.Frame) {
			logsAlone(f, chain.FilteredMaterial(&chain.FilterScope{}, chain.Partial))
			f.Logs = f.Logs[:1]
		}},
		"a selection with others": {CheckLogsBloom, func(f *chain.Frame) {
			logsAlone(f, chain.FilteredMaterial(&chain.FilterScope{}, chain.Partial))
			f.Logs = slices.Clone(f.Logs)
			f.Logs[0].Address = &other
		}},
	} {
		t.Run(name, func(t *testing.T) {
			f := *frame
			c.edit(&f)
			err := v.Frame(&f, want)
			var refused *Error
			switch {
			case c.check == 0 && err != nil:
				t.Error(err)
			case c.check != 0 && (!errors.As(err, &refused) || refused.Check != c.check):
				t.Errorf("got %v want %v", err, c.check)
			}
		})
	}
}

// What is there and cannot be proved is reported as that, and a claim that cannot be made again is found.
//
// INV-19
func TestFrameReportsWhatCannotBeProved(t *testing.T) {
	var frame *chain.Frame
	for _, b := range chainfixture.AnsweredBlocks(t) {
		if f, whole := b.Frame(t); whole && f.Withdrawals != nil && len(f.Logs) > 2 {
			frame = f
		}
	}
	var v Verifier
	report := func(edit func(f *chain.Frame)) [6]chain.CheckStatus {
		f := *frame
		edit(&f)
		if err := v.Frame(&f, Expected{Number: f.Number}); err != nil {
			t.Fatal(err)
		}
		return statuses(&f.Verification)
	}
	const no, yes, cannot = chain.NotChecked, chain.Verified, chain.Unavailable
	for name, c := range map[string]struct {
		edit func(f *chain.Frame)
		want [6]chain.CheckStatus
	}{
		"everything": {func(*chain.Frame) {}, [6]chain.CheckStatus{yes, no, yes, yes, yes, no}},
		"no header":  {func(f *chain.Frame) { *f.Material(chain.CapabilityHeader) = chain.MissingMaterial(chain.Unsupported) }, [6]chain.CheckStatus{no, no, cannot, cannot, cannot, no}},
		"no RLP":     {func(f *chain.Frame) { f.Details = 0 }, [6]chain.CheckStatus{cannot, no, cannot, cannot, cannot, no}},
		"selections": {func(f *chain.Frame) {
			for _, k := range []chain.Capability{chain.CapabilityTransactions, chain.CapabilityReceipts} {
				*f.Material(k) = chain.FilteredMaterial(&chain.FilterScope{}, chain.VerifiedPredicate)
			}
		}, [6]chain.CheckStatus{yes, no, cannot, cannot, yes, no}},
		"no encodings": {func(f *chain.Frame) { f.Details = chain.DetailHeaderRLP }, [6]chain.CheckStatus{yes, no, cannot, cannot, yes, no}},
	} {
		if got := report(c.edit); got != c.want {
			t.Errorf("%s: got %v want %v", name, got, c.want)
		}
	}
	f := *frame
	if err := v.Frame(&f, Expected{Number: f.Number}); err != nil {
		t.Fatal(err)
	}
	f.Details = chain.DetailHeaderRLP
	if err := v.ProveFrame(&f); !errors.Is(err, errClaim) {
		t.Errorf("a claim that cannot be proved: %v", err)
	}
}
