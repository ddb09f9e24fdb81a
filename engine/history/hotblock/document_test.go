package hotblock

import (
	"bytes"
	"encoding/hex"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/common"

	"github.com/leani-go/leani/chain"
)

var update = flag.Bool("update", false, "rewrite the examples in docs/formats/hot.md")

const document = "../../../docs/formats/hot.md"

// TestDocument compares the parts in docs/formats/hot.md with the code, both ways.
func TestDocument(t *testing.T) {
	address, topic := common.Address(bytes.Repeat([]byte{0x11}, 20)), common.Hash(bytes.Repeat([]byte{0x22}, 32))
	want := &chain.Block{
		BlockRef: chain.BlockRef{Number: 1024}, Header: []byte{0xf9}, Ommers: []byte{0xc0}, Withdrawals: []byte{0xc0},
		Transactions: [][]byte{{0x02, 0xc0}}, TransactionHashes: []common.Hash{common.Hash(bytes.Repeat([]byte{0x44}, 32))},
		HasReceipts: true, Receipts: []chain.Receipt{{Type: 2, Status: 1, CumulativeGasUsed: 21_000, LogsEnd: 1}},
		Logs: []chain.Log{{Address: &address, NumTopics: 1, Topics: [chain.MaximumTopics]*common.Hash{&topic}, Data: []byte{0x33}}},
	}
	parts, err := new(Encoder).Encode(want)
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	text.WriteString("```\n")
	for i, p := range parts {
		for at := 0; at < len(p); at += 32 {
			fmt.Fprintf(&text, "part %d  %3d  %x\n", i+1, at, p[at:min(at+32, len(p))])
		}
	}
	text.WriteString("```\n")
	doc, err := os.ReadFile(document)
	if err != nil {
		t.Fatal(err)
	}
	const begin, end = "<!-- parts -->\n", "<!-- end parts -->"
	head, rest, ok := strings.Cut(string(doc), begin)
	block, tail, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		t.Fatalf("%s has no block of parts", document)
	}
	if block != text.String() {
		if !*update {
			t.Fatalf("%s does not match the code; run go test ./engine/history/hotblock -run TestDocument -update\nwant:\n%s", document, &text)
		}
		if err := os.WriteFile(document, []byte(head+begin+text.String()+end+tail), 0o644); err != nil {
			t.Fatal(err)
		}
		block = text.String()
	}
	var read [NumParts][]byte
	for line := range strings.Lines(block) {
		var part, at int
		var digits string
		if _, err := fmt.Sscanf(line, "part %d %d %s", &part, &at, &digits); err != nil {
			continue
		}
		raw, err := hex.DecodeString(digits)
		if err != nil {
			t.Fatal(err)
		}
		read[part-1] = append(read[part-1], raw...)
	}
	got := chain.Block{BlockRef: want.BlockRef}
	if _, _, err := load(read, &got); err != nil {
		t.Fatal(err)
	}
	same(t, &got, want)
}
