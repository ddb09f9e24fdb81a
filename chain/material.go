package chain

import "fmt"

// MaterialState says in which form a kind of material is there.
type MaterialState uint8

// The states.
const (
	// MaterialMissing: it is not there.
	MaterialMissing MaterialState = iota
	// MaterialFiltered: what a scope selects is there.
	MaterialFiltered
	// MaterialComplete: all of it is there, which may be none.
	MaterialComplete
)

// Completeness says how far filtered material can be relied on to hold all that its scope selects.
type Completeness uint8

// The degrees of completeness.
const (
	// VerifiedPredicate: it was proved that nothing selected is missing.
	VerifiedPredicate Completeness = iota
	// DatasetDeclared: the publisher says so.
	DatasetDeclared
	// Partial: something may be missing. It satisfies no requirement.
	Partial

	completenessCount = iota
)

// MissingReason says why material is not there.
type MissingReason uint8

// The reasons.
const (
	NotRequested           MissingReason = iota // nobody asked for it
	Unsupported                                 // the source cannot have it
	NotAvailable                                // the source does not have it
	TemporarilyUnavailable                      // the source may have it later
	Pruned                                      // it was there and was removed

	missingReasonCount = iota
)

var (
	completenessNames  = [completenessCount]string{"VerifiedPredicate", "DatasetDeclared", "Partial"}
	missingReasonNames = [missingReasonCount]string{"NotRequested", "Unsupported", "NotAvailable", "TemporarilyUnavailable", "Pruned"}
)

// String is the name in frames, such as "DatasetDeclared".
func (c Completeness) String() string { return nameOf(completenessNames[:], c, "completeness") }

// ParseCompleteness reads a name as String writes it.
func ParseCompleteness(name string) (Completeness, error) {
	return parseName[Completeness](completenessNames[:], name, "completeness")
}

// String is the name in frames, such as "NotAvailable".
func (r MissingReason) String() string { return nameOf(missingReasonNames[:], r, "missing reason") }

// ParseMissingReason reads a name as String writes it.
func ParseMissingReason(name string) (MissingReason, error) {
	return parseName[MissingReason](missingReasonNames[:], name, "missing reason")
}

func nameOf[T ~uint8](names []string, v T, what string) string {
	if int(v) >= len(names) {
		return fmt.Sprintf("%s(%d)", what, uint8(v))
	}
	return names[v]
}

func parseName[T ~uint8](names []string, name, what string) (T, error) {
	for v, known := range names {
		if name == known {
			return T(v), nil
		}
	}
	return 0, fmt.Errorf("unknown %s %q", what, name)
}

// Material is the state of one kind of material of a frame; the material itself is in the Block. The
// zero value is what nobody requested.
type Material struct {
	State MaterialState
	// Reason is why, when the material is missing.
	Reason MissingReason
	// Completeness and Scope describe filtered material. Scope is nil otherwise.
	Completeness Completeness
	Scope        *FilterScope
}

// CompleteMaterial is material that is all there.
func CompleteMaterial() Material { return Material{State: MaterialComplete} }

// FilteredMaterial is what a scope selects of the material.
func FilteredMaterial(scope *FilterScope, c Completeness) Material {
	return Material{State: MaterialFiltered, Scope: scope, Completeness: c}
}

// MissingMaterial is material that is not there.
func MissingMaterial(reason MissingReason) Material { return Material{Reason: reason} }

// Complete tells whether all of the material is there.
func (m *Material) Complete() bool { return m.State == MaterialComplete }

// Present tells whether the material is there, complete or filtered.
func (m *Material) Present() bool { return m.State != MaterialMissing }

// Supplies tells whether the material answers for everything that a scope selects in a block.
func (m *Material) Supplies(block uint64, wanted *FilterScope) bool {
	switch m.State {
	case MaterialComplete:
		return true
	case MaterialFiltered:
		return m.Completeness != Partial && m.Scope.CoversAt(block, wanted)
	}
	return false
}
