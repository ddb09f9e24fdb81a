package keys

import (
	"errors"
	"fmt"
)

// Family is the first byte of a key.
type Family byte

// The families. The comment of each gives the formula, the value, and who writes and deletes
// the rows; the type of the same name gives order and an example.
const (
	// FamilyMeta: name(1) -> fixed encoding by name. Written at creation, the generation by
	// every commit; never deleted.
	FamilyMeta Family = 0x01

	// FamilyCanonical: number(8) -> reference of a block of the hot tier. Written by the commit
	// that applies the block, deleted by the one that undoes or evicts it.
	FamilyCanonical Family = 0x02
	// FamilyHash: hash(32) -> number of a block of the hot tier. Written and deleted with its
	// canonical row.
	FamilyHash Family = 0x03
	// FamilyFrame: number(8) hash(32) part(1) -> part of a block of the hot tier. Written and
	// deleted with its canonical row.
	FamilyFrame Family = 0x04
	// FamilyCoverage is reserved: instance(4) from(8) -> to, finality.
	FamilyCoverage Family = 0x05
	// FamilyState is reserved: instance(4) namespace(2) key -> private state of a processor.
	FamilyState Family = 0x06
	// FamilyOutput is reserved: instance(4) collection(2) entity key -> entity.
	FamilyOutput Family = 0x07
	// FamilyOutputByBlock is reserved: instance(4) collection(2) number(8) entity key -> nothing.
	FamilyOutputByBlock Family = 0x08
	// FamilyArtifact is reserved: instance(4) number(8) hash(32) -> artifact until sealed.
	FamilyArtifact Family = 0x09
	// FamilyUndo is reserved: instance(4) number(8) hash(32) -> preimages.
	FamilyUndo Family = 0x0a
	// FamilyJournal is reserved: stream(4) sequence(8) -> change row.
	FamilyJournal Family = 0x0b
	// FamilyJournalBounds is reserved: stream(4) number(8) -> first and last sequence.
	FamilyJournalBounds Family = 0x0c
	// FamilyCursor is reserved: instance(4) -> processor and publication cursor.
	FamilyCursor Family = 0x0d
	// FamilyConsumer is reserved: stream(4) consumer(4) -> role, positions, lease.
	FamilyConsumer Family = 0x0e
	// FamilyJob is reserved: kind(1) id(8) -> request, progress, report.
	FamilyJob Family = 0x0f
	// FamilyQuerySnapshot is reserved: id(8) ordinal(8) -> copied query row.
	FamilyQuerySnapshot Family = 0x10

	// FamilySegment: kind(1) profile(2) level(1) from(8) generation(8) -> catalog row of a
	// live file. Written by the commit that introduces the file, deleted by the one that
	// replaces it.
	FamilySegment Family = 0x11
	// FamilyRetired: kind(1) profile(2) level(1) from(8) generation(8) -> to and size of a
	// file that waits for deletion. Written by the commit that deletes the segment row,
	// deleted by the first commit after the file is gone.
	FamilyRetired Family = 0x12
	// FamilyRawCoverage: field group(1) profile(2) from(8) -> to and completeness of a maximal
	// run of retained blocks. Rewritten by every commit that changes the run.
	FamilyRawCoverage Family = 0x13

	// FamilyUsage is reserved: class(1) owner(4) -> byte counters.
	FamilyUsage Family = 0x14
	// FamilyWebhook is reserved for signed push delivery.
	FamilyWebhook Family = 0x15
	// FamilyFeed is reserved for the indexer feed.
	FamilyFeed Family = 0x16

	// FamilyFinality: level(1) -> number and hash of the newest block of the level. Written by the
	// commit that moves the mark.
	FamilyFinality Family = 0x17

	// FamilyProfile: profile(2) -> what frames of the profile hold. Written by the commit with the
	// first file of the profile; never deleted.
	FamilyProfile Family = 0x18
)

// ErrUnknownFamily is returned for a key whose first byte is no family, or a reserved one
// that this build writes no rows of.
var ErrUnknownFamily = errors.New("unknown key family")

// ErrMalformed is returned for a key of a known family with a wrong length or a field outside
// its vocabulary.
var ErrMalformed = errors.New("malformed key")

