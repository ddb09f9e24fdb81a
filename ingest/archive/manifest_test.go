package archive

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/leani-go/leani/chain"
)

// TestManifest reads a manifest with all its members: ARC-001, ARC-005, ARC-008, ARC-010, ARC-011, ARC-013. The objects may be
// listed in any order, and holes between them are none of the manifest's business: ARC-015.
func TestManifest(t *testing.T) {
	tree := madeManifest(madeObject{7, 9, "seven"}, madeObject{1, 2, "one"})
	m, err := ParseManifest(text(t, tree))
	if err != nil {
		t.Fatal(err)
	}
	kinds := chain.NewCapabilities(chain.CapabilityTransactions, chain.CapabilityReceipts, chain.CapabilityLogs)
	want := &Manifest{
		ID: "made", ChainID: 1, Capabilities: kinds, Complete: kinds, Finality: chain.Finalized,
		Objects: []Object{
			{Range: chain.Range{From: 1, To: 3}, Path: "object-1.jsonl", Bytes: 3},
			{Range: chain.Range{From: 7, To: 10}, Path: "object-0.jsonl", Bytes: 5},
		},
	}
	for i := range m.Objects {
		want.Objects[i].BLAKE3 = m.Objects[i].BLAKE3
	}
	if diff := cmp.Diff(want, m); diff != "" {
		t.Error(diff)
	}
	a := &Archive{path: "m", manifest: m}
	objects, err := a.Select(chain.Range{From: 2, To: 12})
	var hole *HoleError
	if !errors.As(err, &hole) || len(objects) != 2 || !cmp.Equal(hole.Holes(), []chain.Range{{From: 3, To: 7}, {From: 10, To: 12}}) {
		t.Errorf("%v, %v", objects, err)
	}
	if err.Error() != "archive m: no object holds blocks 3 to 6, 10 to 11" {
		t.Error(err)
	}
}

// Older words for finality are read, and written as what they became.
func TestManifestFinality(t *testing.T) {
	for word, want := range map[string]chain.Finality{
		"Unattested": chain.Unattested, "Attested": chain.Attested, "Finalized": chain.Finalized,
		"Preview": chain.Unattested, "Included": chain.Attested, "Optimistic": chain.Unattested, "Safe": chain.Attested,
	} {
		tree := madeManifest(madeObject{1, 1, "x"})
		tree["finality"] = word
		if m, err := ParseManifest(text(t, tree)); err != nil || m.Finality != want {
			t.Errorf("%s: %v, %v", word, m, err)
		}
	}
}

// TestManifestRefusals changes one thing at a time.
func TestManifestRefusals(t *testing.T) {
	object := func(name string, v any) func(map[string]any) {
		return func(m map[string]any) { m["objects"].([]any)[0].(map[string]any)[name] = v }
	}
	set := func(name string, v any) func(map[string]any) { return func(m map[string]any) { m[name] = v } }
	without := func(name string) func(map[string]any) { return func(m map[string]any) { delete(m, name) } }
	digest := strings.Repeat("0a", 32)
	for name, c := range map[string]struct {
		change func(map[string]any)
		want   string
	}{
		"ARC-004 version":            {set("format_version", 2), "format_version 2: want 1"},
		"ARC-004 version is text":    {set("format_version", "1"), "want an integer"},
		"ARC-004 version is a float": {set("format_version", 1.5), "not an integer"},
		"ARC-005 empty id":           {set("id", ""), "id: 0 bytes"},
		"ARC-005 strange id":         {set("id", "a b"), "' '"},
		"ARC-005 long id":            {set("id", strings.Repeat("x", 65)), "65 bytes"},
		"chain 0":                    {set("chain_id", 0), "chain_id is 0"},
		"ARC-007 schema":             {set("schema_version", "normalized-frame-jsonl.v2"), "schema_version"},
		"ARC-008 lower case":         {set("capabilities", []string{"header"}), `capability "header"`},
		"ARC-009 not a subset":       {set("complete_capabilities", []string{"Header"}), "Header is not among the capabilities"},
		"ARC-010 lower case":         {set("finality", "finalized"), "finality"},
		"ARC-010 unknown":            {set("finality", "None"), "finality"},
		"ARC-011 no objects":         {set("objects", []any{}), "objects is empty"},
		"ARC-011 missing member":     {object("bytes", nil), "want an integer"},
		"ARC-012 upper case":         {object("blake3", strings.ToUpper(digest)), "blake3"},
		"ARC-012 short":              {object("blake3", digest[1:]), "blake3"},
		"ARC-012 long":               {object("blake3", digest+"0"), "blake3"},
		"ARC-012 not hex":            {object("blake3", "g"+digest[1:]), "blake3"},
		"ARC-013 no bytes":           {object("bytes", 0), "0 bytes"},
		"ARC-013 negative":           {object("bytes", -1), "want an integer"},
		"ARC-014 inverted":           {object("to_block", 0), "from_block 1 is above to_block 0"},
		"ARC-015 overlap":            {object("to_block", 8), "overlap at block 5"},
		"ARC-016 unknown member":     {set("comment", "hello"), `unknown member "comment"`},
		"ARC-016 unknown in object":  {object("size", 1), `unknown member "size"`},
		"missing member":             {without("finality"), "member finality is missing"},
		"ARC-020 absolute path":      {object("path", "/etc/passwd"), "is absolute"},
		"ARC-021 parent first":       {object("path", "../x"), `component ".."`},
		"ARC-021 parent inside":      {object("path", "a/../x"), `component ".."`},
		"ARC-021 parent at the end":  {object("path", "a/.."), `component ".."`},
		"ARC-068 empty":              {object("path", ""), "is empty"},
		"ARC-068 empty component":    {object("path", "a//b"), "empty component"},
		"ARC-068 slash at the end":   {object("path", "a/"), "empty component"},
		"ARC-068 dot":                {object("path", "./a"), `component "."`},
		"ARC-068 backslash":          {object("path", `a\b`), "backslash"},
		"zero byte":                  {object("path", "a\x00b"), "zero byte"},
	} {
		tree := madeManifest(madeObject{1, 3, "one"}, madeObject{5, 9, "five"})
		c.change(tree)
		if _, err := ParseManifest(text(t, tree)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", name, err, c.want)
		}
	}
	twice := bytes.Replace(text(t, madeManifest(madeObject{1, 1, "x"})), []byte(`{`), []byte(`{"id":"a",`), 1)
	if _, err := ParseManifest(twice); err == nil || !strings.Contains(err.Error(), "member id is there twice") {
		t.Error(err)
	}
	for _, broken := range []string{"", "{", "[]", "null", `{"id":`, "{}x"} {
		if _, err := ParseManifest([]byte(broken)); err == nil {
			t.Errorf("%q is taken", broken)
		}
	}
}

