package chain

import (
	"fmt"
	"math/bits"
	"strings"
)

// Capability is a kind of material that a source can offer. Its value is its bit in a set, which
// programs exchange as a number and which never changes.
type Capability uint8

// The capabilities.
const (
	CapabilityHeader Capability = iota
	CapabilityBody
	CapabilityTransactions
	CapabilityCalldata
	CapabilityReceipts
	CapabilityLogs
	CapabilityWithdrawals
	CapabilityBlobSidecars
	CapabilityTraces
	CapabilityStateDiffs
	CapabilityConsensusFinality
	CapabilityMempool

	capabilityCount = iota
)

var capabilityNames = [capabilityCount]string{
	"Header", "Body", "Transactions", "Calldata", "Receipts", "Logs", "Withdrawals", "BlobSidecars",
	"Traces", "StateDiffs", "ConsensusFinality", "Mempool",
}

// ParseCapability reads a name as frames and manifests spell it.
func ParseCapability(name string) (Capability, error) {
	for c, known := range capabilityNames {
		if name == known {
			return Capability(c), nil
		}
	}
	return 0, fmt.Errorf("capability %q: want one of %s", name, strings.Join(capabilityNames[:], ", "))
}

// String is the name, such as "Receipts".
func (c Capability) String() string {
	if c >= capabilityCount {
		return fmt.Sprintf("capability(%d)", uint8(c))
	}
	return capabilityNames[c]
}

// Capabilities is a set of capabilities, one bit for each. The zero value is the empty set.
type Capabilities uint32

// NewCapabilities makes a set.
func NewCapabilities(list ...Capability) Capabilities {
	var s Capabilities
	for _, c := range list {
		s |= 1 << c
	}
	return s
}

// CapabilitiesFromBits makes a set of the number that programs exchange. A bit without a meaning is
// an error.
func CapabilitiesFromBits(number uint64) (Capabilities, error) {
	if number>>capabilityCount != 0 {
		return 0, fmt.Errorf("capability bits %#x: bit %d is unknown", number, bits.Len64(number)-1)
	}
	return Capabilities(number), nil
}

// Has tells whether the set holds c.
func (s Capabilities) Has(c Capability) bool { return s>>c&1 != 0 }

// Covers tells whether the set holds every capability of o.
func (s Capabilities) Covers(o Capabilities) bool { return o&^s == 0 }

// Derived is the set with what follows from it: transactions contain the body and calldata,
// receipts contain logs.
func (s Capabilities) Derived() Capabilities {
	if s.Has(CapabilityTransactions) {
		s |= NewCapabilities(CapabilityBody, CapabilityCalldata)
	}
	if s.Has(CapabilityReceipts) {
		s |= NewCapabilities(CapabilityLogs)
	}
	return s
}

// List is the members in the order of their bits.
func (s Capabilities) List() []Capability {
	list := make([]Capability, 0, bits.OnesCount32(uint32(s)))
	for c := range Capability(capabilityCount) {
		if s.Has(c) {
			list = append(list, c)
		}
	}
	return list
}

// String lists the names.
func (s Capabilities) String() string {
	names := make([]string, 0, capabilityCount)
	for _, c := range s.List() {
		names = append(names, c.String())
	}
	return strings.Join(names, ", ")
}
