package archive

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/zeebo/blake3"

	"github.com/leani-go/leani/chain"
	"github.com/leani-go/leani/internal/shareddata"
)

var update = flag.Bool("update", false, "rewrite the example in docs/formats/archive.md")

// exampleFrame is the frame of the document.
func exampleFrame() *chain.Frame {
	address, topic := common.Address{0xaa, 19: 0xff}, common.Hash{31: 1}
	f := &chain.Frame{ChainID: 1, Finality: chain.Finalized}
	f.BlockRef = chain.BlockRef{Number: 1, Hash: madeHash(1), Timestamp: 1_700_000_001}
	f.Logs = []chain.Log{{Address: &address, NumTopics: 1, Topics: [chain.MaximumTopics]*common.Hash{&topic}, Data: []byte{0, 10, 255}}}
	f.LogPlaces = []chain.LogPlace{{TransactionIndex: 2, LogIndex: 5}}
	*f.Material(chain.CapabilityLogs) = chain.FilteredMaterial(&chain.FilterScope{Addresses: []common.Address{address}}, chain.DatasetDeclared)
	return f
}

// TestDocument compares the example of docs/formats/archive.md with what the code writes, and reads it.
func TestDocument(t *testing.T) {
	line, err := new(encoder).line(nil, exampleFrame())
	if err != nil {
		t.Fatal(err)
	}
	m := &Manifest{
		ID: "example", ChainID: 1, Finality: chain.Finalized, Capabilities: chain.NewCapabilities(chain.CapabilityLogs),
		Objects: []Object{{Range: chain.Range{From: 1, To: 2}, Path: "blocks-0000000001-0000000001.jsonl", Bytes: int64(len(line)), BLAKE3: blake3.Sum256(line)}},
	}
	path := filepath.Join(shareddata.Root(t), "docs", "formats", "archive.md")
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	document := string(content)
	shown := part(t, &document, "manifest", indent(string(m.Append(nil))))
	shownLine := part(t, &document, "frame", indent(wrap(string(line))))
	if document != string(content) {
		if !*update {
			t.Fatal("the example differs from the code; run the test with -update")
		}
		if err := os.WriteFile(path, []byte(document), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	read, err := ParseManifest([]byte(shown))
	if err != nil {
		t.Fatal(err)
	}
	object := strings.ReplaceAll(strings.ReplaceAll(shownLine, "\n", ""), "    ", "") + "\n"
	if got := common.Hash(blake3.Sum256([]byte(object))); got != read.Objects[0].BLAKE3 || int64(len(object)) != read.Objects[0].Bytes {
		t.Errorf("the frame shown has %d bytes and digest %x", len(object), got)
	}
	var (
		p Parser
		f chain.Frame
	)
	if err := p.Parse(padded([]byte(object)), nil, &f); err != nil || f.Number != 1 || len(f.Logs) != 1 {
		t.Errorf("%+v, %v", f.Logs, err)
	}
}

// part puts text between the marks of a part of a document, and gives what was there.
func part(t *testing.T, document *string, name, text string) string {
	t.Helper()
	from, to := fmt.Sprintf("<!-- %s -->\n", name), fmt.Sprintf("<!-- end %s -->", name)
	before, rest, found := strings.Cut(*document, from)
	got, after, found2 := strings.Cut(rest, to)
	if !found || !found2 {
		t.Fatalf("no part %s", name)
	}
	*document = before + from + text + to + after
	return got
}

func indent(s string) string {
	return "\n    " + strings.ReplaceAll(strings.TrimSpace(s), "\n", "\n    ") + "\n\n"
}

// wrap breaks a line after members.
func wrap(s string) string { return strings.ReplaceAll(s, `,"`, ",\n\"") }