// A manifest is bounded, whatever is in it: ARC-016. A file that is none is named.
func TestManifestSize(t *testing.T) {
	path := filepath.Join(t.TempDir(), "manifest.json")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(f.Truncate(1<<40), f.Close()); err != nil {
		t.Skip("no sparse files:", err)
	}
	var refused *ManifestError
	if _, err := LoadManifest(path); !errors.As(err, &refused) || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), "longer than 16777216 bytes") {
		t.Error(err)
	}
	if _, err := LoadManifest(path + "x"); !errors.Is(err, os.ErrNotExist) || errors.As(err, &refused) {
		t.Error(err)
	}
}

// The manifest of another chain refuses the source: ARC-006.
func TestManifestChain(t *testing.T) {
	a := madeArchive(t, nil, madeObject{1, 1, madeLine(1, nil)})
	var refused *ManifestError
	if _, err := OpenSource(a.path, 5); !errors.As(err, &refused) || !strings.Contains(err.Error(), "chain_id 1: the configured chain is 5") {
		t.Error(err)
	}
	if _, err := OpenSource(a.path, 1); err != nil {
		t.Error(err)
	}
}

// What Append writes ParseManifest reads.
func TestManifestRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		bits := rapid.Uint32Range(0, 1<<12-1)
		m := &Manifest{
			ID:           rapid.StringMatching(`[A-Za-z0-9._-]{1,64}`).Draw(t, "id"),
			ChainID:      rapid.Uint64Min(1).Draw(t, "chain"),
			Capabilities: chain.Capabilities(bits.Draw(t, "capabilities")),
			Finality:     chain.Finality(rapid.Uint8Range(1, 3).Draw(t, "finality")),
		}
		m.Complete = m.Capabilities & chain.Capabilities(bits.Draw(t, "complete"))
		next := uint64(0)
		for range rapid.IntRange(1, 4).Draw(t, "objects") {
			from := next + rapid.Uint64Range(0, 9).Draw(t, "gap")
			next = from + rapid.Uint64Range(1, 1<<40).Draw(t, "blocks")
			m.Objects = append(m.Objects, Object{
				Range: chain.Range{From: from, To: next}, Path: rapid.StringMatching(`[a-z"é ]{1,9}(/[a-z]{1,3}){0,2}`).Draw(t, "path"),
				BLAKE3: [32]byte(rapid.SliceOfN(rapid.Byte(), 32, 32).Draw(t, "digest")), Bytes: rapid.Int64Min(1).Draw(t, "bytes"),
			})
		}
		got, err := ParseManifest(m.Append(nil))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(m, got); diff != "" {
			t.Fatal(diff)
		}
	})
}

// A manifest that is no file is refused at once: opening a pipe would wait for who writes to it.
func TestManifestIsNoFile(t *testing.T) {
	if _, err := LoadManifest(t.TempDir()); err == nil || !strings.Contains(err.Error(), "not a regular file") {
		t.Errorf("a directory: got %v", err)
	}
}
