package keys

import (
	"bytes"
	"cmp"
	"errors"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"pgregory.net/rapid"
)

func drawSegment(t *rapid.T, label string) Segment {
	return Segment{
		Kind:       rapid.SampledFrom(Kinds()).Draw(t, label+"kind"),
		Profile:    rapid.Uint16Range(0, 3).Draw(t, label+"profile"),
		Level:      rapid.Uint8Range(0, 3).Draw(t, label+"level"),
		From:       drawNumber(t, label+"from"),
		Generation: drawNumber(t, label+"generation"),
	}
}

// drawNumber mixes small neighbours, where ties and carries happen, with the whole range.
func drawNumber(t *rapid.T, label string) uint64 {
	return rapid.OneOf(rapid.Uint64Range(250, 260), rapid.Uint64()).Draw(t, label)
}

func drawKey(t *rapid.T) Key {
	switch rapid.IntRange(0, 8).Draw(t, "family") {
	case 8:
		return Profile{ID: rapid.Uint16Min(1).Draw(t, "profile")}
	case 4:
		return Canonical{Number: drawNumber(t, "number")}
	case 5:
		return Hash{Hash: drawHash(t, "hash")}
	case 6:
		return drawFrame(t, "")
	case 7:
		return Finality{Level: FinalityLevel(rapid.Uint8Range(1, uint8(finalityLevelEnd-1)).Draw(t, "level"))}
	case 0:
		return Meta{Name: MetaName(rapid.Uint8Range(1, uint8(metaNameEnd-1)).Draw(t, "name"))}
	case 1:
		return drawSegment(t, "")
	case 2:
		return Retired(drawSegment(t, ""))
	default:
		return RawCoverage{
			Field:   rapid.SampledFrom(fieldGroups()).Draw(t, "field"),
			Profile: rapid.Uint16().Draw(t, "profile"),
			From:    drawNumber(t, "from"),
		}
	}
}

func drawHash(t *rapid.T, label string) common.Hash {
	return hashOf(rapid.Uint8Range(0, 3).Draw(t, label))
}

func drawFrame(t *rapid.T, label string) Frame {
	return Frame{
		Number: drawNumber(t, label+"number"),
		Hash:   drawHash(t, label+"hash"),
		Part:   rapid.Uint8Range(1, 4).Draw(t, label+"part"),
	}
}

// Frames of a run of blocks are one range of keys, and lie in the order of block, hash and part.
func TestFrameOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := drawFrame(t, "a "), drawFrame(t, "b ")
		want := cmp.Or(cmp.Compare(a.Number, b.Number), a.Hash.Cmp(b.Hash), cmp.Compare(a.Part, b.Part))
		if got := bytes.Compare(a.Append(nil), b.Append(nil)); got != want {
			t.Fatalf("%v against %v: got %d want %d", a, b, got, want)
		}
		if got := bytes.Compare(Canonical{a.Number}.Append(nil), Canonical{b.Number}.Append(nil)); got != cmp.Compare(a.Number, b.Number) {
			t.Fatalf("canonical %v against %v: got %d", a, b, got)
		}
		lower, upper := FrameRange(a.Number, b.Number)
		c := drawFrame(t, "c ")
		inside := bytes.Compare(c.Append(nil), lower) >= 0 && bytes.Compare(c.Append(nil), upper) < 0
		if want := a.Number <= c.Number && c.Number < b.Number; inside != want {
			t.Fatalf("%v in the range of blocks %d to %d: got %v want %v", c, a.Number, b.Number, inside, want)
		}
	})
}

func TestRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		k := drawKey(t)
		prefix := []byte("prefix")
		encoded := k.Append(prefix)
		if !bytes.HasPrefix(encoded, prefix) {
			t.Fatalf("append does not keep what is there: %x", encoded)
		}
		encoded = encoded[len(prefix):]
		got, err := Parse(encoded)
		if err != nil {
			t.Fatalf("parse %x: %v", encoded, err)
		}
		if got != k {
			t.Fatalf("got %v want %v", got, k)
		}
		lower, upper := k.Family().Bounds()
		if bytes.Compare(encoded, lower) < 0 || bytes.Compare(encoded, upper) >= 0 {
			t.Fatalf("%x is outside the bounds of its family", encoded)
		}
	})
}

func TestSegmentOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := drawSegment(t, "a "), drawSegment(t, "b ")
		if rapid.Bool().Draw(t, "same kind and level") {
			b.Kind, b.Profile, b.Level = a.Kind, a.Profile, a.Level
		}
		want := cmp.Or(
			cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Profile, b.Profile), cmp.Compare(a.Level, b.Level),
			cmp.Compare(a.From, b.From), cmp.Compare(a.Generation, b.Generation))
		if got := bytes.Compare(a.Append(nil), b.Append(nil)); got != want {
			t.Fatalf("%v against %v: got %d want %d", a, b, got, want)
		}
		if got := bytes.Compare(Retired(a).Append(nil), Retired(b).Append(nil)); got != want {
			t.Fatalf("retired %v against %v: got %d want %d", a, b, got, want)
		}
	})
}

func TestRawCoverageOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		draw := func(label string) RawCoverage {
			return RawCoverage{
				Field:   rapid.SampledFrom(fieldGroups()).Draw(t, label+"field"),
				Profile: rapid.Uint16Range(0, 2).Draw(t, label+"profile"),
				From:    drawNumber(t, label+"from"),
			}
		}
		a, b := draw("a "), draw("b ")
		want := cmp.Or(cmp.Compare(a.Field, b.Field), cmp.Compare(a.Profile, b.Profile), cmp.Compare(a.From, b.From))
		if got := bytes.Compare(a.Append(nil), b.Append(nil)); got != want {
			t.Fatalf("%v against %v: got %d want %d", a, b, got, want)
		}
	})
}

func TestFamiliesAreOrderedAndNamed(t *testing.T) {
	seen := map[string]bool{}
	var last Family
	for _, f := range Families() {
		if f <= last {
			t.Errorf("family %s (0x%02x) does not follow 0x%02x", f, byte(f), byte(last))
		}
		last = f
		if seen[f.String()] || strings.HasPrefix(f.String(), "family-") {
			t.Errorf("family 0x%02x has no name of its own: %q", byte(f), f)
		}
		seen[f.String()] = true
		if f.Known() == f.Reserved() {
			t.Errorf("family %s: known and reserved must exclude each other", f)
		}
	}
}

func TestParseRefuses(t *testing.T) {
	segment := Segment{Kind: KindData, From: 1, Generation: 2}.Append(nil)
	for _, c := range []struct {
		name string
		key  []byte
		want error
	}{
		{"empty", nil, ErrMalformed},
		{"family zero", []byte{0}, ErrUnknownFamily},
		{"reserved family", []byte{byte(FamilyJournal), 1}, ErrUnknownFamily},
		{"canonical short", []byte{byte(FamilyCanonical), 1}, ErrMalformed},
		{"hash long", append(Hash{}.Append(nil), 0), ErrMalformed},
		{"frame part zero", Frame{}.Append(nil), ErrMalformed},
		{"finality level zero", Finality{}.Append(nil), ErrMalformed},
		{"finality level", Finality{Level: finalityLevelEnd}.Append(nil), ErrMalformed},
		{"unassigned family", []byte{0xff, 1}, ErrUnknownFamily},
		{"meta without name", []byte{byte(FamilyMeta)}, ErrMalformed},
		{"meta name zero", []byte{byte(FamilyMeta), 0}, ErrMalformed},
		{"meta name unknown", []byte{byte(FamilyMeta), byte(metaNameEnd)}, ErrMalformed},
		{"segment short", segment[:len(segment)-1], ErrMalformed},
		{"segment long", append(bytes.Clone(segment), 0), ErrMalformed},
		{"segment kind", Segment{Kind: kindEnd}.Append(nil), ErrMalformed},
		{"retired kind", Retired{}.Append(nil), ErrMalformed},
		{"coverage field", RawCoverage{Field: fieldGroupEnd}.Append(nil), ErrMalformed},
	} {
		k, err := Parse(c.key)
		if !errors.Is(err, c.want) || k != nil {
			t.Errorf("%s: got %v, %v want %v", c.name, k, err, c.want)
		}
	}
	if _, err := ParseSegment(Retired{Kind: KindData}.Append(nil)); !errors.Is(err, ErrMalformed) {
		t.Errorf("a retired key is taken for a segment key: %v", err)
	}
}

// FuzzParse proves that any byte string is either refused or the one encoding of its key, and
// that printing never fails.
func FuzzParse(f *testing.F) {
	for _, e := range examples {
		f.Add(e.key.Append(nil))
	}
	f.Add([]byte{})
	f.Add([]byte{0xff})
	f.Fuzz(func(t *testing.T, key []byte) {
		if Print(key) == "" {
			t.Fatal("printed nothing")
		}
		k, err := Parse(key)
		if err != nil {
			if !errors.Is(err, ErrMalformed) && !errors.Is(err, ErrUnknownFamily) {
				t.Fatalf("untyped error: %v", err)
			}
			return
		}
		if got := k.Append(nil); !bytes.Equal(got, key) {
			t.Fatalf("got %x want %x", got, key)
		}
		if k.Family() != Family(key[0]) || !k.Family().Known() {
			t.Fatalf("family %s of %x", k.Family(), key)
		}
	})
}

func BenchmarkSegmentAppendParse(b *testing.B) {
	b.ReportAllocs()
	buf := make([]byte, 0, segmentLength)
	for i := 0; b.Loop(); i++ {
		buf = Segment{Kind: KindIndex, Level: 3, From: uint64(i), Generation: 9}.Append(buf[:0])
		if _, err := ParseSegment(buf); err != nil {
			b.Fatal(err)
		}
	}
}

// fieldGroups lists the groups.
func fieldGroups() []FieldGroup {
	return []FieldGroup{FieldHeaders, FieldBodies, FieldReceipts, FieldSenders, FieldIndex}
}
