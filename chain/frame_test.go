package chain

import (
	"errors"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/common"
)

// Levels are ordered, their own words come back, and older words are read as what they became.
func TestFinality(t *testing.T) {
	for i, level := range []Finality{Unattested, Attested, Finalized} {
		for _, word := range []string{level.String(), level.Name()} {
			if got, err := ParseFinality(word); got != level || err != nil {
				t.Errorf("%s: got %v, %v", word, got, err)
			}
		}
		for j, least := range []Finality{Unattested, Attested, Finalized} {
			if got := level.Satisfies(least); got != (i >= j) {
				t.Errorf("%v satisfies %v: got %v", level, least, got)
			}
		}
	}
	for word, want := range map[string]Finality{
		"Preview": Unattested, "Optimistic": Unattested, "Included": Attested, "Safe": Attested, "preview": Unattested, "included": Attested,
	} {
		if got, err := ParseFinality(word); got != want || err != nil {
			t.Errorf("%s: got %v, %v", word, got, err)
		}
	}
	for _, word := range []string{"", "FINALIZED", "None", "latest", "finalized "} {
		if level, err := ParseFinality(word); err == nil {
			t.Errorf("%q is %v", word, level)
		}
	}
	if s := Finality(9).String(); Finality(0).Valid() || Finality(9).Valid() || s != "finality(9)" {
		t.Error("a value that is no level", s)
	}
}

// Bits and names of capabilities are what programs exchange, and must not move.
func TestCapabilities(t *testing.T) {
	const names = "Header, Body, Transactions, Calldata, Receipts, Logs, Withdrawals, BlobSidecars, Traces, StateDiffs, ConsensusFinality, Mempool"
	all, err := CapabilitiesFromBits(0xfff)
	if err != nil || all.String() != names {
		t.Errorf("got %s, %v", all, err)
	}
	if _, err := CapabilitiesFromBits(0x1001); err == nil || !strings.Contains(err.Error(), "bit 12") {
		t.Error(err)
	}
	for bit, name := range strings.Split(names, ", ") {
		if c, err := ParseCapability(name); int(c) != bit || err != nil || c.String() != name {
			t.Errorf("%s: got %d, %v", name, c, err)
		}
	}
	if _, err := ParseCapability("header"); err == nil {
		t.Error("a name in lower case is taken")
	}
	for set, want := range map[Capabilities]Capabilities{
		NewCapabilities(CapabilityTransactions): NewCapabilities(CapabilityTransactions, CapabilityBody, CapabilityCalldata),
		NewCapabilities(CapabilityReceipts):     NewCapabilities(CapabilityReceipts, CapabilityLogs),
		NewCapabilities(CapabilityHeader):       NewCapabilities(CapabilityHeader),
		NewCapabilities(CapabilityBody):         NewCapabilities(CapabilityBody),
	} {
		if got := set.Derived(); got != want || !want.Covers(set) {
			t.Errorf("%s: got %s want %s", set, got, want)
		}
	}
}

func TestNames(t *testing.T) {
	for v := range uint8(sourceKindCount) {
		if got, err := ParseSourceKind(SourceKind(v).String()); got != SourceKind(v) || err != nil {
			t.Error(v, got, err)
		}
	}
	for v := range uint8(trustCount) {
		if got, err := ParseTrust(Trust(v).String()); got != Trust(v) || err != nil || got.Capped(Untrusted) != Untrusted {
			t.Error(v, got, err)
		}
	}
	for v := range uint8(checkStatusCount) {
		if got, err := ParseCheckStatus(CheckStatus(v).String()); got != CheckStatus(v) || err != nil {
			t.Error(v, got, err)
		}
	}
	for v := range uint8(completenessCount) {
		if got, err := ParseCompleteness(Completeness(v).String()); got != Completeness(v) || err != nil {
			t.Error(v, got, err)
		}
	}
	for v := range uint8(missingReasonCount) {
		if got, err := ParseMissingReason(MissingReason(v).String()); got != MissingReason(v) || err != nil {
			t.Error(v, got, err)
		}
	}
	if _, err := ParseTrust("trusted_dataset"); err == nil || Trust(9).String() != "trust(9)" {
		t.Error(err)
	}
}

