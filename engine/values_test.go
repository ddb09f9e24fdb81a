package engine

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/leani-go/leani/chain"
	"github.com/leani-go/leani/keys"
)

func drawRow(t *rapid.T) *FileRow {
	r := &FileRow{
		Kind:         rapid.SampledFrom(keys.Kinds()).Draw(t, "kind"),
		Level:        rapid.Uint8().Draw(t, "level"),
		Profile:      rapid.Uint16().Draw(t, "profile"),
		From:         rapid.Uint64().Draw(t, "from"),
		To:           rapid.Uint64().Draw(t, "to"),
		Generation:   rapid.Uint64().Draw(t, "generation"),
		Size:         rapid.Int64Min(0).Draw(t, "size"),
		Transactions: rapid.Uint64().Draw(t, "transactions"),
		Logs:         rapid.Uint64().Draw(t, "logs"),
	}
	for _, field := range [][]byte{r.Digest[:], r.FirstHash[:], r.LastHash[:], r.ParentHash[:]} {
		copy(field, rapid.SliceOfN(rapid.Byte(), 32, 32).Draw(t, "hash"))
	}
	return r
}

func TestRowRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := drawRow(t)
		value := appendSegmentValue(nil, r)
		if len(value) != segmentValueLength {
			t.Fatalf("length: got %d want %d", len(value), segmentValueLength)
		}
		got, err := decodeSegmentRow(r.key(), value)
		if err != nil {
			t.Fatal(err)
		}
		if *got != *r {
			t.Fatalf("got %+v want %+v", got, r)
		}
		k, to, ok := parseFileName(r.Kind, r.Name())
		if !ok || k != r.key() || to != r.To {
			t.Fatalf("name %s: got %v %d %v", r.Name(), k, to, ok)
		}
		stone, err := decodeTombstone(keys.Retired(r.key()), appendTombstoneValue(nil, tombstoneOf(r)))
		if err != nil || stone != tombstoneOf(r) || stone.name() != r.Name() {
			t.Fatalf("tombstone: got %+v, %v", stone, err)
		}
	})
}

// FuzzDecodeValues proves that the decoders of stored values refuse or round-trip any bytes.
func FuzzDecodeValues(f *testing.F) {
	r := newRow(KindData, 0, chain.Range{From: 1, To: 2}, []byte("x"))
	f.Add(appendSegmentValue(nil, &r))
	f.Add(appendTombstoneValue(nil, tombstoneOf(&r)))
	f.Add(appendCoverageValue(nil, CoverageRun{Completeness: Complete, Range: chain.Range{From: 1, To: 2}}))
	f.Add([]byte{})
	k := keys.Segment{Kind: KindData, From: 1, Generation: 1}
	f.Fuzz(func(t *testing.T, value []byte) {
		if row, err := decodeSegmentRow(k, value); err == nil {
			if got := appendSegmentValue(nil, row); !bytes.Equal(got, value) {
				t.Errorf("row: got %x want %x", got, value)
			}
			_ = row.validate()
		}
		if stone, err := decodeTombstone(keys.Retired(k), value); err == nil {
			if got := appendTombstoneValue(nil, stone); !bytes.Equal(got, value) {
				t.Errorf("tombstone: got %x want %x", got, value)
			}
		}
		if run, err := decodeCoverage(keys.RawCoverage{Field: FieldIndex, From: 1}, value); err == nil {
			if got := appendCoverageValue(nil, run); !bytes.Equal(got, value) {
				t.Errorf("coverage: got %x want %x", got, value)
			}
		}
	})
}

// FuzzParseFileName proves that a name is refused or is the one name of what it says.
func FuzzParseFileName(f *testing.F) {
	f.Add("000000001024-000000002048.l0.p0.g00000042.seg")
	f.Add("18446744073709551615-18446744073709551615.l255.p65535.g18446744073709551615.seg")
	f.Add("000000001024-000000002048.l00.p0.g00000042.seg")
	f.Add("+00000001024-000000002048.l0.p0.g00000042.seg")
	f.Add("-.l.p.g.seg")
	f.Add("a.tmp")
	f.Fuzz(func(t *testing.T, name string) {
		k, to, ok := parseFileName(KindData, name)
		if ok && fileName(k, to) != name {
			t.Errorf("%q is taken for %q", name, fileName(k, to))
		}
	})
}

