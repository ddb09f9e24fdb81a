package scripted

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"

	"github.com/leani-go/leani/chain"
	"github.com/leani-go/leani/ingest/era"
	"github.com/leani-go/leani/ingest/live"
	"github.com/leani-go/leani/ingest/verify"
	"github.com/leani-go/leani/internal/chainfixture"
	"github.com/leani-go/leani/internal/receipt"
)

// line writes an apply event of blocks.
func line(t testing.TB, blocks ...*chain.Block) string {
	t.Helper()
	var a scriptApply
	for _, b := range blocks {
		m := materialLine{Header: b.Header, Ommers: b.Ommers, Transactions: []hexutil.Bytes{}, Receipts: []hexutil.Bytes{}}
		if b.Withdrawals != nil {
			w := hexutil.Bytes(b.Withdrawals)
			m.Withdrawals = &w
		}
		for i, tx := range b.Transactions {
			m.Transactions = append(m.Transactions, tx)
			r := b.Receipts[i]
			logs := b.ReceiptLogs(i)
			var bloom types.Bloom
			for k := range logs {
				bloom.Add(logs[k].Address[:])
				for _, topic := range logs[k].Topics[:logs[k].NumTopics] {
					bloom.Add(topic[:])
				}
			}
			m.Receipts = append(m.Receipts, receipt.AppendCanonical(nil, &r, logs, &bloom))
		}
		a.Blocks = append(a.Blocks, m)
	}
	raw, err := json.Marshal(map[string]any{"apply": a})
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

func open(t testing.TB, lines ...string) *Source {
	t.Helper()
	path := filepath.Join(t.TempDir(), "events.jsonl")
	if err := os.WriteFile(path, []byte(strings.Join(lines, "\n")), 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// Every block of the conformance chain, which has all forms of blocks, comes out of a script as it went in, and is
// proved by its header.
func TestBlocks(t *testing.T) {
	t.Parallel()
	var lines []string
	var want []*chain.Block
	for _, b := range chainfixture.ConformanceChain(t) {
		want = append(want, &b.Block)
		lines = append(lines, line(t, &b.Block))
	}
	lines = append(lines, "", "# the end", line(t, want[3:7]...))
	s := open(t, lines...)
	var v verify.Verifier
	for i := range want {
		e, err := s.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if e.Kind != live.Apply || len(e.Blocks) != 1 {
			t.Fatalf("event %d: %+v", i, e)
		}
		if err := v.Block(e.Blocks[0], verify.Expected{Number: want[i].Number, Hash: want[i].Hash}); err != nil {
			t.Fatal(err)
		}
	}
	if e, err := s.Next(t.Context()); err != nil || len(e.Blocks) != 4 {
		t.Errorf("a branch: %+v, %v", e, err)
	}
	if _, err := s.Next(t.Context()); !errors.Is(err, io.EOF) {
		t.Errorf("the end: %v", err)
	}
}

func TestEvents(t *testing.T) {
	t.Parallel()
	hash := "0x" + strings.Repeat("ab", 32)
	s := open(t, `{"undo": {"number": 7, "hash": "`+hash+`"}}`, `{"pause": {"milliseconds": 1}}`, `{"attested": {"number": 8}}`, `{"finalized": {"number": 0}}`)
	zero := " 0x" + strings.Repeat("0", 64)
	for _, want := range []string{"undo 7 " + hash, "current 0" + zero, "attested 8" + zero, "finalized 0" + zero} {
		e, err := s.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprintf("%s %d %s", e.Kind, e.Block.Number, e.Block.Hash.Hex()); got != want {
			t.Errorf("got %s want %s", got, want)
		}
	}
	s = open(t, `{"pause": {"milliseconds": 3600000}}`)
	ctx, cancel := context.WithCancel(t.Context())
	if e, err := s.Next(ctx); err != nil || e.Kind != live.Current {
		t.Errorf("before a pause: %+v, %v", e, err)
	}
	cancel()
	if _, err := s.Next(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

// Blocks of an era file come one by one, in order, and are proved.
func TestEra(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("../../testdata/era/mainnet-mini/*.er*")
	if err != nil || len(files) == 0 {
		t.Fatalf("no era file: %v", err)
	}
	path, err := filepath.Abs(files[0])
	if err != nil {
		t.Fatal(err)
	}
	s := open(t, `{"apply": {"era": "`+path+`"}}`, `{"undo": {"number": 1}}`)
	var v verify.Verifier
	var last chain.BlockRef
	for n := 0; ; n++ {
		e, err := s.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if e.Kind == live.Undo {
			if n == 0 {
				t.Error("no blocks")
			}
			break
		}
		b := e.Blocks[0]
		want := verify.Expected{Number: last.Number + 1, ParentHash: last.Hash}
		if n == 0 {
			want.Number = firstOf(t, path)
		}
		if err := v.Block(b, want); err != nil {
			t.Fatal(err)
		}
		last = b.BlockRef
	}
}

// What is not an event is refused with file and line.
func TestRefuses(t *testing.T) {
	t.Parallel()
	for _, bad := range []string{
		`{`, `[]`, `{}`, `{"undo": {}}`, `{"undo": {"number": 1}, "finalized": {"number": 1}}`, `{"apply": {}}`, `{"jump": {}}`,
		`{"undo": {"number": 1}} {"undo": {"number": 1}}`, `{"undo": {"number": -1}}`, `{"pause": {"milliseconds": -1}}`,
		`{"apply": {"era": "no.era1"}}`, `{"apply": {"blocks": [{"header": "0x", "receipts": ["0x"]}]}}`,
		`{"apply": {"blocks": [{"header": "0x"}], "fromBlock": 1}}`, `{"undo": {"number": 1, "hash": "0x12"}}`,
	} {
		s := open(t, "", bad)
		if e, err := s.Next(t.Context()); err == nil || errors.Is(err, io.EOF) || !strings.Contains(err.Error(), "line 2") {
			t.Errorf("%s: got %+v, %v", bad, e, err)
		}
	}
}

// FuzzScript gives any text to the parser.
func FuzzScript(f *testing.F) {
	f.Add(`{"undo": {"number": 1}}`)
	f.Add(`{"apply": {"blocks": [{"header": "0xc0", "transactions": ["0x01"], "receipts": ["0xc0"]}]}}`)
	f.Fuzz(func(t *testing.T, text string) {
		if strings.Contains(text, "era") || strings.Contains(text, "pause") {
			return // what they name is not text
		}
		s := open(t, text)
		for {
			if _, err := s.Next(t.Context()); err != nil {
				return
			}
		}
	})
}

func firstOf(t *testing.T, path string) uint64 {
	t.Helper()
	f, err := era.OpenPath(path, era.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	return f.Range().From
}
