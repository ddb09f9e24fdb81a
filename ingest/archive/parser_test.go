package archive

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/leani-go/leani/chain"
)

// drawFrame draws a frame in which anything may be a selection or missing, as far as lines can hold it.
func drawFrame(t *rapid.T) *chain.Frame {
	hash := rapid.Map(rapid.SliceOfN(rapid.Byte(), 32, 32), func(b []byte) common.Hash { return common.Hash(b) })
	address := rapid.Map(rapid.SliceOfN(rapid.Byte(), 20, 20), func(b []byte) common.Address { return common.Address(b) })
	f := &chain.Frame{
		ChainID: rapid.Uint64().Draw(t, "chain"), Finality: chain.Finality(rapid.Uint8Range(1, 3).Draw(t, "finality")),
		Block: chain.Block{BlockRef: chain.BlockRef{
			Number: rapid.Uint64().Draw(t, "number"), Hash: hash.Draw(t, "hash"), ParentHash: hash.Draw(t, "parent"), Timestamp: rapid.Uint64().Draw(t, "time"),
		}},
	}
	state := func(c chain.Capability) *chain.Material {
		m := f.Material(c)
		switch rapid.IntRange(0, 2).Draw(t, c.String()) {
		case 0:
			*m = chain.MissingMaterial(chain.MissingReason(rapid.Uint8Range(0, 4).Draw(t, "reason")))
		case 1:
			*m = chain.CompleteMaterial()
		case 2:
			scope := &chain.FilterScope{
				Addresses: rapid.SliceOfN(address, 0, 2).Draw(t, "addresses"), TransactionHashes: rapid.SliceOfN(hash, 0, 2).Draw(t, "hashes"),
				TransactionTypes: rapid.SliceOfN(rapid.Byte(), 0, 2).Draw(t, "types"),
				Senders:          rapid.SliceOfN(address, 0, 2).Draw(t, "senders"), Recipients: rapid.SliceOfN(address, 0, 2).Draw(t, "recipients"),
			}
			if rapid.Bool().Draw(t, "blocks") {
				scope.Blocks = &chain.Range{From: 3, To: 3 + rapid.Uint64Range(1, 9).Draw(t, "blocks")}
			}
			for range rapid.IntRange(0, 2).Draw(t, "topics") {
				scope.Topics = append(scope.Topics, chain.TopicFilter{
					Position: rapid.Byte().Draw(t, "position"), Alternatives: rapid.SliceOfN(hash, 0, 2).Draw(t, "alternatives"),
				})
			}
			*m = chain.FilteredMaterial(scope, chain.Completeness(rapid.Uint8Range(0, 2).Draw(t, "completeness")))
		}
		return m
	}
	drawLog := func() chain.Log {
		a := address.Draw(t, "address")
		l := chain.Log{Address: &a, Data: rapid.SliceOfN(rapid.Byte(), 0, 40).Draw(t, "data")}
		for range rapid.IntRange(0, chain.MaximumTopics).Draw(t, "topics") {
			h := hash.Draw(t, "topic")
			l.Topics[l.NumTopics] = &h
			l.NumTopics++
		}
		return l
	}
	if m := state(chain.CapabilityTransactions); m.Present() {
		senders := rapid.Bool().Draw(t, "senders")
		for i := range rapid.IntRange(0, 3).Draw(t, "transactions") {
			// No type that go-ethereum knows: the line holds the encoding and nothing out of it.
			f.Transactions = append(f.Transactions, append([]byte{0x7e}, rapid.SliceOfN(rapid.Byte(), 0, 40).Draw(t, "envelope")...))
			f.TransactionHashes = append(f.TransactionHashes, hash.Draw(t, "hash"))
			if senders {
				f.Senders = append(f.Senders, address.Draw(t, "sender"))
			}
			if m.State == chain.MaterialFiltered {
				f.TransactionIndexes = append(f.TransactionIndexes, uint32(7*i))
			}
		}
		f.Details |= chain.DetailEnvelopes
		if len(f.Senders) == len(f.Transactions) {
			f.Details |= chain.DetailSenders
		}
	}
	if receipts := state(chain.CapabilityReceipts); receipts.Present() {
		gas := uint64(0)
		for i := range rapid.IntRange(0, 3).Draw(t, "receipts") {
			gas += rapid.Uint64Range(0, 1e6).Draw(t, "gas")
			for range rapid.IntRange(0, 3).Draw(t, "logs") {
				f.Logs = append(f.Logs, drawLog())
			}
			f.Receipts = append(f.Receipts, chain.Receipt{Type: byte(i), Status: 1, CumulativeGasUsed: gas, LogsEnd: uint32(len(f.Logs))})
			if receipts.State == chain.MaterialFiltered {
				f.ReceiptIndexes = append(f.ReceiptIndexes, uint32(5*i))
			}
		}
	}
	return f
}

