package keys

import (
	"encoding/binary"
	"fmt"
)

// FieldGroup numbers the groups of material whose retention is tracked apart.
type FieldGroup uint8

// The field groups.
const (
	// FieldHeaders is the canonical header of a block.
	FieldHeaders FieldGroup = 1
	// FieldBodies is transactions, ommers and withdrawals.
	FieldBodies FieldGroup = 2
	// FieldReceipts is receipts with their logs.
	FieldReceipts FieldGroup = 3
	// FieldSenders is the recovered senders of the transactions.
	FieldSenders FieldGroup = 4
	// FieldIndex is the reach of log terms and hash locators.
	FieldIndex FieldGroup = 5
	// FieldLogs is logs that are kept without their receipts. Only profiles above 0 have it.
	FieldLogs FieldGroup = 6

	fieldGroupEnd = FieldLogs + 1
)

// Valid tells whether the group is one of the constants above.
func (g FieldGroup) Valid() bool { return 0 < g && g < fieldGroupEnd }

// String is the name of the group.
func (g FieldGroup) String() string {
	switch g {
	case FieldHeaders:
		return "headers"
	case FieldBodies:
		return "bodies"
	case FieldReceipts:
		return "receipts"
	case FieldSenders:
		return "senders"
	case FieldIndex:
		return "index"
	case FieldLogs:
		return "logs"
	default:
		return fmt.Sprintf("field-%d", uint8(g))
	}
}

const rawCoverageLength = 1 + 1 + 2 + 8

// RawCoverage is the key of one maximal run of blocks whose material of a field group is
// retained.
//
//	0x13 field(1) profile(2) from(8) -> to(8) completeness(1)
//
// Order: group, profile, then blocks. Written, and deleted when the run changes, by the
// commit that adds or removes the files of the run. Example: 1303 0000 0000000000000400 is
// raw-coverage/receipts/profile=0/from=1024.
type RawCoverage struct {
	Field   FieldGroup
	Profile uint16
	From    uint64
}

// Family implements Key.
func (RawCoverage) Family() Family { return FamilyRawCoverage }

// Append implements Key.
func (k RawCoverage) Append(dst []byte) []byte {
	dst = append(dst, byte(FamilyRawCoverage), byte(k.Field))
	dst = binary.BigEndian.AppendUint16(dst, k.Profile)
	return binary.BigEndian.AppendUint64(dst, k.From)
}

// ParseRawCoverage is the inverse of RawCoverage.Append.
func ParseRawCoverage(key []byte) (RawCoverage, error) {
	if err := checkLength(key, FamilyRawCoverage, rawCoverageLength); err != nil {
		return RawCoverage{}, err
	}
	k := RawCoverage{
		Field:   FieldGroup(key[1]),
		Profile: binary.BigEndian.Uint16(key[2:]),
		From:    binary.BigEndian.Uint64(key[4:]),
	}
	if !k.Field.Valid() {
		return RawCoverage{}, fmt.Errorf("%w: raw-coverage: unknown field group %d", ErrMalformed, key[1])
	}
	return k, nil
}

// String implements Key.
func (k RawCoverage) String() string {
	return fmt.Sprintf("raw-coverage/%s/profile=%d/from=%d", k.Field, k.Profile, k.From)
}