func TestParseFileNameIsStrict(t *testing.T) {
	const good = "000000001024-000000002048.l0.p0.g00000042.seg"
	if _, _, ok := parseFileName(KindData, good); !ok {
		t.Fatalf("%s is refused", good)
	}
	for _, bad := range []string{
		"", ".seg", good + ".seg", strings.ToUpper(good), " " + good, "1024-2048.l0.p0.g42.seg",
		"0000000001024-000000002048.l0.p0.g00000042.seg", "000000001024-000000002048.l00.p0.g00000042.seg",
		"000000001024-000000002048.l256.p0.g00000042.seg", "000000001024-000000002048.l0.p65536.g00000042.seg",
		"000000001024-000000002048.p0.l0.g00000042.seg", "000000001024-000000002048.l0.p0.g-0000042.seg",
		"000000001024.l0.p0.g00000042.seg", "000000001024-000000002048.l0.p0.seg", "000000001024-000000002048.l.p0.g00000042.seg",
	} {
		if _, _, ok := parseFileName(KindData, bad); ok {
			t.Errorf("%q is accepted", bad)
		}
	}
}

// TestCoverageOf compares the union of random rows with a set of blocks.
func TestCoverageOf(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const end = 64
		var rows [kindSlots][]*FileRow
		var want [end]bool
		for range rapid.IntRange(0, 8).Draw(t, "rows") {
			from := rapid.Uint64Range(0, end-1).Draw(t, "from")
			to := rapid.Uint64Range(from+1, end).Draw(t, "to")
			level := rapid.Uint8Range(0, 2).Draw(t, "level")
			rows[KindIndex] = append(rows[KindIndex], &FileRow{Kind: KindIndex, Level: level, From: from, To: to})
			for n := from; n < to; n++ {
				want[n] = true
			}
		}
		c := newCatalog(1, rows[KindIndex], hotWindow{})
		var got [end]bool
		last := -1
		for _, run := range c.coverage {
			if run.Field != FieldIndex || run.Empty() || int(run.From) <= last {
				t.Fatalf("runs are not maximal and in order: %v", c.coverage)
			}
			last = int(run.To)
			for n := run.From; n < run.To; n++ {
				got[n] = true
			}
		}
		if got != want {
			t.Fatalf("got %v", c.coverage)
		}
	})
}

const storeDocument = "../docs/formats/store.md"

// exampleRow is the worked example of docs/formats/store.md.
func exampleRow() *FileRow {
	r := &FileRow{Kind: KindData, From: 1024, To: 2048, Generation: 42, Size: 0x0123_4567, Transactions: 231_424, Logs: 437_760}
	fill := func(dst []byte, b byte) {
		for i := range dst {
			dst[i] = b
		}
	}
	fill(r.Digest[:], 0xd1)
	fill(r.FirstHash[:], 0xf1)
	fill(r.LastHash[:], 0x1a)
	fill(r.ParentHash[:], 0xa0)
	return r
}

