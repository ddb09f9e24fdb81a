package keys

import "fmt"

// MetaName numbers the facts about the whole store.
type MetaName uint8

// The facts about the store. Their values are described in docs/formats/store.md.
const (
	// MetaFormatVersion -> uint32: the version of the store's format.
	MetaFormatVersion MetaName = 1
	// MetaEpoch -> 16 random bytes, fixed at creation: names this store and no copy made by
	// creating it again.
	MetaEpoch MetaName = 2
	// MetaSecret -> 32 random bytes, fixed at creation: the key of MACs and keyed hashes.
	// Never printed.
	MetaSecret MetaName = 3
	// MetaChainID -> uint64, fixed at creation (EIP-155).
	MetaChainID MetaName = 4
	// MetaGeneration -> uint64: the number of the last commit.
	MetaGeneration MetaName = 5

	metaNameEnd = MetaGeneration + 1
)

// String is the name as printed keys carry it.
func (n MetaName) String() string {
	switch n {
	case MetaFormatVersion:
		return "format-version"
	case MetaEpoch:
		return "epoch"
	case MetaSecret:
		return "secret"
	case MetaChainID:
		return "chain-id"
	case MetaGeneration:
		return "generation"
	default:
		return fmt.Sprintf("name-%d", uint8(n))
	}
}

const metaLength = 1 + 1

// Meta is the key of one fact about the store.
//
//	0x01 name(1) -> by name
//
// Order: by name, which has no meaning of its own. Written at creation, the generation by
// every commit. Never deleted. Example: 0105 is meta/generation.
type Meta struct {
	Name MetaName
}

// Family implements Key.
func (Meta) Family() Family { return FamilyMeta }

// Append implements Key.
func (k Meta) Append(dst []byte) []byte {
	return append(dst, byte(FamilyMeta), byte(k.Name))
}

// ParseMeta is the inverse of Meta.Append.
func ParseMeta(key []byte) (Meta, error) {
	if err := checkLength(key, FamilyMeta, metaLength); err != nil {
		return Meta{}, err
	}
	k := Meta{Name: MetaName(key[1])}
	if k.Name == 0 || k.Name >= metaNameEnd {
		return Meta{}, fmt.Errorf("%w: meta: unknown name %d", ErrMalformed, key[1])
	}
	return k, nil
}

// String implements Key.
func (k Meta) String() string { return "meta/" + k.Name.String() }
