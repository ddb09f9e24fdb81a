package archive

import (
	"bytes"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/leani-go/leani/chain"
)

// FuzzParse parses any text as a frame. What is taken is JSON, decodes to no more than its length allows, and can be
// written and parsed again to the same frame.
func FuzzParse(f *testing.F) {
	hash := madeHash(3)
	scope := `{"block_range":{"start":1,"end":2},"addresses":[],"topics":[{"position":0,"alternatives":[` + numbers(hash[:]) + `]}],"transaction_hashes":[],"transaction_types":[1,2]}`
	for _, changes := range []map[string]string{
		nil,
		{"logs": `{"Filtered":{"value":[` + fmt.Sprintf(logText, "", "null") + `],"scope":` + scope + `,"completeness":"Partial"}}`, "receipts": `{"Missing":"Pruned"}`},
		{"withdrawals": `{"Complete":[{"index":1,"validator_index":300,"amount_gwei":18446744073709551615,"address":` + numbers(hash[:20]) + `}]}`},
		{"transactions": `{"Complete":[{"hash":` + numbers(hash[:]) + `,"transaction_type":2,"index":0,"encoded":[2,192],"from":` + numbers(hash[:20]) + `,"blob_versioned_hashes":[` + numbers(hash[:]) + `]}]}`,
			"receipts": `{"Complete":[{"transaction_hash":` + numbers(hash[:]) + `,"transaction_type":2,"transaction_index":0,"success":true,"gas_used":3,"logs":[` + fmt.Sprintf(logText, numbers(hash[:]), "null") + `]}]}`,
			"logs":     `{"Missing":"Unsupported"}`},
		{"blob_sidecars": `{"Complete":[{"transaction_hash":` + numbers(hash[:]) + `,"index":0,"versioned_hash":[],"blob":[0],"commitment":[],"proof":[]}]}`},
		{"provenance": `[{"source_id":"a\u00e9","source_kind":"Synthetic","trust":"Untrusted","observed_at_unix_ms":0,"projection":["x"]}]`, "ommers": `{"Complete":[192]}`},
		{"extra": `[{"a":-1.5e-3},"\n",true,false,null]`, "schema_version": `"other"`},
	} {
		f.Add([]byte(madeLine(3, changes)))
	}
	real := realFrames(f)[4] // the header alone: mutating megabytes leads nowhere
	headerOnly := &chain.Frame{Block: chain.Block{BlockRef: real.BlockRef, Header: real.Header}, ChainID: 1, Finality: chain.Finalized}
	*headerOnly.Material(chain.CapabilityHeader) = chain.CompleteMaterial()
	f.Add(bytes.TrimSuffix(must(new(encoder).line(nil, headerOnly)), []byte("\n")))
	f.Fuzz(func(t *testing.T, line []byte) {
		var (
			p, again   Parser
			got, third chain.Frame
			e          encoder
		)
		if err := p.Parse(padded(line), nil, &got); err != nil {
			return
		}
		if !json.Valid(line) {
			t.Fatal("not JSON")
		}
		if used, limit := len(p.arena), len(line)/2+arenaSlack; used > limit {
			t.Fatalf("%d bytes decoded of a line of %d", used, len(line))
		}
		second, err := e.line(nil, &got)
		if err != nil {
			return // without encodings, for example
		}
		if err := again.Parse(padded(second), nil, &third); err != nil {
			t.Fatalf("written and not read: %v\n%s", err, second)
		}
		fourth, err := e.line(nil, &third)
		if err != nil || !bytes.Equal(second, fourth) {
			t.Fatalf("%v\n%s\n%s", err, second, fourth)
		}
	})
}

// FuzzManifest parses any text as a manifest. What is taken is JSON with objects in order and safe paths, and can be written and
// read again.
func FuzzManifest(f *testing.F) {
	f.Add(text(f, madeManifest(madeObject{1, 2, "x"}, madeObject{4, 4, "y"})))
	f.Add(must(ParseManifest(text(f, madeManifest(madeObject{1, 2, "x"})))).Append(nil))
	f.Add([]byte(`{"format_version":1,"id":"\u0061"}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := ParseManifest(b)
		if err != nil {
			return
		}
		if !json.Valid(b) {
			t.Fatal("not JSON")
		}
		next := uint64(0)
		for _, o := range m.Objects {
			if o.Range.Empty() || o.Range.From < next || checkPath(o.Path) != nil || o.Bytes <= 0 {
				t.Fatalf("%+v", m.Objects)
			}
			next = o.Range.To
		}
		again, err := ParseManifest(m.Append(nil))
		if err != nil || !bytes.Equal(again.Append(nil), m.Append(nil)) {
			t.Fatal(err)
		}
	})
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}