// Filtered material answers for what its scope covers, and partial material for nothing.
func TestMaterialSupplies(t *testing.T) {
	narrow := &FilterScope{Addresses: []common.Address{{1}}}
	wide := &FilterScope{Addresses: []common.Address{{1}, {2}}}
	for name, c := range map[string]struct {
		material Material
		wanted   *FilterScope
		want     bool
	}{
		"missing":       {MissingMaterial(Pruned), narrow, false},
		"complete":      {CompleteMaterial(), &FilterScope{}, true},
		"covering":      {FilteredMaterial(wide, DatasetDeclared), narrow, true},
		"not covering":  {FilteredMaterial(narrow, VerifiedPredicate), wide, false},
		"partial":       {FilteredMaterial(wide, Partial), narrow, false},
		"other blocks":  {FilteredMaterial(&FilterScope{Blocks: &Range{From: 0, To: 5}}, DatasetDeclared), narrow, false},
		"nothing asked": {FilteredMaterial(narrow, DatasetDeclared), &FilterScope{Blocks: &Range{From: 0, To: 5}}, true},
	} {
		if got := c.material.Supplies(5, c.wanted); got != c.want {
			t.Errorf("%s: got %v want %v", name, got, c.want)
		}
	}
}

func exactFrame() *Frame {
	f := &Frame{ChainID: 1, Finality: Finalized, Details: DetailsExact}
	for _, c := range []Capability{CapabilityHeader, CapabilityTransactions, CapabilityReceipts, CapabilityLogs, CapabilityWithdrawals} {
		f.Materials[c] = CompleteMaterial()
	}
	return f
}

func TestFrameShape(t *testing.T) {
	if err := exactFrame().CheckShape(); err != nil {
		t.Error(err)
	}
	for name, change := range map[string]func(*Frame){
		"no chain":       func(f *Frame) { f.ChainID = 0 },
		"counts":         func(f *Frame) { f.Receipts = make([]Receipt, 1) },
		"failed check":   func(f *Frame) { f.Verification.WithdrawalsRoot.Status = Failed },
		"foreign anchor": func(f *Frame) { f.Verification.Anchor = &ConsensusAnchor{ExecutionBlockHash: common.Hash{1}} },
	} {
		f := exactFrame()
		if change(f); f.CheckShape() == nil {
			t.Errorf("%s: taken", name)
		}
	}
	f := exactFrame()
	f.Verification.Anchor = &ConsensusAnchor{}
	f.Materials[CapabilityLogs] = FilteredMaterial(&FilterScope{}, Partial)
	if f.Present() != f.Complete()|NewCapabilities(CapabilityLogs) || !f.Complete().Has(CapabilityConsensusFinality) {
		t.Error(f.Present(), "/", f.Complete())
	}
	f.Reset()
	if f.Present() != 0 || f.ChainID != 0 || f.Details != 0 {
		t.Errorf("after a reset: %+v", f)
	}
}

// A frame answers for its whole block only with everything of it: ARC-063. Withdrawals count where the header commits to them
// (ARC-064), and a selection of transactions is not a body (ARC-065).
func TestFrameExact(t *testing.T) {
	if err := exactFrame().CheckExact(true); err != nil {
		t.Error(err)
	}
	for name, c := range map[string]struct {
		change func(*Frame)
		want   string
	}{
		"no header":   {func(f *Frame) { f.Materials[CapabilityHeader] = MissingMaterial(Unsupported) }, "Header: Unsupported"},
		"no receipts": {func(f *Frame) { f.Materials[CapabilityReceipts] = MissingMaterial(Pruned) }, "Receipts: Pruned"},
		"blobs alone": {func(f *Frame) {
			f.Materials[CapabilityTransactions] = FilteredMaterial(&FilterScope{TransactionTypes: []byte{3}}, VerifiedPredicate)
		}, "Transactions are a selection"},
		"header RLP":      {func(f *Frame) { f.Details &^= DetailHeaderRLP }, "no header RLP"},
		"envelopes":       {func(f *Frame) { f.Details &^= DetailEnvelopes }, "no transaction encodings"},
		"senders":         {func(f *Frame) { f.Details &^= DetailSenders }, "no senders"},
		"typed receipts":  {func(f *Frame) { f.Details &^= DetailReceiptEncodings }, "no receipt encodings"},
		"gas of receipts": {func(f *Frame) { f.Details &^= DetailReceiptGas }, "no receipt gas fields"},
		"no withdrawals":  {func(f *Frame) { f.Materials[CapabilityWithdrawals] = Material{} }, "Withdrawals: NotRequested"},
	} {
		f := exactFrame()
		c.change(f)
		if err := f.CheckExact(true); !errors.Is(err, ErrNotExact) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v", name, err)
		}
	}
	f := exactFrame()
	f.Materials[CapabilityWithdrawals] = Material{}
	if err := f.CheckExact(false); err != nil {
		t.Error("before Shanghai:", err)
	}
}