// TestForms writes and reads the forms of material: complete, selections with their scopes, and missing with reasons.
func TestForms(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := drawFrame(t)
		// Logs are those of receipts here; TestLogsAlone has the others.
		if want.Material(chain.CapabilityReceipts).State == chain.MaterialFiltered {
			// Where logs are in the block is known of selections too.
			next := 0
			for i := range want.Receipts {
				for ; next < int(want.Receipts[i].LogsEnd); next++ {
					h := common.Hash{}
					if i < len(want.TransactionHashes) {
						h = want.TransactionHashes[i]
					}
					want.LogPlaces = append(want.LogPlaces, chain.LogPlace{TransactionHash: &h, TransactionIndex: want.ReceiptIndexes[i], LogIndex: uint32(3 * next)})
				}
			}
		}
		var e encoder
		line, err := e.line(nil, want)
		if err != nil {
			t.Fatal(err)
		}
		if !json.Valid(line) {
			t.Fatalf("not JSON: %s", line)
		}
		var (
			p   Parser
			got chain.Frame
		)
		if err := p.Parse(padded(line), nil, &got); err != nil {
			t.Fatalf("%v\n%s", err, line)
		}
		want.HasReceipts = want.Material(chain.CapabilityReceipts).Complete()
		if want.Material(chain.CapabilityReceipts).Present() {
			want.Details |= chain.DetailReceiptEncodings
			if len(want.Receipts) == 0 {
				want.Details |= chain.DetailReceiptGas
			}
		}
		if diff := cmp.Diff(want, &got, compareBlocks); diff != "" {
			t.Fatal(diff)
		}
	})
}

const logText = `{"address":[1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20],"topics":[%s],"data":[255,0],"transaction_hash":%s,"transaction_index":4,"log_index":17}`

// TestLogsAlone: without complete receipts the logs material counts, with the places that it gives.
func TestLogsAlone(t *testing.T) {
	hash := madeHash(5)
	list := "[" + fmt.Sprintf(logText, numbers(hash[:]), "null") + "," + fmt.Sprintf(logText, "", numbers(hash[:])) + "]"
	scope := `{"block_range":null,"addresses":[],"topics":[{"position":0,"alternatives":[]}],"transaction_hashes":[],"transaction_types":[]}`
	for name, changes := range map[string]map[string]string{
		"complete":  {"receipts": `{"Missing":"NotRequested"}`, "logs": `{"Complete":` + list + `}`},
		"selection": {"receipts": `{"Missing":"NotRequested"}`, "logs": `{"Filtered":{"value":` + list + `,"scope":` + scope + `,"completeness":"VerifiedPredicate"}}`},
	} {
		var (
			p Parser
			f chain.Frame
		)
		if err := p.Parse(padded([]byte(madeLine(1, changes))), nil, &f); err != nil {
			t.Fatal(name, err)
		}
		if len(f.Logs) != 2 || f.HasReceipts || f.Logs[0].NumTopics != 1 || *f.Logs[0].Topics[0] != hash || f.Logs[1].Data[0] != 255 || f.Logs[1].Address[19] != 20 {
			t.Errorf("%s: %+v", name, f.Logs)
		}
		if diff := cmp.Diff([]chain.LogPlace{{TransactionIndex: 4, LogIndex: 17}, {TransactionHash: &hash, TransactionIndex: 4, LogIndex: 17}}, f.LogPlaces); diff != "" {
			t.Error(name, diff)
		}
		if f.Material(chain.CapabilityLogs).Complete() != (name == "complete") {
			t.Errorf("%s: %+v", name, f.Material(chain.CapabilityLogs))
		}
	}
}

// TestReceiptsWithoutEncoding: status, gas and logs of a receipt that is not encoded come from its other members.
func TestReceiptsWithoutEncoding(t *testing.T) {
	hash := madeHash(8)
	receipt := func(index int, success string, gas int, logs string) string {
		return fmt.Sprintf(`{"transaction_hash":%s,"transaction_type":2,"transaction_index":%d,"encoded":null,"success":%s,"gas_used":%d,"logs":[%s]}`,
			numbers(hash[:]), index, success, gas, logs)
	}
	line := madeLine(1, map[string]string{
		"transactions": `{"Missing":"NotRequested"}`, "logs": `{"Missing":"Unsupported"}`,
		"receipts": `{"Complete":[` + receipt(0, "true", 21000, fmt.Sprintf(logText, "", "null")) + "," + receipt(1, "false", 5, "") + `]}`,
	})
	var (
		p Parser
		f chain.Frame
	)
	if err := p.Parse(padded([]byte(line)), nil, &f); err != nil {
		t.Fatal(err)
	}
	want := []chain.Receipt{{Type: 2, Status: 1, CumulativeGasUsed: 21000, LogsEnd: 1}, {Type: 2, CumulativeGasUsed: 21005, LogsEnd: 1}}
	if diff := cmp.Diff(want, f.Receipts); diff != "" || len(f.Logs) != 1 || f.Details != 0 {
		t.Error(diff, f.Details)
	}
}

