package keys

import (
	"encoding/binary"
	"fmt"
)

const profileLength = 1 + 2

// Profile is the key of the description of a profile: of a kind of partial material.
//
//	0x18 profile(2) -> field groups, description
//
// Order: by number, which is the order in which profiles were first used. Written by the commit that adds the
// first file of the profile; never deleted. 0 stands for complete material and has no row. Example: 180001 is
// profile/1.
type Profile struct {
	// ID is above 0.
	ID uint16
}

// Family implements Key.
func (Profile) Family() Family { return FamilyProfile }

// Append implements Key.
func (k Profile) Append(dst []byte) []byte {
	return binary.BigEndian.AppendUint16(append(dst, byte(FamilyProfile)), k.ID)
}

// ParseProfile is the inverse of Profile.Append.
func ParseProfile(key []byte) (Profile, error) {
	if err := checkLength(key, FamilyProfile, profileLength); err != nil {
		return Profile{}, err
	}
	k := Profile{ID: binary.BigEndian.Uint16(key[1:])}
	if k.ID == 0 {
		return Profile{}, fmt.Errorf("%w: profile: 0 has no description", ErrMalformed)
	}
	return k, nil
}

// String implements Key.
func (k Profile) String() string { return fmt.Sprintf("profile/%d", k.ID) }
