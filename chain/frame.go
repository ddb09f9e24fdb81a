package chain

import (
	"errors"
	"fmt"

	"github.com/ethereum/go-ethereum/common"
)

// Frame is one block as a source gives it: the material, and for each kind of material whether it is
// complete, filtered or missing. A field of the Block means something only where the state of its
// kind says so:
//
//	Header        Block.Header
//	Transactions  Block.Transactions (nil where the encoding is unknown), Block.TransactionHashes;
//	              Block.Senders when Details has them; TransactionIndexes when they are a selection
//	Receipts      Block.Receipts; ReceiptIndexes when they are a selection
//	Logs          Block.Logs; LogPlaces when the logs are not those of complete receipts
//	Withdrawals   Block.Withdrawals
//
// Like the Block, it aliases the memory of whoever filled it, belongs to one goroutine while it is
// filled, and is only read after that.
type Frame struct {
	Block
	ChainID  uint64
	Finality Finality
	// Schema names the form in which the source held the frame.
	Schema string
	// Materials are the states by capability; Material reads them. Only the capabilities of
	// MaterialKinds have one.
	Materials [capabilityCount]Material
	// Details are what every item of the material has.
	Details Details
	// TransactionIndexes and ReceiptIndexes are parallel to selections of transactions and of receipts:
	// their places in the block. They are empty for all of them.
	TransactionIndexes, ReceiptIndexes []uint32
	// LogPlaces are parallel to Block.Logs, or empty when they follow from Block.Receipts.
	LogPlaces []LogPlace
	// Provenance is the way of the frame, its origin first.
	Provenance []Provenance
	// Verification is what the last one on this way has checked.
	Verification VerificationReport
}

// LogPlace is the place of a log in its block.
type LogPlace struct {
	TransactionHash  *common.Hash // nil when it was not asked for
	TransactionIndex uint32
	LogIndex         uint32 // in the block
}

// Details is a set of what material can have beside being there.
type Details uint8

// The details.
const (
	// DetailHeaderRLP: the header in its canonical encoding.
	DetailHeaderRLP Details = 1 << iota
	// DetailEnvelopes: every transaction as EIP-2718 bytes.
	DetailEnvelopes
	// DetailSenders: the sender of every transaction.
	DetailSenders
	// DetailReceiptEncodings: every receipt in its canonical encoding.
	DetailReceiptEncodings
	// DetailReceiptGas: the gas used and the gas price of every receipt.
	DetailReceiptGas

	// DetailsExact are what exact answers about blocks and receipts need.
	DetailsExact = DetailHeaderRLP | DetailEnvelopes | DetailSenders | DetailReceiptEncodings | DetailReceiptGas
)

var detailNames = [...]string{"header RLP", "transaction encodings", "senders", "receipt encodings", "receipt gas fields"}

// Missing names the first of the wanted details that d lacks.
func (d Details) Missing(wanted Details) (name string, missing bool) {
	for i, name := range detailNames {
		if bit := Details(1) << i; wanted&bit != 0 && d&bit == 0 {
			return name, true
		}
	}
	return "", false
}

// MaterialKinds are the capabilities that a frame has a material for.
const MaterialKinds = Capabilities(1<<CapabilityHeader | 1<<CapabilityTransactions | 1<<CapabilityReceipts |
	1<<CapabilityLogs | 1<<CapabilityWithdrawals | 1<<CapabilityBlobSidecars | 1<<CapabilityTraces | 1<<CapabilityStateDiffs)

// Reset empties the frame and keeps its slices for reuse.
func (f *Frame) Reset() {
	f.Block.Reset()
	*f = Frame{
		Block:              f.Block,
		TransactionIndexes: f.TransactionIndexes[:0],
		ReceiptIndexes:     f.ReceiptIndexes[:0],
		LogPlaces:          f.LogPlaces[:0],
		Provenance:         f.Provenance[:0],
	}
}

// Material is the state of a kind of material.
func (f *Frame) Material(c Capability) *Material { return &f.Materials[c] }

// Present are the kinds of material that are there, complete or filtered, and finality when an anchor
// says so. What follows from them is not added.
func (f *Frame) Present() Capabilities { return f.capabilities((*Material).Present) }

// Complete are the kinds of material that are complete. What follows from them is not added.
func (f *Frame) Complete() Capabilities { return f.capabilities((*Material).Complete) }

func (f *Frame) capabilities(holds func(*Material) bool) Capabilities {
	var s Capabilities
	for c := range f.Materials {
		if MaterialKinds.Has(Capability(c)) && holds(&f.Materials[c]) {
			s |= 1 << c
		}
	}
	if f.Verification.Anchor != nil {
		s |= NewCapabilities(CapabilityConsensusFinality)
	}
	return s
}

// What CheckShape can find.
var (
	errNoChain       = errors.New("chain id is 0")
	errFailedCheck   = errors.New("a verification check has failed")
	errForeignAnchor = errors.New("the consensus anchor is of another block")
)

// CheckShape refuses a frame that contradicts itself, whatever its material is.
func (f *Frame) CheckShape() error {
	if f.ChainID == 0 {
		return errNoChain
	}
	if f.Material(CapabilityTransactions).Complete() && f.Material(CapabilityReceipts).Complete() &&
		len(f.TransactionHashes) != len(f.Receipts) {
		return fmt.Errorf("%d receipts for %d transactions", len(f.Receipts), len(f.TransactionHashes))
	}
	for _, c := range f.Verification.Checks() {
		if c.Status == Failed {
			return errFailedCheck
		}
	}
	if a := f.Verification.Anchor; a != nil && a.ExecutionBlockHash != f.Hash {
		return errForeignAnchor
	}
	return nil
}

// CheckExact refuses a frame that cannot answer for its block exactly: header, transactions and
// receipts must be complete and hold their encodings, senders and gas, and withdrawals must be
// complete where the header commits to a list of them. Filtered material is never enough: a
// selection of the transactions is not a body.
func (f *Frame) CheckExact(hasWithdrawalsRoot bool) error {
	needed := []Capability{CapabilityHeader, CapabilityTransactions, CapabilityReceipts, CapabilityWithdrawals}
	if !hasWithdrawalsRoot {
		needed = needed[:3]
	}
	for _, c := range needed {
		switch m := f.Material(c); m.State {
		case MaterialMissing:
			return fmt.Errorf("%w: %s: %s", ErrNotExact, c, m.Reason)
		case MaterialFiltered:
			return fmt.Errorf("%w: %s are a selection", ErrNotExact, c)
		}
	}
	if name, missing := f.Details.Missing(DetailsExact); missing {
		return fmt.Errorf("%w: no %s", ErrNotExact, name)
	}
	return nil
}

// ErrNotExact means that a frame lacks material that exact answers need.
var ErrNotExact = errors.New("not the whole block")