// shortStep is a step of a frame's way in as few letters as possible.
func shortStep(projection string) string {
	return `{"source_id":"","source_kind":"Synthetic","trust":"Untrusted","observed_at_unix_ms":0,"projection":[` + projection + `]}`
}

// TestParseRefusals changes one member of a good line.
func TestParseRefusals(t *testing.T) {
	hash := madeHash(1)
	for name, c := range map[string]struct{ member, value, want string }{
		"float":               {"chain_id", "1.0", "not an integer"},
		"exponent":            {"chain_id", "1e0", "not an integer"},
		"negative":            {"chain_id", "-1", "want an integer"},
		"text":                {"chain_id", `"1"`, "want an integer"},
		"leading zero":        {"chain_id", "01", "not an integer"},
		"beyond 64 bits":      {"chain_id", "18446744073709551616", "not an integer of 64 bits"},
		"far beyond":          {"chain_id", "99999999999999999999999", "not an integer of 64 bits"},
		"hash as hex":         {"block", `{"number":1,"hash":"0x01","parent_hash":[],"timestamp":1}`, "want an array of bytes"},
		"short hash":          {"block", `{"number":1,"hash":[1],"parent_hash":[],"timestamp":1}`, "1 bytes, want 32"},
		"byte 256":            {"block", `{"number":1,"hash":[256],"parent_hash":[],"timestamp":1}`, "not an integer from 0 to 255"},
		"byte 1000":           {"block", `{"number":1,"hash":[1000],"parent_hash":[],"timestamp":1}`, "not an integer from 0 to 255"},
		"byte 01":             {"block", `{"number":1,"hash":[01],"parent_hash":[],"timestamp":1}`, "not an integer from 0 to 255"},
		"byte -1":             {"block", `{"number":1,"hash":[-1],"parent_hash":[],"timestamp":1}`, "not an integer from 0 to 255"},
		"byte 1.5":            {"block", `{"number":1,"hash":[1.5],"parent_hash":[],"timestamp":1}`, "not an integer from 0 to 255"},
		"comma at the end":    {"block", `{"number":1,"hash":[1,],"parent_hash":[],"timestamp":1}`, "not an integer from 0 to 255"},
		"two commas":          {"block", `{"number":1,"hash":[1,,2],"parent_hash":[],"timestamp":1}`, "not an integer from 0 to 255"},
		"no timestamp":        {"block", `{"number":1,"hash":` + numbers(hash[:]) + `,"parent_hash":` + numbers(hash[:]) + `}`, "member timestamp is missing"},
		"no verification":     {"verification", "", "member verification is missing"},
		"unknown finality":    {"finality", `"Final"`, "finality"},
		"finality in the API": {"finality", `"finalized"`, "finality"},
		"unknown form":        {"header", `{"Whole":{}}`, `unknown member "Whole"`},
		"no form":             {"header", `{}`, "no form of material"},
		"two forms":           {"logs", `{"Complete":[],"Missing":"Pruned"}`, "two forms"},
		"unknown reason":      {"header", `{"Missing":"Lost"}`, `unknown missing reason "Lost"`},
		"no scope":            {"logs", `{"Filtered":{"value":[],"completeness":"Partial"}}`, "member scope is missing"},
		"range backwards":     {"logs", `{"Filtered":{"value":[],"completeness":"Partial","scope":{"block_range":{"start":2,"end":1},"addresses":[],"topics":[],"transaction_hashes":[],"transaction_types":[]}}}`, "ends with 1 before it starts with 2"},
		"position 256":        {"logs", `{"Filtered":{"value":[],"completeness":"Partial","scope":{"addresses":[],"topics":[{"position":256,"alternatives":[]}],"transaction_hashes":[],"transaction_types":[]}}}`, "256 is above 255"},
		"many topics":         {"logs", `{"Filtered":{"value":[],"completeness":"Partial","scope":{"addresses":[],"topics":[` + strings.Repeat(`{"position":0,"alternatives":[]},`, 256) + `{"position":0,"alternatives":[]}],"transaction_hashes":[],"transaction_types":[]}}}`, "more than 256 topics"},
		"five topics":         {"logs", `{"Complete":[` + fmt.Sprintf(logText, strings.Repeat(numbers(hash[:])+",", 4)+numbers(hash[:]), "null") + `]}`, "more than 4 topics"},
		"log count":           {"logs", `{"Complete":[` + fmt.Sprintf(logText, "", "null") + `]}`, "1 logs, the receipts have 0"},
		"header RLP":          {"header", `{"Complete":{"rlp":[1,2,3]}}`, "header: "},
		"unknown trust":       {"provenance", `[{"source_id":"x","source_kind":"Synthetic","trust":"Full","observed_at_unix_ms":0,"projection":[]}]`, `unknown trust "Full"`},
		"long way":            {"provenance", "[" + strings.Repeat(shortStep("")+",", 1024) + shortStep("") + "]", "more than 1024 steps"},
		"wide projection":     {"provenance", "[" + shortStep(strings.Repeat(`"",`, 4096)+`""`) + "]", "more than 4096 columns"},
		"six checks":          {"verification", `{"header_hash":` + notChecked + `}`, "member parent_continuity is missing"},
		"deep":                {"new", strings.Repeat("[", 40) + strings.Repeat("]", 40), "nested more than 32 deep"},
		"unknown, not JSON":   {"new", "[1,]", "not a value of JSON"},
		"unknown number":      {"new", "1.", "not a value of JSON"},
		"control character":   {"new", "\"a\x01\"", "control character"},
		"bad escape":          {"new", `"\x"`, "not a string"},
		"not UTF-8":           {"new", "\"\xff\"", "not UTF-8"},
		"open string":         {"zzz", `"abc`, "does not end"},
		"transaction index":   {"transactions", `{"Complete":[{"hash":` + numbers(hash[:]) + `,"transaction_type":0,"index":1,"blob_versioned_hashes":[]}]}`, "transaction 0 has index 1"},
		"empty transaction":   {"transactions", `{"Complete":[{"hash":` + numbers(hash[:]) + `,"transaction_type":0,"index":0,"encoded":[],"blob_versioned_hashes":[]}]}`, "empty encoding"},
		"transaction type":    {"transactions", `{"Complete":[{"hash":` + numbers(hash[:]) + `,"transaction_type":3,"index":0,"encoded":[2,1],"blob_versioned_hashes":[]}]}`, "has type 3, its encoding has 2"},
		"receipt encoding":    {"receipts", `{"Complete":[{"transaction_hash":` + numbers(hash[:]) + `,"transaction_type":0,"transaction_index":0,"encoded":[192],"logs":[]}]}`, "receipt 0: "},
	} {
		var (
			p Parser
			f chain.Frame
		)
		line := madeLine(1, map[string]string{c.member: c.value})
		err := p.Parse(padded([]byte(line)), nil, &f)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", name, err, c.want)
		}
	}
	twice := strings.Replace(madeLine(1, nil), "{", `{"chain_id":1,`, 1)
	if err := new(Parser).Parse(padded([]byte(twice)), nil, new(chain.Frame)); err == nil || !strings.Contains(err.Error(), "member chain_id is there twice") {
		t.Error(err)
	}
}

