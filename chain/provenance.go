package chain

import "github.com/ethereum/go-ethereum/common"

// SourceKind is where material came from.
type SourceKind uint8

// The kinds of sources.
const (
	PublicDataset SourceKind = iota
	HistoryArchive
	RetainedHistory
	ExecutionP2P
	ConsensusP2P
	BeaconAPI
	Synthetic

	sourceKindCount = iota
)

var sourceKindNames = [sourceKindCount]string{
	"PublicDataset", "HistoryArchive", "RetainedHistory", "ExecutionP2p", "ConsensusP2p", "BeaconApi", "Synthetic",
}

// String is the name in frames, such as "HistoryArchive".
func (k SourceKind) String() string { return nameOf(sourceKindNames[:], k, "source kind") }

// ParseSourceKind reads a name as String writes it.
func ParseSourceKind(name string) (SourceKind, error) {
	return parseName[SourceKind](sourceKindNames[:], name, "source kind")
}

// Trust is why material is believed. Levels are ordered: a lower one can stand in for a higher one, never
// the other way round.
type Trust uint8

// The levels of trust, from lowest to highest.
const (
	// Untrusted material is whatever somebody sent.
	Untrusted Trust = iota
	// TrustedManifest takes the word of who listed the material.
	TrustedManifest
	// TrustedDataset takes the word of who published it.
	TrustedDataset
	// ProtocolVerified was proved by the rules of the protocol.
	ProtocolVerified

	trustCount = iota
)

var trustNames = [trustCount]string{"Untrusted", "TrustedManifest", "TrustedDataset", "ProtocolVerified"}

// String is the name in frames, such as "TrustedDataset".
func (t Trust) String() string { return nameOf(trustNames[:], t, "trust") }

// ParseTrust reads a name as String writes it.
func ParseTrust(name string) (Trust, error) { return parseName[Trust](trustNames[:], name, "trust") }

// Capped is the lower one of two levels.
func (t Trust) Capped(limit Trust) Trust { return min(t, limit) }

// Provenance is one step of the way that a frame came.
type Provenance struct {
	// SourceID names the source.
	SourceID string
	Kind     SourceKind
	Trust    Trust
	// Range is what was asked of the source; nil when that is not known.
	Range *Range
	// Object is what the frame was read from; nil when that is not known.
	Object *SourceObject
	// ObservedAt is when, in milliseconds since 1970; 0 when that is not told.
	ObservedAt uint64
	// Projection lists what was asked for of a table with more.
	Projection []string
}

// SourceObject is an immutable object that frames were read from.
type SourceObject struct {
	Locator  string       // path or URI
	Version  string       // empty when there is none
	Checksum *common.Hash // BLAKE3-256 of the content; nil when it is not known
	Schema   string       // empty when it is not known
}
