package engine

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"

	"github.com/leani-go/leani/keys"
)

// Profile describes a kind of partial material: what frames files with its number hold. Profiles of a snapshot
// are shared and immutable.
type Profile struct {
	// ID is above 0, and fixed once a file of the profile is committed.
	ID uint16
	// Groups are the field groups that its frames hold, in order of their numbers.
	Groups []ProfileGroup
	// Description is for whoever reads the files; equal material has equal bytes.
	Description []byte
}

// ProfileGroup says how much of a field group the frames of a profile hold.
type ProfileGroup struct {
	Field        FieldGroup
	Completeness Completeness
}

const (
	// MaximumProfiles bounds the profiles of a store: far more than sources and settings give.
	MaximumProfiles = 1024
	// MaximumProfileBytes bounds a description.
	MaximumProfileBytes = 1 << 18
)

const profileValueVersion = 1

var (
	errProfileValue   = errors.New("not a description of a profile")
	errUndescribed    = errors.New("has a profile without a description")
	errSameProfile    = errors.New("is described like another profile")
	errTooManyProfile = errors.New("too many profiles")
)

func (p *Profile) key() keys.Profile { return keys.Profile{ID: p.ID} }

func (p *Profile) same(o *Profile) bool {
	return p.ID == o.ID && slices.Equal(p.Groups, o.Groups) && bytes.Equal(p.Description, o.Description)
}

// validate checks what a profile must satisfy by itself.
func (p *Profile) validate() error {
	if p.ID == 0 || len(p.Description) == 0 || len(p.Description) > MaximumProfileBytes || len(p.Groups) > math.MaxUint8 {
		return errProfileValue
	}
	for i, g := range p.Groups {
		if !g.Field.Valid() || !g.Completeness.valid() || i > 0 && g.Field <= p.Groups[i-1].Field {
			return errProfileValue
		}
	}
	return nil
}

// appendProfileValue appends the row of a profile without what its key says.
func appendProfileValue(dst []byte, p *Profile) []byte {
	dst = append(dst, profileValueVersion, byte(len(p.Groups)))
	for _, g := range p.Groups {
		dst = append(dst, byte(g.Field), byte(g.Completeness))
	}
	return append(dst, p.Description...)
}

// decodeProfile decodes the row of a profile. The profile does not alias value.
func decodeProfile(k keys.Profile, value []byte) (*Profile, error) {
	if len(value) < 2 {
		return nil, fmt.Errorf("%w: got %d bytes", errValueLength, len(value))
	}
	if value[0] != profileValueVersion {
		return nil, fmt.Errorf("unknown version %d of a profile", value[0])
	}
	groups := int(value[1])
	if value = value[2:]; len(value) < 2*groups {
		return nil, fmt.Errorf("%w: %d groups", errValueLength, groups)
	}
	p := &Profile{ID: k.ID}
	for ; groups > 0; groups-- {
		p.Groups = append(p.Groups, ProfileGroup{FieldGroup(value[0]), Completeness(value[1])})
		value = value[2:]
	}
	p.Description = bytes.Clone(value)
	return p, p.validate()
}

// reservations are the profiles that files being written name, and that no commit has described yet.
type reservations struct {
	sync.Mutex
	profiles []*Profile
}

// ProfileID gives the number of the profile with a description, for NewRow.Row.Profile. The first commit with a
// file of a profile stores it; until then its number is good for this engine alone. Both slices are copied. An
// error means that the description is not valid, or that the store has MaximumProfiles of them.
func (e *Engine) ProfileID(groups []ProfileGroup, description []byte) (uint16, error) {
	e.reserved.Lock()
	defer e.reserved.Unlock()
	known := e.catalog().profiles
	next := 1
	for _, list := range [][]*Profile{known, e.reserved.profiles} {
		for _, p := range list {
			if bytes.Equal(p.Description, description) {
				if !slices.Equal(p.Groups, groups) {
					return 0, fmt.Errorf("profile %d: got groups %v want %v", p.ID, groups, p.Groups)
				}
				return p.ID, nil
			}
			next = max(next, int(p.ID)+1)
		}
	}
	p := &Profile{ID: uint16(next), Groups: slices.Clone(groups), Description: bytes.Clone(description)}
	if next > MaximumProfiles {
		return 0, fmt.Errorf("%w: a store has at most %d", errTooManyProfile, MaximumProfiles)
	}
	if err := p.validate(); err != nil {
		return 0, fmt.Errorf("profile of %d groups and %d bytes: %w", len(groups), len(description), err)
	}
	e.reserved.profiles = append(e.reserved.profiles, p)
	return p.ID, nil
}

// describe adds to a catalog that nobody else sees yet the profiles of new rows that it lacks, and returns
// these. The coverage is not that of the new profiles before cover.
func (e *Engine) describe(c *catalog, added []*FileRow) (described []*Profile) {
	e.reserved.Lock()
	defer e.reserved.Unlock()
	for _, r := range added {
		if r.Profile == ProfileComplete || profileOf(c.profiles, r.Profile) != nil {
			continue
		}
		if p := profileOf(e.reserved.profiles, r.Profile); p != nil {
			described = append(described, p)
			c.profiles = append(slices.Clone(c.profiles), p)
			slices.SortFunc(c.profiles, func(a, b *Profile) int { return cmp.Compare(a.ID, b.ID) })
		}
	}
	return described
}

// profileOf finds a profile by its number, in a list by number; nil when it is not there.
func profileOf(list []*Profile, id uint16) *Profile {
	i, ok := slices.BinarySearchFunc(list, id, func(p *Profile, id uint16) int { return cmp.Compare(p.ID, id) })
	if !ok {
		return nil
	}
	return list[i]
}

// verifyProfiles reports profiles that break a rule by themselves or with others.
func verifyProfiles(list []*Profile, report func(p *Profile, err error)) {
	seen := make(map[string]bool, len(list))
	for _, p := range list {
		switch {
		case p.validate() != nil:
			report(p, errProfileValue)
		case seen[string(p.Description)]:
			report(p, errSameProfile)
		}
		seen[string(p.Description)] = true
	}
}

// Profiles lists the kinds of partial material that the store has or had files of, by number. The slice is
// shared: read only.
func (s *Snapshot) Profiles() []*Profile { return s.catalog.profiles }

// Frames lists the frames files of a profile in block order. The slice is shared: read only.
func (s *Snapshot) Frames(profile uint16) []*FileRow {
	return ofProfile(s.catalog.rows[KindFrames], profile)
}

// ofProfile are the rows of one profile, among rows of a kind.
func ofProfile(rows []*FileRow, profile uint16) []*FileRow {
	first, _ := slices.BinarySearchFunc(rows, profile, func(r *FileRow, p uint16) int { return cmp.Compare(r.Profile, p) })
	n, _ := slices.BinarySearchFunc(rows[first:], profile, func(r *FileRow, p uint16) int {
		if r.Profile == p {
			return -1
		}
		return 1
	})
	return rows[first : first+n : first+n]
}
