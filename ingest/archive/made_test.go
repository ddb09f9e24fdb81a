package archive

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/zeebo/blake3"

	"github.com/leani-go/leani/chain"
)

// madeHash is the hash of a made-up block: its number in every byte.
func madeHash(n uint64) (h common.Hash) {
	for i := range h {
		h[i] = byte(n)
	}
	return h
}

func numbers(b []byte) string { return string(appendOctets(nil, b)) }

const notChecked = `{"status":"NotChecked","detail":null}`

// madeMembers are the members of a made-up frame: no header, and no transactions, receipts and logs at all.
func madeMembers(n uint64) map[string]string {
	hash, parent := madeHash(n), madeHash(n-1)
	return map[string]string{
		"chain_id":      "1",
		"block":         fmt.Sprintf(`{"number":%d,"hash":%s,"parent_hash":%s,"timestamp":%d}`, n, numbers(hash[:]), numbers(parent[:]), 1_700_000_000+n),
		"finality":      `"Finalized"`,
		"header":        `{"Missing":"NotRequested"}`,
		"transactions":  `{"Complete":[]}`,
		"receipts":      `{"Complete":[]}`,
		"logs":          `{"Complete":[]}`,
		"withdrawals":   `{"Missing":"NotRequested"}`,
		"blob_sidecars": `{"Missing":"Unsupported"}`,
		"traces":        `{"Missing":"Unsupported"}`,
		"state_diffs":   `{"Missing":"Unsupported"}`,
		"provenance":    `[]`,
		"verification": `{"header_hash":` + notChecked + `,"parent_continuity":` + notChecked + `,"transactions_root":` + notChecked +
			`,"receipts_root":` + notChecked + `,"withdrawals_root":` + notChecked + `,"dataset_checksum":` + notChecked + `,"consensus_anchor":null}`,
	}
}

// madeLine is a line with some members changed; an empty value takes a member away.
func madeLine(n uint64, changes map[string]string) string {
	members := madeMembers(n)
	maps.Copy(members, changes)
	var parts []string
	order := frameShape.names
	for _, name := range order {
		if v := members[name]; v != "" {
			parts = append(parts, fmt.Sprintf("%q:%s", name, v))
		}
		delete(members, name)
	}
	for name, v := range members { // names of our own
		parts = append(parts, fmt.Sprintf("%q:%s", name, v))
	}
	return "{" + strings.Join(parts, ",") + "}"
}

func madeLines(from, to uint64) []string {
	var lines []string
	for n := from; n < to; n++ {
		lines = append(lines, madeLine(n, nil))
	}
	return lines
}

// madeObject is an object of made-up content.
type madeObject struct {
	from, to uint64 // both belong to it
	content  string
}

// madeManifest is the manifest of the objects as a tree that tests change.
func madeManifest(objects ...madeObject) map[string]any {
	list := []any{}
	for i, o := range objects {
		list = append(list, map[string]any{
			"from_block": o.from, "to_block": o.to, "path": fmt.Sprintf("object-%d.jsonl", i), "bytes": len(o.content),
			"blake3": fmt.Sprintf("%x", blake3.Sum256([]byte(o.content))),
		})
	}
	return map[string]any{
		"format_version": 1, "id": "made", "chain_id": 1, "schema_version": Schema,
		"capabilities":          []string{"Transactions", "Receipts", "Logs"},
		"complete_capabilities": []string{"Transactions", "Receipts", "Logs"},
		"finality":              "Finalized", "objects": list,
	}
}

func text(tb testing.TB, v any) []byte {
	tb.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		tb.Fatal(err)
	}
	return b
}

// madeArchive writes objects and their manifest, changed by change, and opens them.
func madeArchive(tb testing.TB, change func(map[string]any), objects ...madeObject) *Archive {
	tb.Helper()
	folder := tb.TempDir()
	for i, o := range objects {
		if err := os.WriteFile(filepath.Join(folder, fmt.Sprintf("object-%d.jsonl", i)), []byte(o.content), 0o600); err != nil {
			tb.Fatal(err)
		}
	}
	m := madeManifest(objects...)
	if change != nil {
		change(m)
	}
	path := filepath.Join(folder, ManifestName)
	if err := os.WriteFile(path, text(tb, m), 0o600); err != nil {
		tb.Fatal(err)
	}
	a, err := Open(path)
	if err != nil {
		tb.Fatal(err)
	}
	return a
}

// read reads an object and gives the numbers of the frames and what each says about itself.
func read(a *Archive, object int, r chain.Range, budget Budget) (numbers []uint64, reports []chain.VerificationReport, err error) {
	o := &a.manifest.Objects[object]
	err = a.Read(context.Background(), o, r, budget, func(f *chain.Frame) error {
		numbers = append(numbers, f.Number)
		reports = append(reports, f.Verification)
		return nil
	})
	return numbers, reports, err
}
