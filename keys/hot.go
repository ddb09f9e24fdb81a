package keys

import (
	"encoding/binary"
	"fmt"

	"github.com/ethereum/go-ethereum/common"
)

const (
	canonicalLength = 1 + 8
	hashLength      = 1 + common.HashLength
	frameLength     = 1 + 8 + common.HashLength + 1
	finalityLength  = 1 + 1
)

// Canonical is the key of a block of the hot tier.
//
//	0x02 number(8) -> reference, counts, sizes of its parts
//
// Order: block number. Written by the commit that applies the block, deleted by the one that
// undoes or evicts it. Example: 02 0000000000000400 is canonical/1024.
type Canonical struct {
	Number uint64
}

// Family implements Key.
func (Canonical) Family() Family { return FamilyCanonical }

// Append implements Key.
func (k Canonical) Append(dst []byte) []byte {
	return binary.BigEndian.AppendUint64(append(dst, byte(FamilyCanonical)), k.Number)
}

// ParseCanonical is the inverse of Canonical.Append.
func ParseCanonical(key []byte) (Canonical, error) {
	if err := checkLength(key, FamilyCanonical, canonicalLength); err != nil {
		return Canonical{}, err
	}
	return Canonical{Number: binary.BigEndian.Uint64(key[1:])}, nil
}

// String implements Key.
func (k Canonical) String() string { return fmt.Sprintf("canonical/%d", k.Number) }

// Hash is the key that finds the number of a block of the hot tier by its hash.
//
//	0x03 hash(32) -> number(8)
//
// Order: hash, which says nothing. Written and deleted with the Canonical row of the block.
// Example: 03 a0…a0 is hash/0xa0…a0.
type Hash struct {
	Hash common.Hash
}

// Family implements Key.
func (Hash) Family() Family { return FamilyHash }

// Append implements Key.
func (k Hash) Append(dst []byte) []byte {
	return append(append(dst, byte(FamilyHash)), k.Hash[:]...)
}

// ParseHash is the inverse of Hash.Append.
func ParseHash(key []byte) (Hash, error) {
	if err := checkLength(key, FamilyHash, hashLength); err != nil {
		return Hash{}, err
	}
	return Hash{Hash: common.Hash(key[1:])}, nil
}

// String implements Key.
func (k Hash) String() string { return fmt.Sprintf("hash/%s", k.Hash.Hex()) }

// Frame is the key of one part of a block of the hot tier. What the parts are is the business
// of whoever stores blocks: here they are numbers from 1.
//
//	0x04 number(8) hash(32) part(1) -> part
//
// Order: block number, hash, part, so that the parts of a block lie together and those of a run
// of blocks can be deleted as one range. Written and deleted with the Canonical row of the
// block. Example: 04 0000000000000400 a0…a0 02 is frame/1024/0xa0…a0/part=2.
type Frame struct {
	Number uint64
	Hash   common.Hash
	Part   uint8
}

// Family implements Key.
func (Frame) Family() Family { return FamilyFrame }

// Append implements Key.
func (k Frame) Append(dst []byte) []byte {
	dst = binary.BigEndian.AppendUint64(append(dst, byte(FamilyFrame)), k.Number)
	return append(append(dst, k.Hash[:]...), k.Part)
}

// ParseFrame is the inverse of Frame.Append.
func ParseFrame(key []byte) (Frame, error) {
	if err := checkLength(key, FamilyFrame, frameLength); err != nil {
		return Frame{}, err
	}
	k := Frame{
		Number: binary.BigEndian.Uint64(key[1:]), Hash: common.Hash(key[9 : 9+common.HashLength]), Part: key[frameLength-1],
	}
	if k.Part == 0 {
		return Frame{}, fmt.Errorf("%w: frame: part 0", ErrMalformed)
	}
	return k, nil
}

// String implements Key.
func (k Frame) String() string {
	return fmt.Sprintf("frame/%d/%s/part=%d", k.Number, k.Hash.Hex(), k.Part)
}

// FrameRange gives the half-open interval of keys that holds every part of every block from
// number from up to and without to. The caller owns the slices.
func FrameRange(from, to uint64) (lower, upper []byte) {
	lower = binary.BigEndian.AppendUint64([]byte{byte(FamilyFrame)}, from)
	upper = binary.BigEndian.AppendUint64([]byte{byte(FamilyFrame)}, to)
	return lower, upper
}

// FinalityLevel numbers the levels up to which the chain is marked.
type FinalityLevel uint8

// The levels. Blocks above both marks are unattested.
const (
	// FinalityAttested blocks are signed for by a sync committee and can still be undone.
	FinalityAttested FinalityLevel = 1
	// FinalityFinalized blocks are never undone.
	FinalityFinalized FinalityLevel = 2

	finalityLevelEnd = FinalityFinalized + 1
)

// String is the name of the level.
func (l FinalityLevel) String() string {
	switch l {
	case FinalityAttested:
		return "attested"
	case FinalityFinalized:
		return "finalized"
	default:
		return fmt.Sprintf("level-%d", uint8(l))
	}
}

// Finality is the key of the mark of a level: the newest block that has reached it.
//
//	0x17 level(1) -> number(8) hash(32)
//
// Order: level. Written by the commit that moves the mark; never deleted once there, except
// that of attested blocks when its last block is undone. Example: 17 02 is finality/finalized.
type Finality struct {
	Level FinalityLevel
}

// Family implements Key.
func (Finality) Family() Family { return FamilyFinality }

// Append implements Key.
func (k Finality) Append(dst []byte) []byte { return append(dst, byte(FamilyFinality), byte(k.Level)) }

// ParseFinality is the inverse of Finality.Append.
func ParseFinality(key []byte) (Finality, error) {
	if err := checkLength(key, FamilyFinality, finalityLength); err != nil {
		return Finality{}, err
	}
	k := Finality{Level: FinalityLevel(key[1])}
	if k.Level == 0 || k.Level >= finalityLevelEnd {
		return Finality{}, fmt.Errorf("%w: finality: unknown level %d", ErrMalformed, key[1])
	}
	return k, nil
}

// String implements Key.
func (k Finality) String() string { return "finality/" + k.Level.String() }