// families lists every family with its name and, where this build uses it, its formula.
var families = [...]struct {
	family Family
	name   string
	fields string // empty for a reserved family
	length int    // of a whole key, 0 for a reserved family
}{
	{FamilyMeta, "meta", "name(1)", metaLength},
	{FamilyCanonical, "canonical", "number(8)", canonicalLength},
	{FamilyHash, "hash", "hash(32)", hashLength},
	{FamilyFrame, "frame", "number(8) hash(32) part(1)", frameLength},
	{FamilyCoverage, "coverage", "", 0},
	{FamilyState, "state", "", 0},
	{FamilyOutput, "output", "", 0},
	{FamilyOutputByBlock, "output-by-block", "", 0},
	{FamilyArtifact, "artifact", "", 0},
	{FamilyUndo, "undo", "", 0},
	{FamilyJournal, "journal", "", 0},
	{FamilyJournalBounds, "journal-bounds", "", 0},
	{FamilyCursor, "cursor", "", 0},
	{FamilyConsumer, "consumer", "", 0},
	{FamilyJob, "job", "", 0},
	{FamilyQuerySnapshot, "query-snapshot", "", 0},
	{FamilySegment, "segment", "kind(1) profile(2) level(1) from(8) generation(8)", segmentLength},
	{FamilyRetired, "retired", "kind(1) profile(2) level(1) from(8) generation(8)", segmentLength},
	{FamilyRawCoverage, "raw-coverage", "field(1) profile(2) from(8)", rawCoverageLength},
	{FamilyUsage, "usage", "", 0},
	{FamilyWebhook, "webhook", "", 0},
	{FamilyFeed, "feed", "", 0},
	{FamilyFinality, "finality", "level(1)", finalityLength},
	{FamilyProfile, "profile", "profile(2)", profileLength},
}

// Families lists all families in byte order, the reserved ones included. The caller owns the
// slice.
func Families() []Family {
	list := make([]Family, len(families))
	for i := range families {
		list[i] = families[i].family
	}
	return list
}

// Known tells whether this build writes rows of the family.
func (f Family) Known() bool { return f.Fields() != "" }

// Reserved tells whether the family is set aside for a later build.
func (f Family) Reserved() bool {
	for i := range families {
		if families[i].family == f {
			return families[i].fields == ""
		}
	}
	return false
}

// Fields is the formula of the key after the family byte, each field with its width in
// bytes. It is empty for a reserved or unknown family.
func (f Family) Fields() string {
	for i := range families {
		if families[i].family == f {
			return families[i].fields
		}
	}
	return ""
}

// String is the name of the family as printed keys carry it.
func (f Family) String() string {
	for i := range families {
		if families[i].family == f {
			return families[i].name
		}
	}
	return fmt.Sprintf("family-0x%02x", byte(f))
}

// Bounds gives the half-open interval of keys that holds exactly the family. The caller owns
// the slices.
func (f Family) Bounds() (lower, upper []byte) {
	if f == 0xff {
		return []byte{0xff}, nil // nil bounds nothing; no family is assigned this byte
	}
	return []byte{byte(f)}, []byte{byte(f) + 1}
}

// Key is a parsed key of any family.
type Key interface {
	// Family is the family of the key.
	Family() Family
	// Append appends the encoded key to dst and returns the extended slice.
	Append(dst []byte) []byte
	// String prints the key for people: the family and its fields, separated by slashes.
	String() string
}

// Parse decodes a key of any family this build knows. The error is ErrUnknownFamily or
// ErrMalformed, with detail. The result does not alias key.
func Parse(key []byte) (Key, error) {
	if len(key) == 0 {
		return nil, fmt.Errorf("%w: empty", ErrMalformed)
	}
	switch f := Family(key[0]); f {
	case FamilyMeta:
		return box(ParseMeta(key))
	case FamilyCanonical:
		return box(ParseCanonical(key))
	case FamilyHash:
		return box(ParseHash(key))
	case FamilyFrame:
		return box(ParseFrame(key))
	case FamilyFinality:
		return box(ParseFinality(key))
	case FamilySegment:
		return box(ParseSegment(key))
	case FamilyRetired:
		return box(ParseRetired(key))
	case FamilyRawCoverage:
		return box(ParseRawCoverage(key))
	case FamilyProfile:
		return box(ParseProfile(key))
	default:
		return nil, fmt.Errorf("%w: %s", ErrUnknownFamily, f)
	}
}

// box keeps a failed parse from becoming a non-nil Key.
func box[K Key](k K, err error) (Key, error) {
	if err != nil {
		return nil, err
	}
	return k, nil
}

// Print writes any byte string as a key: the fields of a known one, else the family's name
// and the rest in hex. It never fails.
func Print(key []byte) string {
	if k, err := Parse(key); err == nil {
		return k.String()
	}
	if len(key) == 0 {
		return "empty"
	}
	return fmt.Sprintf("%s/0x%x", Family(key[0]), key[1:])
}

// checkLength reports a key of the wrong family or length.
func checkLength(key []byte, f Family, want int) error {
	if len(key) == 0 || Family(key[0]) != f {
		return fmt.Errorf("%w: not of family %s: 0x%x", ErrMalformed, f, key)
	}
	if len(key) != want {
		return fmt.Errorf("%w: %s: got %d bytes want %d", ErrMalformed, f, len(key), want)
	}
	return nil
}