// TestSourceNeutral: frames do not depend on who wrote them. Lines of real blocks with their members in another order,
// with white space and members that mean nothing here, from every kind of source, fill a store all the same: ARC-066.
func TestSourceNeutral(t *testing.T) {
	frames := realFrames(t)[3:4]
	e := encoder{network: chain.Mainnet()}
	for kind := chain.PublicDataset; kind <= chain.Synthetic; kind++ {
		var lines []string
		for _, f := range frames {
			other := *f
			other.Provenance = []chain.Provenance{{SourceID: "projection", Kind: kind, Trust: chain.Untrusted, Projection: []string{"a column"}}}
			line, err := e.line(nil, &other)
			if err != nil {
				t.Fatal(err)
			}
			var members map[string]json.RawMessage
			if err := json.Unmarshal(line, &members); err != nil {
				t.Fatal(err)
			}
			members["extra"] = json.RawMessage(`{"deep":[{}]}`)
			var parts []string
			names := slices.Sorted(maps.Keys(members))
			slices.Reverse(names)
			for _, name := range names {
				parts = append(parts, fmt.Sprintf("%q : %s", name, members[name]))
			}
			lines = append(lines, "{\t"+strings.Join(parts, " , ")+"\t}")
		}
		a := madeArchive(t, func(m map[string]any) {
			kinds := []string{"Header", "Transactions", "Receipts", "Logs", "Withdrawals"}
			m["capabilities"], m["complete_capabilities"] = kinds, kinds
		}, madeObject{frames[0].Number, frames[0].Number, strings.Join(lines, "\n")})
		blocks, err := fillFrom(t, a.path, frames, chain.Range{From: frames[0].Number, To: frames[0].Number + 1})
		if err != nil || len(blocks) != 1 {
			t.Errorf("%s: %v, %v", kind, blocks, err)
		}
		err = a.Read(context.Background(), &a.manifest.Objects[0], everything, Budget{}, func(f *chain.Frame) error {
			if f.Provenance[0].Kind != kind || f.Provenance[0].Projection[0] != "a column" {
				t.Errorf("%+v", f.Provenance)
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	}
}
