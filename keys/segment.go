package keys

import (
	"encoding/binary"
	"fmt"
)

// Kind numbers the kinds of segment files.
type Kind uint8

// The kinds of segment files.
const (
	// KindData files hold the columns of a run of blocks.
	KindData Kind = 1
	// KindIndex files hold log terms and hash locators over a run of whole data files.
	KindIndex Kind = 2
	// KindSenders files hold the transaction senders of exactly one data file.
	KindSenders Kind = 3
	// KindFrames files hold partial material of a run of blocks, of one profile above 0.
	KindFrames Kind = 4

	kindEnd = KindFrames + 1
)

// Kinds lists the kinds in order. The caller owns the slice.
func Kinds() []Kind { return []Kind{KindData, KindIndex, KindSenders, KindFrames} }

// Valid tells whether the kind is one of the constants above.
func (k Kind) Valid() bool { return 0 < k && k < kindEnd }

// String is the name of the kind, which is also the name of its directory.
func (k Kind) String() string {
	switch k {
	case KindData:
		return "data"
	case KindIndex:
		return "index"
	case KindSenders:
		return "senders"
	case KindFrames:
		return "frames"
	default:
		return fmt.Sprintf("kind-%d", uint8(k))
	}
}

const segmentLength = 1 + 1 + 2 + 1 + 8 + 8

// Segment is the key of the catalog row of a live segment file, and its identity: no two
// files of a store, of the past or the present, share one.
//
//	0x11 kind(1) profile(2) level(1) from(8) generation(8) -> catalog row
//
// Order: kind, profile, level, then blocks, so that the files of one kind and level come in
// block order. Written by the commit that introduces the file; deleted by the commit that
// replaces it. Example: 1101 0000 00 0000000000000400 000000000000002a is
// segment/data/profile=0/level=0/from=1024/generation=42.
type Segment struct {
	Kind Kind
	// Profile numbers the material that the file holds for its blocks; 0 is complete material.
	Profile uint16
	// Level is the merge tier of an index file; 0 for files of other kinds.
	Level uint8
	// From is the first block of the file.
	From uint64
	// Generation numbers the commit that introduced the file, from 1.
	Generation uint64
}

// Family implements Key.
func (Segment) Family() Family { return FamilySegment }

// Append implements Key.
func (k Segment) Append(dst []byte) []byte { return k.append(dst, FamilySegment) }

func (k Segment) append(dst []byte, f Family) []byte {
	dst = append(dst, byte(f), byte(k.Kind))
	dst = binary.BigEndian.AppendUint16(dst, k.Profile)
	dst = append(dst, k.Level)
	dst = binary.BigEndian.AppendUint64(dst, k.From)
	return binary.BigEndian.AppendUint64(dst, k.Generation)
}

// ParseSegment is the inverse of Segment.Append.
func ParseSegment(key []byte) (Segment, error) { return parseSegment(key, FamilySegment) }

func parseSegment(key []byte, f Family) (Segment, error) {
	if err := checkLength(key, f, segmentLength); err != nil {
		return Segment{}, err
	}
	k := Segment{
		Kind:       Kind(key[1]),
		Profile:    binary.BigEndian.Uint16(key[2:]),
		Level:      key[4],
		From:       binary.BigEndian.Uint64(key[5:]),
		Generation: binary.BigEndian.Uint64(key[13:]),
	}
	if !k.Kind.Valid() {
		return Segment{}, fmt.Errorf("%w: %s: unknown kind %d", ErrMalformed, f, key[1])
	}
	return k, nil
}

// String implements Key.
func (k Segment) String() string { return "segment" + k.fields() }

func (k Segment) fields() string {
	return fmt.Sprintf("/%s/profile=%d/level=%d/from=%d/generation=%d", k.Kind, k.Profile, k.Level, k.From, k.Generation)
}

// Retired is the key of the tombstone of a segment file: the file is replaced and waits for
// its deletion.
//
//	0x12 kind(1) profile(2) level(1) from(8) generation(8) -> to, size
//
// Order as Segment. Written by the commit that deletes the segment row of the same identity;
// deleted by the first commit after the file is durably gone. Example: 1201 0000 00
// 0000000000000400 000000000000002a is retired/data/profile=0/level=0/from=1024/generation=42.
type Retired Segment

// Family implements Key.
func (Retired) Family() Family { return FamilyRetired }

// Append implements Key.
func (k Retired) Append(dst []byte) []byte { return Segment(k).append(dst, FamilyRetired) }

// ParseRetired is the inverse of Retired.Append.
func ParseRetired(key []byte) (Retired, error) {
	k, err := parseSegment(key, FamilyRetired)
	return Retired(k), err
}

// String implements Key.
func (k Retired) String() string { return "retired" + Segment(k).fields() }
