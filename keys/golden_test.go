package keys

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/common"
)

var update = flag.Bool("update", false, "rewrite the tables in docs/formats/keys.md")

const document = "../docs/formats/keys.md"

// examples are the worked keys of docs/formats/keys.md.
var examples = []struct {
	key Key
}{
	{Meta{Name: MetaFormatVersion}},
	{Meta{Name: MetaEpoch}},
	{Meta{Name: MetaSecret}},
	{Meta{Name: MetaChainID}},
	{Meta{Name: MetaGeneration}},
	{Canonical{Number: 1024}},
	{Hash{Hash: hashOf(0xa0)}},
	{Frame{Number: 1024, Hash: hashOf(0xa0), Part: 2}},
	{Finality{Level: FinalityAttested}},
	{Finality{Level: FinalityFinalized}},
	{Segment{Kind: KindData, From: 1024, Generation: 42}},
	{Segment{Kind: KindIndex, Level: 1, From: 8192, Generation: 300}},
	{Segment{Kind: KindSenders, From: 1024, Generation: 43}},
	{Retired{Kind: KindData, From: 1024, Generation: 42}},
	{RawCoverage{Field: FieldReceipts, From: 1024}},
	{RawCoverage{Field: FieldIndex, Profile: 1, From: 1 << 40}},
	{RawCoverage{Field: FieldLogs, Profile: 7, From: 1024}},
	{Segment{Kind: KindFrames, Profile: 7, From: 1024, Generation: 44}},
	{Profile{ID: 7}},
}

// hashOf is a hash of one repeated byte.
func hashOf(b byte) common.Hash { return common.Hash(bytes.Repeat([]byte{b}, common.HashLength)) }

// TestDocument compares the tables of docs/formats/keys.md with the code, so that the
// document cannot drift: the families with their formulas, and keys with their bytes.
func TestDocument(t *testing.T) {
	var schema strings.Builder
	schema.WriteString("| byte | family | fields (bytes) | length |\n|---|---|---|---|\n")
	for _, f := range families {
		fields, length := f.fields, fmt.Sprint(f.length)
		if f.fields == "" {
			fields, length = "reserved", ""
		}
		fmt.Fprintf(&schema, "| `%02x` | %s | %s | %s |\n", byte(f.family), f.name, fields, length)
	}

	var worked strings.Builder
	worked.WriteString("| key | bytes |\n|---|---|\n")
	for _, e := range examples {
		fmt.Fprintf(&worked, "| `%s` | `%x` |\n", e.key, e.key.Append(nil))
	}

	got, err := os.ReadFile(document)
	if err != nil {
		t.Fatal(err)
	}
	want := replaceBlock(t, string(got), "families", schema.String())
	want = replaceBlock(t, want, "examples", worked.String())
	if string(got) == want {
		return
	}
	if *update {
		if err := os.WriteFile(document, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	t.Errorf("%s does not match the code; run go test ./keys -run TestDocument -update\nwant:\n%s%s", document, &schema, &worked)
}

// replaceBlock puts text between the markers of the named block.
func replaceBlock(t *testing.T, doc, name, text string) string {
	t.Helper()
	begin, end := "<!-- "+name+" -->\n", "<!-- end "+name+" -->"
	head, rest, ok := strings.Cut(doc, begin)
	_, tail, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		t.Fatalf("%s has no block %q", document, name)
	}
	return head + begin + text + end + tail
}