// TestStoreDocument builds the rows of the worked example and decodes the bytes of the
// document, so that it cannot drift.
func TestStoreDocument(t *testing.T) {
	r := exampleRow()
	run := CoverageRun{Field: FieldReceipts, Completeness: Complete, Range: r.Range()}
	partial := &Profile{ID: 7, Groups: []ProfileGroup{{FieldHeaders, Complete}, {FieldLogs, Declared}}, Description: []byte("see frames.md")}
	type row struct {
		key   keys.Key
		value []byte
	}
	rows := []row{
		{r.key(), appendSegmentValue(nil, r)},
		{keys.Retired(r.key()), appendTombstoneValue(nil, tombstoneOf(r))},
		{run.key(), appendCoverageValue(nil, run)},
		{partial.key(), appendProfileValue(nil, partial)},
	}
	var b strings.Builder
	fmt.Fprintf(&b, "File `segments/data/%s`:\n\n", r.Name())
	for _, row := range rows {
		fmt.Fprintf(&b, "```\n%s\n%s", row.key, hexLines("key  ", row.key.Append(nil)))
		fmt.Fprintf(&b, "%s```\n\n", hexLines("value", row.value))
	}
	mark := slot{generation: r.Generation}
	for i := range mark.epoch {
		mark.epoch[i] = byte(i)
	}
	fmt.Fprintf(&b, "The slot at offset 0 of `GENERATION`, of a store whose epoch is 000102…0f:\n\n```\n%s```\n\n", hexLines("slot ", mark.append(nil)))
	doc, err := os.ReadFile(storeDocument)
	if err != nil {
		t.Fatal(err)
	}
	const begin, end = "<!-- examples -->\n", "<!-- end examples -->"
	head, rest, ok := strings.Cut(string(doc), begin)
	block, tail, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		t.Fatalf("%s has no block of examples", storeDocument)
	}
	if block != b.String() {
		if !*update {
			t.Fatalf("%s does not match the code; run go test ./engine -run TestStoreDocument -update\nwant:\n%s", storeDocument, &b)
		}
		if err := os.WriteFile(storeDocument, []byte(head+begin+b.String()+end+tail), 0o644); err != nil {
			t.Fatal(err)
		}
		block = b.String()
	}

	// The other way round: decode what the document says.
	decoded := decodeExamples(t, block, 9)
	got, err := decodeSegmentRow(r.key(), decoded[1])
	if err != nil || *got != *r {
		t.Errorf("row of the document: got %+v, %v", got, err)
	}
	if k, err := keys.ParseSegment(decoded[0]); err != nil || k != r.key() {
		t.Errorf("key of the document: got %v, %v", k, err)
	}
	if stone, err := decodeTombstone(keys.Retired(r.key()), decoded[3]); err != nil || stone != tombstoneOf(r) {
		t.Errorf("tombstone of the document: got %+v, %v", stone, err)
	}
	if c, err := decodeCoverage(keys.RawCoverage{Field: FieldReceipts, From: 1024}, decoded[5]); err != nil || c != run {
		t.Errorf("coverage of the document: got %+v, %v", c, err)
	}
	if p, err := decodeProfile(keys.Profile{ID: 7}, decoded[7]); err != nil || !p.same(partial) {
		t.Errorf("profile of the document: got %+v, %v", p, err)
	}
	if s, ok := parseSlot(decoded[8]); !ok || s != mark || mark.offset() != 0 {
		t.Errorf("slot of the document: got %+v, %v", s, ok)
	}
}

// hexLines writes bytes in lines of 32 with their offset.
func hexLines(label string, data []byte) string {
	var b strings.Builder
	for off := 0; off < len(data); off += 32 {
		fmt.Fprintf(&b, "%s %3d  %x\n", label, off, data[off:min(off+32, len(data))])
	}
	return b.String()
}

// decodeExamples gives the keys and values of the block in turn.
func decodeExamples(t *testing.T, block string, want int) [][]byte {
	t.Helper()
	var out [][]byte
	last := ""
	for line := range strings.Lines(block) {
		part := strings.Fields(line)
		if len(part) != 3 || !slices.Contains([]string{"key", "value", "slot"}, part[0]) {
			last = ""
			continue
		}
		data, err := hex.DecodeString(part[2])
		if err != nil {
			t.Fatal(err)
		}
		if part[0] != last {
			out = append(out, nil)
			last = part[0]
		}
		out[len(out)-1] = append(out[len(out)-1], data...)
	}
	if len(out) != want {
		t.Fatalf("the document has %d byte strings, want %d", len(out), want)
	}
	return out
}
